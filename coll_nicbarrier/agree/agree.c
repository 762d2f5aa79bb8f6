/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The agreement as a whole: see agree.h. */
#include "coll_nicbarrier/agree/agree.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "coll_nicbarrier/agree/agreement.h"
#include "common/support/clock.h"
#include "common/support/collective.h"
#include "ompi/constants.h"
#include "ompi/group/group.h"
#include "opal/util/output.h"
#include "opal/util/proc.h"

/** What an engine must score to be opened unasked: that of messages without an adapter. Those below
 *  do no better than the module below, and would cost memory for each process. */
#define WORTHWHILE 50
/** The number of the engine of a node alone. */
#define NODE_ENGINE 0

/* ---- what a rank brings --------------------------------------------------------------------- */

/** A key that no other group has: at random, or from name and time, where the kernel gives
 *  nothing. */
static uint64_t draw_key(void)
{
    uint64_t key = 0;
    if (getrandom(&key, sizeof(key), GRND_NONBLOCK) != (ssize_t)sizeof(key)) {
        key = ((uint64_t)OPAL_PROC_MY_NAME.jobid << 32 | OPAL_PROC_MY_NAME.vpid) ^ onic_now_nsec()
                                                                                       << 16;
    }
    return key != 0 ? key : 1;
}

bool nicbarrier_several_jobs(struct ompi_communicator_t *comm)
{
    for (int r = 0; r < ompi_comm_size(comm); r++) {
        if (ompi_group_get_proc_name(comm->c_local_group, r).jobid != OPAL_PROC_MY_NAME.jobid) {
            return true;
        }
    }
    return false;
}

/** Opens the engine if it may be needed; its score, or 0. */
static uint8_t open_engine(nicbarrier_agreement_t *a, int i)
{
    const nicbarrier_engine_t *engine = nicbarrier_engines[i];
    const int score = engine->score();
    if (a->config->engine == i ? score <= 0 : score < WORTHWHILE) {
        return 0;
    }
    /* A text beside success is no reason. */
    nicbarrier_reason_t why = {""};
    if (nicbarrier_open_engine(i, &a->config->engines, &why) != 0) {
        a->why = why;
        return 0;
    }
    return (uint8_t)score;
}

/** Opens what this rank may need as a leader, being member `index` of the `n` of its node. False
 *  where that is not to be had and was asked for. */
static bool open_engines(nicbarrier_agreement_t *a, int index, int n)
{
    const int size = ompi_comm_size(a->comm), asked = a->config->engine;
    const int limit = nicbarrier_limit(&a->options, n, size);
    if (limit == size || index % limit != 0) {
        return true;
    }
    const bool jobs = nicbarrier_several_jobs(a->comm);
    bool able = true;
    for (int i = 0; nicbarrier_engines[i] != NULL; i++) {
        const bool serves =
            !jobs || (a->options.candidate[i].needs & NICBARRIER_NEEDS_ONE_JOB) == 0;
        if (a->options.candidate[i].network && serves && (asked < 0 || asked == i)) {
            a->mine.score[i] = open_engine(a, i);
            able = able && (asked != i || a->mine.score[i] > 0);
        }
    }
    return able;
}

/** The facts of this rank. */
static bool find_facts(nicbarrier_agreement_t *a)
{
    const onic_locality_t here = onic_locality();
    int index = 0, n = 0, first = -1;
    for (int r = 0; r < ompi_comm_size(a->comm); r++) {
        if (onic_node_has(a->comm, r)) {
            first = first < 0 ? r : first;
            n++;
            index += r < ompi_comm_rank(a->comm);
        }
    }
    a->mine = (nicbarrier_facts_t){.key = draw_key(),
                                   .job = OPAL_PROC_MY_NAME.jobid,
                                   .first = first,
                                   .where = {here.package, here.numa, here.cache}};
    return open_engines(a, index, n);
}

/** All memory that is needed, but for what depends on others. */
static bool allocate(nicbarrier_agreement_t *a)
{
    const size_t size = (size_t)ompi_comm_size(a->comm);
    a->facts = malloc(size * sizeof(*a->facts));
    a->room = malloc(3 * size * sizeof(*a->room));
    a->team = nicbarrier_team_new(&a->config->team);
    return a->facts != NULL && a->room != NULL && a->team != NULL;
}

