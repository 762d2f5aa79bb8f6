/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The agreement as a whole: see agree.h. */
#include "coll_nicbarrier/agree/agree.h"

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "coll_nicbarrier/agree/plan.h"
#include "common/transport/shm/node.h"
#include "common/support/clock.h"
#include "common/support/collective.h"
#include "ompi/constants.h"
#include "ompi/datatype/ompi_datatype.h"
#include "ompi/group/group.h"
#include "ompi/mca/coll/base/coll_tags.h"
#include "ompi/mca/pml/pml.h"
#include "ompi/request/request.h"
#include "opal/runtime/opal_progress.h"
#include "opal/util/output.h"
#include "opal/util/proc.h"

/** The least score at which an engine is used without being named. A lower one does no better than
 *  the module below. */
#define WORTHWHILE 50
/** The tag next to those of Open MPI's collectives, which go downwards from the one of allgather.
 *  It has none of its own between that and MPI_ANY_TAG. */
#define TAG           (MCA_COLL_BASE_TAG_ALLGATHER + 1)
#define TRIAL_SECONDS 10

nicbarrier_agreements_t nicbarrier_agreements;

/* ---- an agreement ---------------------------------------------------------------------------
 *
 * Functions return OMPI_SUCCESS, or the error of a message that has failed. What this rank cannot
 * do is no error, but takes part in the next allreduce.
 */

/** A leader's buffers: its own endpoint and those of its partners. Never freed after a message has
 *  failed, since other messages may still use them. */
typedef struct exchange {
    nicbarrier_group_t group;
    int partners;
    int32_t partner[NICBARRIER_PARTNERS_MAX];
    nicbarrier_endpoint_t mine, theirs[NICBARRIER_PARTNERS_MAX];
} exchange_t;

typedef struct agreement {
    struct ompi_communicator_t *comm;
    const nicbarrier_agreement_config_t *config;
    nicbarrier_options_t options;
    nicbarrier_facts_t mine;
    nicbarrier_facts_t *facts; /**< the facts of all ranks */
    int32_t *room;             /**< memory for the plan */
    nicbarrier_plan_t plan;
    nicbarrier_team_t *team;
    exchange_t *exchange; /**< of a leader among several */
    int engine;           /**< the engine agreed on, or NICBARRIER_ANY_ENGINE */
    nicbarrier_reason_t why;
    int reporter; /**< the rank that reports why there is no team */
} agreement_t;

/** Memory without which there is no agreement. */
static void *need(const agreement_t *a, void *memory)
{
    if (memory == NULL)
        onic_abort_no_memory(a->comm, "a barrier");
    return memory;
}

/** An allreduce over all ranks: *value_p becomes the least value of all, and a->reporter the first
 *  rank with a reason. */
static int least(agreement_t *a, int *value_p)
{
    int values[] = {a->why.text[0] != '\0' ? ompi_comm_rank(a->comm) : INT_MAX, *value_p};
    const int rc = onic_agree_all(a->comm, values, 2);
    a->reporter = values[0];
    *value_p = values[1];
    return rc;
}

/* ---- engines --------------------------------------------------------------------------------- */

/** Serialises the making of engines and groups. */
static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;
static bool is_open[NICBARRIER_ENGINES_MAX];
/** An engine that could not be opened, or has not got through, is not tried again by this process,
 *  since that takes long. */
static atomic_bool is_barred[NICBARRIER_ENGINES_MAX];

void nicbarrier_close_engines(void)
{
    for (int i = 0; nicbarrier_engines[i] != NULL; i++) {
        if (is_open[i]) {
            nicbarrier_engines[i]->close();
            is_open[i] = false;
        }
    }
}

/* ---- what a rank brings --------------------------------------------------------------------- */

/** A key that no other group has: a random number, or the time if the kernel gives none. */
static uint64_t draw_key(void)
{
    uint64_t key;

    if (getrandom(&key, sizeof(key), GRND_NONBLOCK) != (ssize_t)sizeof(key))
        key = onic_now_nsec();
    return key != 0 ? key : 1;
}

