/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "coll_nicbarrier/agree/local.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "coll_nicbarrier/agree/open.h"
#include "common/support/clock.h"
#include "ompi/group/group.h"
#include "opal/util/proc.h"

/** What an engine must score to be opened unasked: that of messages without an adapter. Those below
 *  do no better than the module below, and would cost memory for each process. */
#define WORTHWHILE 50

_Static_assert(sizeof(onic_segment_key_t) <= NICBARRIER_SEGMENT_KEY, "a key fits into a message");

/** Somebody of this node could not map a segment of it. From then on all its processes open
 *  engines, so that they can be nodes of their own; for the first communicator it is too late. */
static atomic_bool apart;

/* ---- what a rank brings -----------------------------------------------------------------------
 */

/** A key that no other group has: at random, or who draws it and when, where the kernel gives
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

/** Who shares my node, and my index there. Looks at all ranks, and keeps nothing of it. */
static int view_node(struct ompi_communicator_t *comm, nicbarrier_setup_t *setup)
{
    int index = 0;
    setup->first = -1;
    for (int32_t r = 0; r < setup->size; r++) {
        if (onic_node_has(comm, r)) {
            setup->first = setup->first < 0 ? r : setup->first;
            setup->n++;
            index += r < setup->me;
        }
    }
    return index;
}

static bool several_jobs(struct ompi_communicator_t *comm)
{
    for (int r = 0; r < ompi_comm_size(comm); r++) {
        if (ompi_group_get_proc_name(comm->c_local_group, r).jobid != OPAL_PROC_MY_NAME.jobid) {
            return true;
        }
    }
    return false;
}

/** Opens the engine if it may be needed; its score, or 0. */
static uint8_t open_engine(nicbarrier_local_t *local, const nicbarrier_agreement_config_t *config,
                           int i)
{
    const nicbarrier_engine_t *engine = nicbarrier_engines[i];
    const int score = engine->score();
    if (config->engine == i ? score <= 0 : score < WORTHWHILE) {
        return 0;
    }
    /* What an engine does without it may say, too: that is no reason. */
    nicbarrier_reason_t why = {""};
    if (nicbarrier_engine_open(i, &config->engines, &why) != 0) {
        local->why = why;
        return 0;
    }
    return (uint8_t)score;
}

/** Opens what this rank may need as a leader. */
static void open_engines(nicbarrier_local_t *local, const nicbarrier_agreement_config_t *config,
                         int index, nicbarrier_setup_t *setup)
{
    const int32_t limit = nicbarrier_protocol_limit(setup);
    const bool by_network = limit < setup->size;
    const bool leads = index % limit == 0 || atomic_load(&apart);
    const bool jobs = by_network && leads && several_jobs(local->comm);
    for (int i = 0; nicbarrier_engines[i] != NULL; i++) {
        nicbarrier_candidate_t *c = &setup->candidate[i];
        const bool serves = !jobs || (c->needs & NICBARRIER_NEEDS_ONE_JOB) == 0;
        const bool wanted = config->engine < 0 || config->engine == i;
        if (c->network && wanted && serves && by_network && leads) {
            c->score = open_engine(local, config, i);
            setup->failed |= config->engine == i && c->score == 0;
        }
    }
}

void nicbarrier_local_init(nicbarrier_local_t *local, struct ompi_communicator_t *comm,
                           const nicbarrier_agreement_config_t *config, bool failed,
                           nicbarrier_setup_t *setup)
{
    memset(local, 0, sizeof(*local));
    local->comm = comm;
    local->trials = config->trials;
    *setup = (nicbarrier_setup_t){.size = ompi_comm_size(comm),
                                  .me = ompi_comm_rank(comm),
                                  .ppn = config->ppn,
                                  .number = config->number,
                                  .settings = config->settings,
                                  .key = draw_key(),
                                  .job = OPAL_PROC_MY_NAME.jobid,
                                  .engine = (int8_t)config->engine,
                                  .schedule = (uint8_t)config->engines.schedule};
    for (int i = 0; nicbarrier_engines[i] != NULL; i++) {
        setup->candidate[i].needs = (uint8_t)nicbarrier_engines[i]->needs;
        setup->candidate[i].network = nicbarrier_engines[i]->network != NULL;
    }
    int index = view_node(comm, setup);
    local->team = failed ? NULL : nicbarrier_team_new(&config->team);
    if (local->team == NULL) {
        nicbarrier_reason(&local->why, "memory is exhausted");
        setup->failed = true;
        return;
    }
    open_engines(local, config, index, setup);
}

