/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * What every engine must do (nicbarrier_conformance.h), for all engines: in memory, put over a wire
 * of the tests' own, shm flat and as a tree, datagram over sockets of this host, mlx5 over an
 * adapter of the tests' own.
 */
#include "common/config.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "coll_nicbarrier/engines/shm/shm.h"
#include "test/unit/nicbarrier_here.h"
#include "test/unit/nicbarrier_members.h"
#include "test/unit/nicbarrier_memory_engine.h"
#include "test/unit/put_wire.h"

/* ---- the engine in memory ------------------------------------------------------------------- */

static memory_mutant_t mutant;

static void memory_begin(int n, nicbarrier_schedule_kind_t schedule, uint64_t seed)
{
    memory_engine_reset(seed, mutant);
    here_begin(&nicbarrier_engine_memory, n, schedule);
}

static const conformance_row_t in_memory = {
    .name = "memory",
    .begin = memory_begin,
    .pass = memory_engine_pass,
    .end = here_end,
    .fail = here_fail,
    .connect = here_connect,
    IN_THIS_PROCESS,
    .cannot = {[CONFORMANCE_CUT] = "it has no connections",
               [CONFORMANCE_TOGETHER] = "its memory is for one thread"},
};

/* ---- put ------------------------------------------------------------------------------------ */

/** Of its gather-broadcast schedule, as in put.c. */

static int first_remote[CONFORMANCE_MEMBERS_MAX]; /**< of each member, in put_wire's list */

static void put_begin(int n, nicbarrier_schedule_kind_t schedule, uint64_t seed)
{
    memset(&wire, 0, sizeof(wire));
    wire.random.state = seed;
    wire.at_once = seed % 8 == 0;
    here_begin(&nicbarrier_engine_put, n, schedule);
}

static void put_pass(void)
{
    (void)put_wire_progress(true);
}

/** Both directions: what it puts, and what others put to it. A member opens its remotes in the
 *  order of its steps. */
static void put_cut(int lost)
{
    nicbarrier_step_t step[NICBARRIER_STEPS_MAX];

    for (int i = 0; i < here.n; i++) {
        const int n = nicbarrier_schedule(here.schedule, i, here.n, step);
        onic_remote_t **remote = &wire.remote[first_remote[i]];
        for (int k = 0; k < n; k++) {
            if (step[k].send_to == NICBARRIER_NOBODY)
                continue;
            (*remote)->cut |= i == lost || step[k].send_to == lost;
            remote++;
        }
    }
    wire.losses++;
}

static void put_connect(int i)
{
    first_remote[i] = wire.remotes;
    here_connect(i);
}

static void put_end(void)
{
    put_wire_drain();
    here.engine->close();
    UNIT_CHECK(wire.wants_server == 0 && wire.references == 0 && wire.open_remotes == 0);
    for (int i = 0; i < wire.regions; i++) {
        UNIT_CHECK(wire.region[i]->freed);
        free(wire.region[i]);
    }
    for (int i = 0; i < wire.remotes; i++)
        free(wire.remote[i]);
}

static const conformance_row_t put = {
    .name = "put",
    .begin = put_begin,
    .pass = put_pass,
    .end = put_end,
    .fail = here_fail,
    .cut = put_cut,
    .connect = put_connect,
    IN_THIS_PROCESS,
    .cannot = {[CONFORMANCE_TOGETHER] = "the tests' wire is for one thread"},
};

/* ---- shm ------------------------------------------------------------------------------------ */

static struct {
    int n, fanout;
    bool network;
    void *base;
    nicbarrier_shm_t view[CONFORMANCE_MEMBERS_MAX];
} node;

static void node_begin(int n, int fanout, bool network, uint64_t seed)
{
    const size_t bytes = nicbarrier_shm_bytes(n);
    nicbarrier_locality_t where[CONFORMANCE_MEMBERS_MAX];
    unit_random_t random = {seed};

    memset(&node, 0, sizeof(node));
    node.n = n;
    node.fanout = fanout;
    node.network = network;
    node.base = aligned_alloc(128, bytes);
    ck_assert_ptr_nonnull(node.base);
    memset(node.base, 0, bytes);
    for (int i = 0; i < n; i++) {
        const int core = (int)unit_below(&random, 8);
        where[i] = (nicbarrier_locality_t){core / 4, core / 4, core / 2};
        nicbarrier_shm_introduce(node.base, n, i);
    }
    ck_assert_int_eq(nicbarrier_shm_arrange(node.base, n, where, fanout), 0);
}

static void flat_begin(int n, nicbarrier_schedule_kind_t schedule, uint64_t seed)
{
    (void)schedule;
    node_begin(n, CONFORMANCE_MEMBERS_MAX, false, seed);
}

static void tree_begin(int n, nicbarrier_schedule_kind_t schedule, uint64_t seed)
{
    node_begin(n, 2 + (int)schedule, false, seed);
}

static void led_begin(int n, nicbarrier_schedule_kind_t schedule, uint64_t seed)
{
    node_begin(n, 2 + (int)schedule, true, seed);
}

static void node_connect(int i)
{
    nicbarrier_shm_attach(&node.view[i], node.base, node.n, i, node.fanout, node.network);
}

static void node_enter(int i, uint64_t epoch)
{
    (void)nicbarrier_shm_enter(&node.view[i], epoch);
    nicbarrier_shm_depart(&node.view[i]);
}

static uint64_t node_completed(int i)
{
    const uint64_t completed = nicbarrier_shm_completed(&node.view[i]);

    UNIT_CHECK(nicbarrier_shm_done(&node.view[i], completed));
    return completed;
}