/** The engine's score where this process may use it, else 0. */
static uint8_t score_of(agreement_t *a, int i)
{
    const nicbarrier_engine_t *engine = nicbarrier_engines[i];
    const int score = engine->score();
    if (a->options.engine == i ? score <= 0 : score < WORTHWHILE)
        return 0;
    if (atomic_load(&is_barred[i])) {
        nicbarrier_reason(&a->why, "engine %s has failed here before", engine->name);
        return 0;
    }
    return (uint8_t)score;
}

/** The facts of this rank. */
static void find_facts(agreement_t *a)
{
    const onic_locality_t here = onic_locality();
    int first = 0;
    while (!onic_node_has(a->comm, first))
        first++;
    a->mine =
        (nicbarrier_facts_t){.key = draw_key(),
                             .first = first,
                             .place = (uint64_t)(uint16_t)here.package << 32 |
                                      (uint64_t)(uint16_t)here.numa << 16 | (uint16_t)here.cache,
                             .processors = here.processors,
                             .processor_set = here.processor_set};
    for (int i = NICBARRIER_NODE_ENGINE + 1; nicbarrier_engines[i] != NULL; i++)
        a->mine.score[i] = score_of(a, i);
}

/* ---- nodes ---------------------------------------------------------------------------------- */

/** How this rank shares its processors with the others of its node. */
static nicbarrier_processors_t processors_of(const agreement_t *a)
{
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    return (long)opal_process_info.num_local_peers + 1 > online
               ? NICBARRIER_CROWDED
               : nicbarrier_plan_processors(a->facts, ompi_comm_size(a->comm),
                                            ompi_comm_rank(a->comm), online);
}

/** Makes the node's segment as the plan says. Each group of members behind one leader has an area
 *  of it. */
static int make_node(agreement_t *a, int *able_p)
{
    const nicbarrier_plan_t *p = &a->plan;
    const int area = p->index / p->limit, left = p->n - area * p->limit;
    const int n = left < p->limit ? left : p->limit;
    const size_t bytes = nicbarrier_shm_bytes(p->limit, NICBARRIER_SHM_FANOUT);
    const size_t areas = (size_t)((p->n + p->limit - 1) / p->limit);
    onic_segment_t segment;
    onic_node_t node;
    onic_made_t made;
    onic_node_find(a->comm, &a->facts[0].first, sizeof(a->facts[0]), &node);
    const int rc = onic_node_segment(a->comm, &node, areas * bytes, false, &segment, &made);
    *able_p = rc == OMPI_SUCCESS && made == ONIC_MADE;
    if (!*able_p) {
        nicbarrier_reason(&a->why, "%s",
                          made == ONIC_NO_SPACE ? "no shared memory can be had"
                                                : "processes of a node cannot share memory "
                                                  "(coll_nicbarrier_ppn 1 does without)");
    } else if (n > 1) {
        nicbarrier_team_attach(a->team, &segment, (size_t)area * bytes, n,
                               nicbarrier_plan_position(p, a->facts, ompi_comm_rank(a->comm)),
                               NICBARRIER_SHM_FANOUT, n < p->size);
    }
    onic_segment_unmap(&segment);
    onic_node_fini(&node);
    return rc;
}

/* ---- between leaders ------------------------------------------------------------------------- */

/** Exchanges endpoints with the partners. */
static int exchange(agreement_t *a)
{
    exchange_t *x = a->exchange;
    ompi_request_t *requests[NICBARRIER_PARTNERS_MAX];
    int rc = OMPI_SUCCESS, n = 0;
    for (; n < x->partners && rc == OMPI_SUCCESS; n += rc == OMPI_SUCCESS)
        rc = MCA_PML_CALL(irecv(&x->theirs[n], sizeof(x->theirs[n]), &ompi_mpi_byte.dt,
                                a->plan.rank[x->partner[n]], TAG, a->comm, &requests[n]));
    /* Each has posted its receives before it sends, so that none waits for another in a circle. */
    for (int i = 0; i < x->partners && rc == OMPI_SUCCESS; i++)
        rc = MCA_PML_CALL(send(&x->mine, offsetof(nicbarrier_endpoint_t, bytes) + x->mine.len,
                               &ompi_mpi_byte.dt, a->plan.rank[x->partner[i]], TAG,
                               MCA_PML_BASE_SEND_STANDARD, a->comm));
    for (int i = 0; i < n && rc == OMPI_SUCCESS; i++)
        rc = ompi_request_wait(&requests[i], MPI_STATUS_IGNORE);
    if (rc == OMPI_SUCCESS)
        return rc;
    /* The other messages may never come. */
    for (int i = 0; i < n; i++) {
        if (requests[i] != MPI_REQUEST_NULL) {
            (void)ompi_request_cancel(requests[i]);
            (void)ompi_request_free(&requests[i]);
        }
    }
    a->exchange = NULL;
    return rc;
}