static void forget_endpoints(nicbarrier_local_t *local)
{
    for (int i = 0; i < local->endpoints; i++) {
        free((void *)(uintptr_t)local->endpoint[i].bytes);
    }
    local->endpoints = 0;
}

void nicbarrier_local_abandon(nicbarrier_local_t *local)
{
    nicbarrier_team_free(local->team);
    local->team = NULL;
    onic_node_hide(&local->key);
    onic_segment_unmap(&local->segment);
    forget_endpoints(local);
    free(local->table);
}

void nicbarrier_local_fini(nicbarrier_local_t *local)
{
    nicbarrier_local_abandon(local);
    for (int i = 0; i < local->attempts; i++) {
        free(local->outgoing[i]);
    }
}

/* ---- the node ---------------------------------------------------------------------------------
 */

int32_t nicbarrier_local_member(void *arg, int32_t after)
{
    nicbarrier_local_t *local = arg;
    for (int32_t r = after + 1; r < ompi_comm_size(local->comm); r++) {
        if (onic_node_has(local->comm, r)) {
            return r;
        }
    }
    return -1;
}

/** Of the area that begins with a member. */
static int in_area(const nicbarrier_local_t *local, int first)
{
    int left = local->n - first;
    return left < local->limit ? left : local->limit;
}

static size_t offset_of(const nicbarrier_local_t *local, int first)
{
    return (size_t)(first / local->limit) * nicbarrier_shm_bytes(local->limit);
}

static size_t segment_bytes(const nicbarrier_local_t *local)
{
    return offset_of(local, local->n + local->limit - 1);
}

/** Says where I run. */
static void introduce(nicbarrier_local_t *local)
{
    onic_locality_t here = onic_locality();
    nicbarrier_locality_t where = {here.package, here.numa, here.cache};
    int first = local->index / local->limit * local->limit;
    nicbarrier_shm_introduce((char *)local->segment.base + offset_of(local, first),
                             in_area(local, first), local->index - first, &where);
}

bool nicbarrier_local_make(void *arg, int32_t n, int32_t limit, bool named, unsigned char *key)
{
    nicbarrier_local_t *local = arg;
    onic_node_hide(&local->key);
    onic_segment_unmap(&local->segment);
    local->n = n;
    local->limit = limit;
    local->index = 0;
    bool made = onic_node_make(segment_bytes(local), named, &local->key, &local->segment);
    if (made) {
        introduce(local);
    }
    memset(key, 0, NICBARRIER_SEGMENT_KEY);
    memcpy(key, &local->key, sizeof(local->key));
    return made;
}

nicbarrier_mapped_t nicbarrier_local_map(void *arg, const unsigned char *key, int32_t index,
                                         int32_t n, int32_t limit)
{
    nicbarrier_local_t *local = arg;
    onic_segment_key_t theirs;
    memcpy(&theirs, key, sizeof(theirs));
    local->n = n;
    local->limit = limit;
    local->index = index;
    switch (onic_node_map(&theirs, segment_bytes(local), &local->segment)) {
    case ONIC_JOINED:
        introduce(local);
        return NICBARRIER_MAPPED;
    case ONIC_NEEDS_NAME:
        return NICBARRIER_UNNAMED;
    default:
        return NICBARRIER_UNMAPPED;
    }
}