/** Gets ready; false where this rank cannot go on. */
static bool begin(nicbarrier_agreement_t *a, bool able)
{
    a->engine = NICBARRIER_ANY_ENGINE;
    a->options = (nicbarrier_options_t){.engine = a->config->engine, .ppn = a->config->ppn};
    for (int i = 0; nicbarrier_engines[i] != NULL; i++) {
        a->options.candidate[i].needs = nicbarrier_engines[i]->needs;
        a->options.candidate[i].network = nicbarrier_engines[i]->network != NULL;
    }
    if (!able || !allocate(a)) {
        nicbarrier_reason(&a->why, "memory is exhausted");
        return false;
    }
    return find_facts(a);
}

/* ---- the whole ------------------------------------------------------------------------------ */

/** The nodes, and which ranks lead. Once more with names of segments where some process needs one.
 */
static int set_up_nodes(nicbarrier_agreement_t *a, int *able_p)
{
    int mapped = NICBARRIER_UNNAMED, rc = OMPI_SUCCESS;
    a->plan = nicbarrier_plan(&a->options, a->facts, ompi_comm_size(a->comm),
                              ompi_comm_rank(a->comm), a->room);
    for (int named = 0; named <= 1 && rc == OMPI_SUCCESS && mapped == NICBARRIER_UNNAMED; named++) {
        onic_segment_key_t key;
        if (named) {
            nicbarrier_team_free(a->team);
            a->team = nicbarrier_team_new(&a->config->team);
        }
        rc = nicbarrier_set_up_node(a, named, &key, &mapped);
        if (a->team == NULL ||
            (a->plan.leader >= 0 && a->plan.leaders > 1 && !nicbarrier_make_exchange(a))) {
            nicbarrier_reason(&a->why, "memory is exhausted");
            mapped = NICBARRIER_UNMAPPED;
        }
        rc = rc == OMPI_SUCCESS ? nicbarrier_least(a, &mapped) : rc;
        onic_node_hide(&key);
    }
    *able_p = rc == OMPI_SUCCESS && mapped == NICBARRIER_MAPPED;
    return rc;
}

static int agree(nicbarrier_agreement_t *a, int able)
{
    int rc = nicbarrier_least(a, &able);
    if (rc == OMPI_SUCCESS && able) {
        rc = onic_share(a->comm, &a->mine, sizeof(a->mine), a->facts);
    }
    if (rc == OMPI_SUCCESS && able) {
        rc = set_up_nodes(a, &able);
    }
    if (rc != OMPI_SUCCESS || !able) {
        return rc;
    }
    if (a->plan.leaders > 1) {
        return nicbarrier_set_up_network(a);
    }
    a->engine = NODE_ENGINE;
    return OMPI_SUCCESS;
}

/* ---- the end -------------------------------------------------------------------------------- */

/** Why there is no team: by one rank, or by each that has seen an error. */
static void report(const nicbarrier_agreement_t *a, bool broken)
{
    static atomic_bool reported;
    const int me = ompi_comm_rank(a->comm);
    const char *why = broken ? "a message has failed" : a->why.text;
    const bool mine = broken || a->reporter == me || (a->reporter == INT_MAX && me == 0);
    if (mine && why[0] != '\0' && !atomic_exchange(&reported, true)) {
        char name[256] = "?";
        (void)gethostname(name, sizeof(name) - 1);
        opal_output(0, "coll_nicbarrier: barriers of communicator \"%s\" %s: %s (rank %d on %s)",
                    a->comm->c_name,
                    broken ? "fail, because the agreement on an engine has ended in an error"
                           : "are left to the module below",
                    why, me, name);
    }
}

nicbarrier_team_t *nicbarrier_agree(struct ompi_communicator_t *comm,
                                    const nicbarrier_agreement_config_t *config, bool able,
                                    int *rc_p)
{
    nicbarrier_agreement_t a = {.comm = comm, .config = config};
    *rc_p = agree(&a, begin(&a, able));
    nicbarrier_team_t *team = a.team;
    if (a.engine != NICBARRIER_ANY_ENGINE) {
        team->kind = a.engine;
        team->engine = nicbarrier_engines[a.engine];
    } else {
        report(&a, *rc_p != OMPI_SUCCESS);
        if (*rc_p != OMPI_SUCCESS && team != NULL) {
            nicbarrier_team_fail(team);
        }
        nicbarrier_team_free(team);
        team = NULL;
    }
    free(a.exchange);
    free(a.room);
    free(a.facts);
    return team;
}