/** Opens the engine, once in each process, and prepares the group. */
static bool prepare(agreement_t *a)
{
    exchange_t *x = a->exchange;
    const nicbarrier_engine_t *e = a->team->engine = nicbarrier_engines[a->engine];
    bool *open = &is_open[a->engine];
    x->mine.member = a->plan.leader;
    pthread_mutex_lock(&making);
    *open = *open || e->open(a->config->thread, &a->why) == 0;
    if (!*open)
        atomic_store(&is_barred[a->engine], true);
    const bool done = *open && e->prepare(&x->group, &a->team->net, &x->mine, &a->why) == 0;
    pthread_mutex_unlock(&making);
    if (!done)
        x->mine.len = 0;
    return done;
}

/** Connects with the partners. @return false if an endpoint is missing or the engine fails */
static bool connect_team(agreement_t *a)
{
    const exchange_t *x = a->exchange;
    const nicbarrier_endpoints_t all = {x->partners, x->theirs};
    for (int i = 0; i < x->partners; i++)
        if (x->theirs[i].len == 0 || x->theirs[i].len > sizeof(x->theirs[i].bytes))
            return false;
    nicbarrier_shm_t *node = a->team->on_node ? &a->team->shm : NULL;
    pthread_mutex_lock(&making);
    const bool connected = a->team->engine->connect(a->team->net, &all, node, &a->why) == 0;
    pthread_mutex_unlock(&making);
    /* What an engine has tried first is no reason. */
    if (connected)
        a->why.text[0] = '\0';
    return connected;
}

/** Run by leaders, when all leaders are connected: true if the trial epoch becomes complete. If one
 *  leader finds that it will not, the engine notifies the others, or they find out by themselves.
 *  All take part at the same time, so none is waited for; whoever has to wait very long for a
 *  processor only loses speed by it, since the module below serves then. */
static bool passes_trial(agreement_t *a)
{
    const nicbarrier_engine_t *e = a->team->engine;
    nicbarrier_net_t *net = a->team->net;
    const uint64_t end = onic_now_nsec() + TRIAL_SECONDS * UINT64_C(1000000000);
    __atomic_fetch_add(&nicbarrier_agreements.trials, 1, __ATOMIC_RELAXED);
    e->enter(net, NICBARRIER_TRIAL_EPOCH);
    while (e->completed(net) < NICBARRIER_TRIAL_EPOCH) {
        if (e->failed(net)) {
            nicbarrier_reason(&a->why, "the engine does not get through between all leaders");
            return false;
        }
        if (onic_now_nsec() > end) {
            nicbarrier_reason(&a->why,
                              "no way was found through the network to some leader of other "
                              "processes in %d seconds",
                              TRIAL_SECONDS);
            return false;
        }
        (void)e->progress(net);
        (void)opal_progress();
    }
    return true;
}

/** All ranks: the part between several leaders. Once an engine is connected, partners may need
 *  answers: its helper thread or Open MPI's progress gives them. */
static int set_up_network(agreement_t *a, int *able_p)
{
    const bool leads = a->plan.leader >= 0;
    int rc = OMPI_SUCCESS;
    a->why.text[0] = '\0';
    if (leads) {
        exchange_t *x = a->exchange = need(a, malloc(sizeof(*x)));
        x->group = (nicbarrier_group_t){
            .key = a->facts[0].key, .n = a->plan.leaders, .me = a->plan.leader};
        nicbarrier_group_plan(&x->group, (nicbarrier_schedule_kind_t)a->config->schedule);
        x->partners = nicbarrier_partners(&x->group, x->partner);
        *able_p = prepare(a);
        rc = exchange(a);
        *able_p = rc == OMPI_SUCCESS && *able_p && connect_team(a);
    }
    rc = rc == OMPI_SUCCESS ? least(a, able_p) : rc;
    if (rc != OMPI_SUCCESS || !*able_p)
        return rc;
    *able_p = !leads || passes_trial(a);
    rc = least(a, able_p);
    if (rc == OMPI_SUCCESS && !*able_p)
        atomic_store(&is_barred[a->engine], true);
    return rc;
}

