/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "coll_nicbarrier/agree/agree.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "coll_nicbarrier/agree/exchange.h"
#include "coll_nicbarrier/component/module.h"
#include "common/node.h"
#include "ompi/constants.h"
#include "opal/util/output.h"
#include "opal/util/proc.h"

/** What each rank says first. */
typedef struct hello {
    uint64_t key;      /**< a random number; rank 0's names the group */
    uint64_t settings; /**< a hash of what must be the same everywhere */
    onic_node_offer_t node;
    nicbarrier_locality_t where;
    uint32_t job;
    uint8_t score[NICBARRIER_ENGINES_MAX]; /**< of each engine, here */
} hello_t;

typedef enum step {
    HELLO,
    MAPPED,
    INTRODUCED,
    ARRANGED,
    LENGTHS,
    ENDPOINTS,
    CONNECTED,
    TRIAL,
    RESULT
} step_t;

struct nicbarrier_agreement {
    struct ompi_communicator_t *comm;
    int size;
    int me;
    step_t step;
    nicbarrier_exchange_t x;
    hello_t mine;
    hello_t *hello;           /**< of all ranks */
    onic_node_offer_t *nodes; /**< the part of it that node.h wants */
    int32_t *answer;          /**< of all ranks: mapped, then failed */
    bool failed;              /**< here */
    bool declined;            /**< everywhere, and everybody knows */
    nicbarrier_reason_t why;

    size_t bytes; /**< of the node's segment */
    onic_segment_t segment;
    onic_node_t node;
    size_t offset;    /**< of their flags in the segment */
    int first, n;     /**< those of the node that gather in shared memory: a part of node.ranks */
    int *leader;      /**< ranks of the leaders, ascending */
    int leaders;      /**< how many */
    int leader_index; /**< mine, or -1 */

    int kind; /**< the engine's number */
    nicbarrier_team_t *team;
    unsigned char *endpoint; /**< mine */
    uint32_t endpoint_len;
    uint32_t *endpoint_lens; /**< of all leaders */
    unsigned char *endpoints;
    size_t stride;
};

static const nicbarrier_params_t *params(void)
{
    return &mca_coll_nicbarrier_component.params;
}

#define FAIL(a, ...)                                                                               \
    do {                                                                                           \
        (a)->failed = true;                                                                        \
        nicbarrier_reason(&(a)->why, __VA_ARGS__);                                                 \
    } while (0)

/** What all ranks have found out by the same words: no further exchange is needed. */
#define DECLINE(a, ...)                                                                            \
    do {                                                                                           \
        (a)->declined = true;                                                                      \
        nicbarrier_reason(&(a)->why, __VA_ARGS__);                                                 \
    } while (0)

static int exchange(nicbarrier_agreement_t *a, step_t step, const void *mine, size_t len, void *all)
{
    a->step = step;
    return nicbarrier_exchange_start(&a->x, a->comm, NULL, a->size, a->me, mine, len, all);
}

static int exchange_leaders(nicbarrier_agreement_t *a, step_t step, const void *mine, size_t len,
                            void *all)
{
    a->step = step;
    return nicbarrier_exchange_start(&a->x, a->comm, a->leader, a->leaders, a->leader_index, mine,
                                     len, all);
}

static int start_result(nicbarrier_agreement_t *a)
{
    int32_t failed = a->failed;
    return exchange(a, RESULT, &failed, sizeof(failed), a->answer);
}

/* ---- hello ---------------------------------------------------------------------------------- */

/** Processes that gather in shared memory at most. */
static int gathered(int n)
{
    int limit = params()->ppn;
    return limit > 0 && limit < n ? limit : n;
}

/** Enough for all to be one group, or for groups of limited size. */
static size_t segment_bytes(int n)
{
    int each = gathered(n), groups = (n + each - 1) / each;
    size_t whole = nicbarrier_shm_bytes(n), parts = (size_t)groups * nicbarrier_shm_bytes(each);
    return whole > parts ? whole : parts;
}