static bool node_failed(int i)
{
    return nicbarrier_shm_failed(&node.view[i]);
}

static void node_progress(int i)
{
    (void)i;
}

/** The leader whose network part is over at once. */
static void led_progress(int i)
{
    if (i == 0)
        nicbarrier_shm_release(&node.view[0], nicbarrier_shm_arrived(&node.view[0]));
}

static void node_pass(void)
{
}

static void node_disconnect(int i)
{
    (void)i;
}

static void node_end(void)
{
    free(node.base);
}

static void node_fail(int i)
{
    nicbarrier_shm_fail(&node.view[i]);
}

/** A member as a thread. */
typedef struct runner {
    pthread_t thread;
    int me;
    uint64_t last;
    bool wrong;
} runner_t;

static conformance_notes_t notes;

static void *run_member(void *arg)
{
    runner_t *r = arg;
    nicbarrier_shm_t *s = &node.view[r->me];

    for (uint64_t epoch = 1; epoch <= r->last; epoch++) {
        conformance_note(&notes, r->me, epoch);
        node_enter(r->me, epoch);
        for (int k = 0; !nicbarrier_shm_done(s, epoch); k++) {
            if (node.network)
                led_progress(r->me);
            if (k % 16 == 15)
                nicbarrier_shm_sleep(s, epoch, 200);
            else
                sched_yield();
        }
        r->wrong |= !conformance_noted(&notes, node.n, epoch);
    }
    return NULL;
}

static void node_together(uint64_t last)
{
    runner_t runner[CONFORMANCE_MEMBERS_MAX];

    for (int i = 0; i < node.n; i++) {
        runner[i] = (runner_t){.me = i, .last = last};
        ck_assert_int_eq(pthread_create(&runner[i].thread, NULL, run_member, &runner[i]), 0);
    }
    for (int i = 0; i < node.n; i++) {
        pthread_join(runner[i].thread, NULL);
        UNIT_CHECK(!runner[i].wrong);
    }
}

#define ON_A_NODE                                                                                  \
    .every = 1, .steps = 5000, .quiet = 20, .patience = 2000, .connect = node_connect,             \
    .enter = node_enter, .completed = node_completed, .failed = node_failed, .pass = node_pass,    \
    .disconnect = node_disconnect, .end = node_end, .fail = node_fail, .together = node_together,  \
    .cannot = {[CONFORMANCE_CUT] = "memory has no connections; who sees that a process has died "  \
                                   "says so (failure_spreads)",                                    \
               [CONFORMANCE_BACKWARDS] = "it stores what its caller, the team, has counted"}

static const conformance_row_t shm_flat = {
    .name = "shm, flat", .begin = flat_begin, .progress = node_progress, ON_A_NODE};
static const conformance_row_t shm_tree = {
    .name = "shm, tree", .begin = tree_begin, .progress = node_progress, ON_A_NODE};
static const conformance_row_t shm_led = {
    .name = "shm, released by a leader", .begin = led_begin, .progress = led_progress, ON_A_NODE};

/* ---- datagram ------------------------------------------------------------------------------- */

#define BY_DATAGRAMS                                                                               \
    .steps = 2000, .quiet = 10, .patience = 400000, .connect = members_connect,                    \
    .enter = members_enter, .completed = members_completed, .failed = members_failed,              \
    .progress = members_progress, .pass = members_pass, .disconnect = members_disconnect,          \
    .end = members_end, .fail = members_fail, .together = members_together,                        \
    .cannot = {[CONFORMANCE_CUT] = "it has no connections: packets are lost all the time",         \
               [CONFORMANCE_ABANDON] = "a group that was freed grants what is asked"}

static const conformance_row_t datagram = {
    .name = "datagram", .every = 2, .begin = members_begin, BY_DATAGRAMS};
static const conformance_row_t datagram_stepped = {.name = "datagram, stepped by an adapter",
                                                   .every = 12,
                                                   .begin = members_begin_stepped,
                                                   BY_DATAGRAMS};
static const conformance_row_t datagram_dying = {
    .name = "datagram, stepped by an adapter that is gone soon",
    .every = 18,
    .begin = members_begin_dying,
    BY_DATAGRAMS};

/* ---- the tests themselves ------------------------------------------------------------------- */

/* Each kind of broken engine is noticed by some of them, and a sound one by none. */
START_TEST(broken_engines_are_noticed)
{
    int noticed = 0;

    mutant = (memory_mutant_t)_i;
    for (int which = 0; which < 24; which++)
        noticed += conformance_count_failures(&in_memory, which);
    memory_engine_reset(0, MEMORY_SOUND);
    if (mutant == MEMORY_SOUND)
        ck_assert_int_eq(noticed, 0);
    else
        ck_assert_int_gt(noticed, 0);
}
END_TEST

int main(void)
{
    const conformance_row_t *const rows[] = {&in_memory,        &put,           &shm_flat,
                                             &shm_tree,         &shm_led,       &datagram,
                                             &datagram_stepped, &datagram_dying};
    Suite *suite = suite_create("nicbarrier_conformance");
    TCase *tcase = tcase_create("broken engines");

    tcase_set_timeout(tcase, UNIT_SECONDS);
    tcase_add_loop_test(tcase, broken_engines_are_noticed, 0, MEMORY_MUTANTS);
    suite_add_tcase(suite, tcase);
    conformance_add(suite, rows, sizeof(rows) / sizeof(rows[0]));
    return unit_run_suite(suite);
}