static int agree(agreement_t *a)
{
    const int me = ompi_comm_rank(a->comm), size = ompi_comm_size(a->comm);
    find_facts(a);
    int able = false, rc = onic_share(a->comm, &a->mine, sizeof(a->mine), a->facts);
    if (rc == OMPI_SUCCESS) {
        a->plan = nicbarrier_plan(&a->options, a->facts, size, me, a->room);
        a->team->processors = processors_of(a);
        a->engine =
            a->plan.leaders > 1 ? nicbarrier_choose(&a->plan, &a->options) : NICBARRIER_NODE_ENGINE;
        able = a->engine != NICBARRIER_ANY_ENGINE;
        if (able && a->plan.limit > 1)
            rc = make_node(a, &able);
    }
    rc = rc == OMPI_SUCCESS ? least(a, &able) : rc;
    if (a->engine == NICBARRIER_ANY_ENGINE && a->why.text[0] == '\0')
        nicbarrier_reason(&a->why, "no engine serves the processes of all nodes");
    if (rc == OMPI_SUCCESS && able && a->plan.leaders > 1)
        rc = set_up_network(a, &able);
    if (rc != OMPI_SUCCESS || !able)
        a->engine = NICBARRIER_ANY_ENGINE;
    return rc;
}

/* ---- the end -------------------------------------------------------------------------------- */

/** Reports why there is no team: on one rank, or on each rank that has seen an error. */
static void report(const agreement_t *a, bool broken)
{
    static atomic_bool reported;
    const int me = ompi_comm_rank(a->comm);
    const char *why = broken ? "a message has failed" : a->why.text;
    const bool mine = broken || a->reporter == me || (a->reporter == INT_MAX && me == 0);
    if (mine && why[0] != '\0' && !atomic_exchange(&reported, true)) {
        opal_output(0, "coll_nicbarrier: barriers of communicator \"%s\" %s: %s (rank %d on %s)",
                    ONIC_NAME(a->comm->c_name),
                    broken ? "fail, because the agreement on an engine has ended in an error"
                           : "are left to the module below",
                    why, me, opal_process_info.nodename);
    }
}

/** The team's waiting threads call this. */
static void progress(void)
{
    (void)opal_progress();
}

nicbarrier_team_t *nicbarrier_agree(struct ompi_communicator_t *comm,
                                    const nicbarrier_agreement_config_t *config, int *rc_p)
{
    const size_t size = (size_t)ompi_comm_size(comm);
    agreement_t a = {.comm = comm,
                     .config = config,
                     .options = {.engine = config->engine - 1, .ppn = config->ppn},
                     .engine = NICBARRIER_ANY_ENGINE};
    a.facts = need(&a, malloc(size * sizeof(*a.facts)));
    a.room = need(&a, malloc(3 * size * sizeof(*a.room)));
    nicbarrier_team_t *team = a.team = need(&a, nicbarrier_team_new(config->polls, progress));
    __atomic_fetch_add(&nicbarrier_agreements.begun, 1, __ATOMIC_RELAXED);
    *rc_p = agree(&a);
    if (a.engine != NICBARRIER_ANY_ENGINE) {
        team->kind = a.engine;
        team->engine = nicbarrier_engines[a.engine];
    } else {
        report(&a, *rc_p != OMPI_SUCCESS);
        if (*rc_p != OMPI_SUCCESS)
            nicbarrier_team_fail(team);
        else
            __atomic_fetch_add(&nicbarrier_agreements.declined, 1, __ATOMIC_RELAXED);
        nicbarrier_team_free(team);
        team = NULL;
    }
    free(a.exchange);
    free(a.room);
    free(a.facts);
    return team;
}