static uint64_t now_nsec(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

/** A key that no other group has: at random, or who draws it and when, where the kernel gives
 *  nothing. */
static uint64_t draw_key(void)
{
    uint64_t key = 0;
    if (getrandom(&key, sizeof(key), GRND_NONBLOCK) != (ssize_t)sizeof(key)) {
        key = ((uint64_t)OPAL_PROC_MY_NAME.jobid << 32 | OPAL_PROC_MY_NAME.vpid) ^ now_nsec() << 16;
    }
    return key != 0 ? key : 1;
}

static hello_t make_hello(nicbarrier_agreement_t *a)
{
    hello_t hello;
    memset(&hello, 0, sizeof(hello));
    hello.key = draw_key();
    onic_locality_t here = onic_locality();
    hello.settings = params()->fingerprint;
    hello.where = (nicbarrier_locality_t){here.package, here.numa, here.cache};
    hello.job = OPAL_PROC_MY_NAME.jobid;
    for (int i = 0; i < NICBARRIER_ENGINES_MAX && nicbarrier_engines[i] != NULL; i++) {
        hello.score[i] = (uint8_t)nicbarrier_engines[i]->score();
    }
    a->bytes = segment_bytes(onic_node_flagged(a->comm));
    hello.node = onic_node_offer(a->comm, a->bytes, &a->segment);
    return hello;
}

nicbarrier_agreement_t *nicbarrier_agreement_start(struct ompi_communicator_t *comm, int *rc_p)
{
    nicbarrier_agreement_t *a = calloc(1, sizeof(*a));
    *rc_p = OMPI_ERR_OUT_OF_RESOURCE;
    if (a == NULL) {
        return NULL;
    }
    size_t n = (size_t)ompi_comm_size(comm);
    a->comm = comm;
    a->size = (int)n;
    a->me = ompi_comm_rank(comm);
    a->leader_index = -1;
    a->hello = malloc(n * sizeof(*a->hello));
    a->nodes = malloc(n * sizeof(*a->nodes));
    a->answer = malloc(n * sizeof(*a->answer));
    a->leader = malloc(n * sizeof(*a->leader));
    if (a->hello != NULL && a->nodes != NULL && a->answer != NULL && a->leader != NULL) {
        a->mine = make_hello(a);
        *rc_p = exchange(a, HELLO, &a->mine, sizeof(a->mine), a->hello);
    }
    if (*rc_p != OMPI_SUCCESS) {
        (void)nicbarrier_agreement_finish(a);
        a = NULL;
    }
    return a;
}

static int after_hello(nicbarrier_agreement_t *a)
{
    for (int i = 0; i < a->size; i++) {
        a->nodes[i] = a->hello[i].node;
        if (a->hello[i].settings != a->hello[0].settings) {
            DECLINE(a, "rank %d has other values of the parameters coll_nicbarrier_* than rank 0",
                    i);
            return 1;
        }
    }
    int32_t mapped = (int32_t)onic_node_join(a->nodes, a->me, a->bytes, &a->segment);
    return exchange(a, MAPPED, &mapped, sizeof(mapped), a->answer);
}

/* ---- mapped --------------------------------------------------------------------------------- */

/** Lists those that lead, each at most `limit` processes, and returns how many nodes there are. */
static int find_leaders(nicbarrier_agreement_t *a, int *count, int limit)
{
    int nodes = 0;
    a->leaders = 0;
    a->leader_index = -1;
    memset(count, 0, (size_t)a->size * sizeof(*count));
    for (int i = 0; i < a->size; i++) {
        int leader = onic_node_leader(a->nodes, i);
        int before = a->answer[i] ? count[leader]++ : 0;
        nodes += before == 0;
        if (before % limit == 0) {
            a->leader_index = i == a->me ? a->leaders : a->leader_index;
            a->leader[a->leaders++] = i;
        }
    }
    return nodes;
}

static bool several_jobs(const nicbarrier_agreement_t *a)
{
    for (int i = 1; i < a->size; i++) {
        if (a->hello[i].job != a->hello[0].job) {
            return true;
        }
    }
    return false;
}

/** How well all could do with an engine: as the one that could do worst. */
static int score_of_all(const nicbarrier_agreement_t *a, int kind)
{
    int least = 100;
    for (int i = 0; i < a->size; i++) {
        least = a->hello[i].score[kind] < least ? a->hello[i].score[kind] : least;
    }
    return least;
}

/** Does the engine serve these? */
static bool serves(const nicbarrier_agreement_t *a, int kind, int nodes)
{
    const unsigned needs = nicbarrier_engines[kind]->needs;
    return !((needs & NICBARRIER_NEEDS_ONE_NODE) != 0 && nodes > 1) &&
           !((needs & NICBARRIER_NEEDS_ONE_JOB) != 0 && several_jobs(a));
}

/** Everybody decides by the same knowledge. */
static void choose(nicbarrier_agreement_t *a, int nodes)
{
    int best = 0;
    a->kind = params()->engine;
    for (int i = 0; params()->engine == NICBARRIER_AUTO && nicbarrier_engines[i] != NULL; i++) {
        int score = serves(a, i, nodes) ? score_of_all(a, i) : 0;
        a->kind = score > best ? i : a->kind;
        best = score > best ? score : best;
    }
    if (a->kind == NICBARRIER_AUTO || !serves(a, a->kind, nodes)) {
        DECLINE(a, "engine %s does not serve these processes: %d nodes%s",
                nicbarrier_kind_name(a->kind), nodes, several_jobs(a) ? ", several jobs" : "");
    }
}

/** A network engine that was asked for on a single node works between its processes. */
static int limit_of(const nicbarrier_agreement_t *a, int nodes)
{
    if (nicbarrier_engines[a->kind]->network == NULL) {
        return a->size;
    }
    return params()->ppn > 0 ? params()->ppn : nodes == 1 ? 1 : a->size;
}

/** Where the flags stand of those who gather with me. */
static size_t find_part(nicbarrier_agreement_t *a, int limit)
{
    int part = a->node.me / limit, left;
    a->first = part * limit;
    left = a->node.n - a->first;
    a->n = left < limit ? left : limit;
    return (size_t)part * nicbarrier_shm_bytes(limit < a->node.n ? limit : a->node.n);
}

static char *flags_at(const nicbarrier_agreement_t *a)
{
    return (char *)a->segment.base + a->offset;
}

static void join_flags(nicbarrier_agreement_t *a)
{
    if (a->n > 1 && !a->failed &&
        nicbarrier_team_attach(a->team, &a->segment, a->offset, a->n, a->node.me - a->first,
                               nicbarrier_shm_config.fanout, a->leaders > 1) != 0) {
        FAIL(a, "memory is exhausted");
    }
}

/** Opens the engine and makes my endpoint; without success it has no bytes. */
static void make_endpoint(nicbarrier_agreement_t *a)
{
    nicbarrier_group_t group = {a->hello[0].key, a->leaders, a->leader_index};
    a->endpoint = calloc(1, NICBARRIER_ENDPOINT_MAX);
    if (a->endpoint == NULL) {
        FAIL(a, "memory is exhausted");
    } else if (!a->failed && (nicbarrier_net_open(a->kind, &a->why) != 0 ||
                              nicbarrier_team_prepare(a->team, &group, a->endpoint,
                                                      &a->endpoint_len, &a->why) != 0)) {
        a->failed = true;
        a->endpoint_len = 0;
    }
}

static int start_lengths(nicbarrier_agreement_t *a)
{
    make_endpoint(a);
    a->endpoint_lens = malloc((size_t)a->leaders * sizeof(*a->endpoint_lens));
    if (a->endpoint_lens == NULL) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    return exchange_leaders(a, LENGTHS, &a->endpoint_len, sizeof(a->endpoint_len),
                            a->endpoint_lens);
}

static int after_mapped(nicbarrier_agreement_t *a)
{
    bool complete;
    onic_node_withdraw(&a->mine.node);
    if (onic_node_again(a->answer, a->size)) {
        onic_segment_unmap(&a->segment);
        a->mine.node = onic_node_offer(a->comm, a->bytes, &a->segment);
        return exchange(a, HELLO, &a->mine, sizeof(a->mine), a->hello);
    }
    int rc = onic_node_settle(&a->node, a->nodes, a->answer, a->size, a->me, &complete);
    const nicbarrier_team_config_t config = nicbarrier_team_config();
    a->team = nicbarrier_team_new(&config);
    if (rc != OMPI_SUCCESS || a->team == NULL) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    /* Counts by leader: node.index has room for them, and is not needed here. */
    int nodes = find_leaders(a, a->node.index, a->size);
    choose(a, nodes);
    if (a->declined) {
        return 1;
    }
    int limit = limit_of(a, nodes);
    (void)find_leaders(a, a->node.index, limit);
    a->team->kind = a->leaders > 1 ? a->kind : NICBARRIER_SHM;
    a->team->engine = nicbarrier_engines[a->kind];
    a->offset = find_part(a, limit);
    if (a->n > 1) {
        nicbarrier_shm_introduce(flags_at(a), a->n, a->node.me - a->first, &a->mine.where);
    }
    int32_t failed = a->failed;
    return exchange(a, INTRODUCED, &failed, sizeof(failed), a->answer);
}

static int after_introduced(nicbarrier_agreement_t *a)
{
    if (a->n > 1 && a->node.me == a->first &&
        nicbarrier_shm_arrange(flags_at(a), a->n, nicbarrier_shm_config.fanout) != 0) {
        FAIL(a, "memory is exhausted");
    }
    int32_t failed = a->failed;
    return exchange(a, ARRANGED, &failed, sizeof(failed), a->answer);
}

static int after_arranged(nicbarrier_agreement_t *a)
{
    join_flags(a);
    return a->leaders > 1 && a->leader_index >= 0 ? start_lengths(a) : start_result(a);
}

/* ---- endpoints ---------------------------------------------------------------------------------
 */

static int after_lengths(nicbarrier_agreement_t *a)
{
    for (int i = 0; i < a->leaders; i++) {
        if (a->endpoint_lens[i] == 0 || a->endpoint_lens[i] > NICBARRIER_ENDPOINT_MAX) {
            return start_result(a);
        }
        a->stride = a->endpoint_lens[i] > a->stride ? a->endpoint_lens[i] : a->stride;
    }
    a->stride = (a->stride + 15) / 16 * 16;
    a->endpoints = malloc((size_t)a->leaders * a->stride);
    if (a->endpoints == NULL) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    a->team->prepared = true;
    return exchange_leaders(a, ENDPOINTS, a->endpoint, a->stride, a->endpoints);
}

static int after_endpoints(nicbarrier_agreement_t *a)
{
    nicbarrier_endpoint_t *list = malloc((size_t)a->leaders * sizeof(*list));
    if (list == NULL) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    for (int i = 0; i < a->leaders; i++) {
        list[i] =
            (nicbarrier_endpoint_t){i, a->endpoint_lens[i], a->endpoints + (size_t)i * a->stride};
    }
    nicbarrier_endpoints_t endpoints = {a->leaders, list};
    if (nicbarrier_team_connect(a->team, &endpoints, &a->why) != 0) {
        a->failed = true;
    } else {
        nicbarrier_team_begin_trial(a->team);
    }
    free(list);
    int32_t failed = a->failed;
    return exchange_leaders(a, CONNECTED, &failed, sizeof(failed), a->answer);
}

/** All leaders are there. Where one has failed the result will say so. */
static int after_connected(nicbarrier_agreement_t *a)
{
    for (int i = 0; i < a->leaders; i++) {
        if (a->answer[i]) {
            return start_result(a);
        }
    }
    nicbarrier_team_expect(a->team);
    nicbarrier_counters.trials++;
    a->step = TRIAL;
    return OMPI_SUCCESS;
}

/** Returns OMPI_SUCCESS with the trial still under way, or with the last exchange started. */
static int go_on_with_trial(nicbarrier_agreement_t *a)
{
    if (nicbarrier_team_trial_done(a->team)) {
        return start_result(a);
    }
    if (nicbarrier_team_trial_hopeless(a->team, &a->why)) {
        a->failed = true;
        return start_result(a);
    }
    return OMPI_SUCCESS;
}

static int after_result(nicbarrier_agreement_t *a)
{
    for (int i = 0; i < a->size && !a->declined; i++) {
        if (a->answer[i]) {
            a->declined = true;
            a->failed = i == a->me;
        }
    }
    return 1;
}

/* ---- the whole ------------------------------------------------------------------------------ */

/** Returns 0 where another exchange was started, 1 at the end. */
static int next_step(nicbarrier_agreement_t *a)
{
    switch (a->step) {
    case HELLO:
        return after_hello(a);
    case MAPPED:
        return after_mapped(a);
    case INTRODUCED:
        return after_introduced(a);
    case ARRANGED:
        return after_arranged(a);
    case LENGTHS:
        return after_lengths(a);
    case ENDPOINTS:
        return after_endpoints(a);
    case CONNECTED:
        return after_connected(a);
    default:
        return after_result(a);
    }
}

int nicbarrier_agreement_progress(nicbarrier_agreement_t *a)
{
    int rc;
    do {
        if (a->step == TRIAL) {
            rc = go_on_with_trial(a);
            if (rc != OMPI_SUCCESS || a->step == TRIAL) {
                break;
            }
        }
        rc = nicbarrier_exchange_progress(&a->x);
        if (rc == 1) {
            rc = next_step(a);
        } else if (rc == 0) {
            return 0;
        }
    } while (rc == OMPI_SUCCESS);
    if (rc == OMPI_SUCCESS) {
        return 0;
    }
    a->declined = a->declined || rc != 1;
    return rc;
}

/** Where all know, the first rank speaks; otherwise the first of those that failed. */
static void tell(const nicbarrier_agreement_t *a)
{
    static _Atomic bool told;
    bool mine = a->step == RESULT ? a->failed : a->me == 0;
    if (mine && a->why.text[0] != '\0' && !atomic_exchange(&told, true)) {
        char host[256] = "?";
        (void)gethostname(host, sizeof(host) - 1);
        opal_output(
            0,
            "coll_nicbarrier: barriers of communicator \"%s\" are left to the module below: "
            "%s (rank %d on %s)",
            a->comm->c_name, a->why.text, a->me, host);
    }
}

nicbarrier_team_t *nicbarrier_agreement_finish(nicbarrier_agreement_t *a)
{
    nicbarrier_team_t *team = a->team;
    if (a->declined) {
        tell(a);
        nicbarrier_team_free(team);
        team = NULL;
    }
    onic_node_withdraw(&a->mine.node);
    onic_segment_unmap(&a->segment);
    onic_node_fini(&a->node);
    free(a->hello);
    free(a->nodes);
    free(a->answer);
    free(a->leader);
    free(a->endpoint);
    free(a->endpoint_lens);
    free(a->endpoints);
    free(a);
    return team;
}
