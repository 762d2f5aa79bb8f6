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

/** A key that no other group has: at random, or the time where the kernel gives nothing. */
static uint64_t draw_key(void)
{
    uint64_t key = onic_now_nsec();
    (void)getrandom(&key, sizeof(key), GRND_NONBLOCK);
    return key != 0 ? key : 1;
}

/** Opens the engine if it may be needed; its score, or 0. */
static uint8_t open_engine(nicbarrier_agreement_t *a, int i)
{
    const nicbarrier_engine_t *engine = nicbarrier_engines[i];
    const int score = engine->score();
    if (a->options.engine == i ? score <= 0 : score < WORTHWHILE)
        return 0;
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
    const int size = ompi_comm_size(a->comm), asked = a->options.engine;
    const int limit = nicbarrier_limit(&a->options, n, size);
    if (limit == size || index % limit != 0)
        return true;
    bool able = true;
    for (int i = 0; nicbarrier_engines[i] != NULL; i++) {
        if (a->options.network[i] && (asked < 0 || asked == i)) {
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
    a->mine = (nicbarrier_facts_t){
        .key = draw_key(), .first = first, .where = {here.package, here.numa, here.cache}};
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
    a->options = (nicbarrier_options_t){.engine = a->config->engine - 1, .ppn = a->config->ppn};
    for (int i = 0; nicbarrier_engines[i] != NULL; i++)
        a->options.network[i] = nicbarrier_engines[i]->network != NULL;
    if (!able || !allocate(a)) {
        nicbarrier_reason(&a->why, "memory is exhausted");
        return false;
    }
    return find_facts(a);
}

/* ---- nodes ---------------------------------------------------------------------------------- */

/** Of the members of a node so many each stand behind one leader, and have an area of its segment:
 *  members of the area that begins with member `first`, and where it lies. */
static int in_area(const nicbarrier_plan_t *p, int first)
{
    return p->n - first < p->limit ? p->n - first : p->limit;
}

static size_t offset_of(const nicbarrier_plan_t *p, int first)
{
    return (size_t)(first / p->limit) * nicbarrier_shm_bytes(p->limit);
}

/** The first of a node: all areas. False where memory is exhausted. */
static bool arrange(const nicbarrier_agreement_t *a, const onic_node_t *node, char *base)
{
    const nicbarrier_plan_t *p = &a->plan;
    nicbarrier_locality_t *where = malloc((size_t)p->n * sizeof(*where));
    bool done = where != NULL;
    for (int i = 0; done && i < p->n; i++)
        where[i] = a->facts[node->ranks[i]].where;
    for (int first = 0; done && first < p->n; first += p->limit) {
        done = nicbarrier_shm_arrange(base + offset_of(p, first), in_area(p, first), where + first,
                                      nicbarrier_shm_fanout) == 0;
    }
    free(where);
    return done;
}

/** A segment for the node, as the plan says; the first arranges it. */
static int make_node(nicbarrier_agreement_t *a, onic_segment_t *segment, int *able_p)
{
    const nicbarrier_plan_t *p = &a->plan;
    const int first = p->index / p->limit * p->limit;
    onic_node_t node;
    onic_made_t made;
    onic_node_find(a->comm, &a->facts[0].first, sizeof(a->facts[0]), &node);
    const int rc =
        onic_node_segment(a->comm, &node, offset_of(p, p->n + p->limit - 1), false, segment, &made);
    *able_p = rc == OMPI_SUCCESS && made == ONIC_MADE;
    if (*able_p) {
        nicbarrier_shm_introduce((char *)segment->base + offset_of(p, first), in_area(p, first),
                                 p->index - first);
        *able_p = p->index > 0 || arrange(a, &node, segment->base);
    }
    if (!*able_p) {
        nicbarrier_reason(&a->why, "%s",
                          made == ONIC_MADE       ? "memory is exhausted"
                          : made == ONIC_NO_SPACE ? "no shared memory can be had"
                                                  : "processes of a node cannot share memory "
                                                    "(coll_nicbarrier_ppn 1 does without)");
    }
    onic_node_fini(&node);
    return rc;
}

/** The nodes, and which ranks lead. */
static int set_up_nodes(nicbarrier_agreement_t *a, int *able_p)
{
    onic_segment_t segment = {NULL, 0};
    a->plan = nicbarrier_plan(&a->options, a->facts, ompi_comm_size(a->comm),
                              ompi_comm_rank(a->comm), a->room);
    const nicbarrier_plan_t *p = &a->plan;
    const int first = p->index / p->limit * p->limit, n = in_area(p, first);
    int rc = p->limit > 1 ? make_node(a, &segment, able_p) : OMPI_SUCCESS;
    if (p->leader >= 0 && p->leaders > 1 && !nicbarrier_make_exchange(a)) {
        nicbarrier_reason(&a->why, "memory is exhausted");
        *able_p = false;
    }
    rc = rc == OMPI_SUCCESS ? nicbarrier_least(a, able_p) : rc;
    if (rc == OMPI_SUCCESS && *able_p && n > 1) {
        nicbarrier_team_attach(a->team, &segment, offset_of(p, first), n, p->index - first,
                               nicbarrier_shm_fanout, n < p->size);
    }
    onic_segment_unmap(&segment);
    return rc;
}

/* ---- the whole ------------------------------------------------------------------------------ */

static int agree(nicbarrier_agreement_t *a, int able)
{
    int rc = nicbarrier_least(a, &able);
    if (rc == OMPI_SUCCESS && able)
        rc = onic_share(a->comm, &a->mine, sizeof(a->mine), a->facts);
    if (rc == OMPI_SUCCESS && able)
        rc = set_up_nodes(a, &able);
    if (rc != OMPI_SUCCESS || !able)
        return rc;
    if (a->plan.leaders > 1)
        return nicbarrier_set_up_network(a);
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
        nicbarrier_team_begin(team);
    } else {
        report(&a, *rc_p != OMPI_SUCCESS);
        if (*rc_p != OMPI_SUCCESS && team != NULL)
            nicbarrier_team_fail(team);
        nicbarrier_team_free(team);
        team = NULL;
    }
    free(a.exchange);
    free(a.room);
    free(a.facts);
    return team;
}