/** The first, when all have introduced themselves. */
static bool arrange(nicbarrier_local_t *local)
{
    for (int first = 0; first < local->n; first += local->limit) {
        int n = in_area(local, first);
        if (n > 1 && nicbarrier_shm_arrange((char *)local->segment.base + offset_of(local, first),
                                            n, nicbarrier_shm_config.fanout) != 0) {
            return false;
        }
    }
    return true;
}

bool nicbarrier_local_settle(void *arg, bool shared, bool others)
{
    nicbarrier_local_t *local = arg;
    onic_node_hide(&local->key);
    if (!shared) {
        atomic_store(&apart, true);
        nicbarrier_reason(&local->why, "processes of a node cannot share memory "
                                       "(coll_nicbarrier_ppn 1 does without)");
        onic_segment_unmap(&local->segment);
        return true;
    }
    int first = local->index / local->limit * local->limit, n = in_area(local, first);
    bool done = (local->index > 0 || arrange(local)) &&
                (n < 2 || nicbarrier_team_attach(local->team, &local->segment,
                                                 offset_of(local, first), n, local->index - first,
                                                 nicbarrier_shm_config.fanout, others) == 0);
    onic_segment_unmap(&local->segment);
    if (!done) {
        nicbarrier_reason(&local->why, "memory is exhausted");
    }
    return done;
}

/* ---- leaders ----------------------------------------------------------------------------------
 */

bool nicbarrier_local_prepare(void *arg, int engine, const nicbarrier_group_t *group)
{
    nicbarrier_local_t *local = arg;
    nicbarrier_outgoing_t *out = malloc(sizeof(*out));
    local->outgoing[local->attempts++] = out;
    if (out == NULL) {
        nicbarrier_reason(&local->why, "memory is exhausted");
        return false;
    }
    out->len = 0;
    local->team->kind = engine;
    local->team->engine = nicbarrier_engines[engine];
    nicbarrier_reason_t why = {""};
    if (nicbarrier_team_prepare(local->team, group, out->bytes + NICBARRIER_TOPIC_SIZE, &out->len,
                                &why) != 0) {
        local->why = why;
        out->len = 0;
        return false;
    }
    return true;
}

bool nicbarrier_local_keep(void *arg, int32_t member, const void *bytes, size_t len)
{
    nicbarrier_local_t *local = arg;
    unsigned char *copy = malloc(len);
    if (copy == NULL) {
        nicbarrier_reason(&local->why, "memory is exhausted");
        return false;
    }
    memcpy(copy, bytes, len);
    local->endpoint[local->endpoints++] = (nicbarrier_endpoint_t){member, (uint32_t)len, copy};
    return true;
}

bool nicbarrier_local_connect(void *arg)
{
    nicbarrier_local_t *local = arg;
    nicbarrier_endpoints_t all = {local->endpoints, local->endpoint};
    nicbarrier_reason_t why = {""};
    if (nicbarrier_team_connect(local->team, &all, &why) != 0) {
        local->why = why;
        return false;
    }
    nicbarrier_team_begin_trial(local->team);
    local->connected = true;
    return true;
}

void nicbarrier_local_expect(void *arg)
{
    nicbarrier_local_t *local = arg;
    nicbarrier_team_expect(local->team);
    (*local->trials)++;
}

int nicbarrier_local_trial(void *arg)
{
    nicbarrier_local_t *local = arg;
    if (nicbarrier_team_trial_done(local->team)) {
        return 1;
    }
    return nicbarrier_team_trial_hopeless(local->team, &local->why) ? -1 : 0;
}

void nicbarrier_local_drop(void *arg)
{
    nicbarrier_local_t *local = arg;
    nicbarrier_team_drop_network(local->team);
    local->connected = false;
    local->team->prepared = false;
    forget_endpoints(local);
}

uint32_t *nicbarrier_local_table(void *arg, int32_t n)
{
    nicbarrier_local_t *local = arg;
    local->table = calloc((size_t)n, sizeof(*local->table));
    return local->table;
}
