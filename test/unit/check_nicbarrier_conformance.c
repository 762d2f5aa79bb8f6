/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * What every engine must do (nicbarrier_conformance.h): shm flat and as a tree, datagram over
 * sockets of this host. Engines put and mlx5, and the one in memory, have programs of their own.
 */
#include "common/config.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "coll_nicbarrier/engines/shm/shm.h"
#include "test/unit/fake_kernel.h"
#include "test/unit/nicbarrier_conformance.h"
#include "test/unit/nicbarrier_members.h"

/* ---- shm ------------------------------------------------------------------------------------ */

static struct {
    int n, fanout;
    bool network;
    void *base;
    nicbarrier_shm_t view[CONFORMANCE_MEMBERS_MAX];
} node;

static conformance_notes_t notes;

static void node_begin(int n, int fanout, bool network)
{
    const size_t bytes = nicbarrier_shm_bytes(n, fanout);

    memset(&node, 0, sizeof(node));
    memset(&notes, 0, sizeof(notes));
    node.n = n;
    node.fanout = fanout;
    node.network = network;
    node.base = aligned_alloc(128, bytes);
    ck_assert_ptr_nonnull(node.base);
    memset(node.base, 0, bytes);
}

static void flat_begin(int n, nicbarrier_schedule_kind_t schedule, uint64_t seed)
{
    (void)schedule;
    (void)seed;
    node_begin(n, CONFORMANCE_MEMBERS_MAX, false);
}

static void tree_begin(int n, nicbarrier_schedule_kind_t schedule, uint64_t seed)
{
    (void)seed;
    node_begin(n, 2 + (int)schedule, false);
}

static void led_begin(int n, nicbarrier_schedule_kind_t schedule, uint64_t seed)
{
    (void)seed;
    node_begin(n, 2 + (int)schedule, true);
}

static void node_connect(int i)
{
    nicbarrier_shm_attach(&node.view[i], node.base, node.n, i, node.fanout, node.network);
}

static void node_enter(int i, uint64_t epoch)
{
    nicbarrier_shm_enter(&node.view[i], epoch);
    nicbarrier_shm_depart(&node.view[i]);
}

static uint64_t node_completed(int i)
{
    const uint64_t completed = nicbarrier_shm_completed(&node.view[i]);

    UNIT_CHECK(nicbarrier_shm_done(&node.view[i], completed));
    UNIT_CHECK(!nicbarrier_shm_done(&node.view[i], completed + 1));
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

/** Microseconds; longer than a test may take: nobody sleeps on when its epoch is complete. */
#define FOR_EVER (2 * UNIT_SECONDS * 1000000u)

/** A member as a thread. */
typedef struct runner {
    pthread_t thread;
    int me;
    uint64_t last;
    bool wrong;
} runner_t;

static void *run_member(void *arg)
{
    runner_t *r = arg;
    nicbarrier_shm_t *s = &node.view[r->me];

    for (uint64_t epoch = 1; epoch <= r->last; epoch++) {
        conformance_note(&notes, r->me, epoch);
        node_enter(r->me, epoch);
        while (node.network && r->me == 0 && nicbarrier_shm_arrived(s) < epoch)
            nicbarrier_shm_sleep_for_node(s, epoch, FOR_EVER);
        if (node.network)
            led_progress(r->me);
        for (int k = 0; !nicbarrier_shm_done(s, epoch); k++)
            if (epoch % 2 == 0 || k % 16 == 15)
                nicbarrier_shm_sleep(s, epoch, FOR_EVER);
            else
                sched_yield();
        nicbarrier_shm_depart(s);
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

static void *until_failed(void *arg)
{
    runner_t *r = arg;
    nicbarrier_shm_t *s = &node.view[r->me];

    nicbarrier_shm_enter(s, 1);
    while (!nicbarrier_shm_done(s, 1) && !nicbarrier_shm_failed(s))
        nicbarrier_shm_sleep(s, 1, FOR_EVER);
    r->wrong = !nicbarrier_shm_failed(s);
    return NULL;
}

/* The leader's connection is lost: who sleeps in the barrier gets to know. */
START_TEST(sleepers_hear_of_failure)
{
    runner_t runner[3];

    node_begin(4, 2, true);
    for (int i = 0; i < 4; i++)
        node_connect(i);
    for (int i = 0; i < 3; i++) {
        runner[i] = (runner_t){.me = i + 1};
        ck_assert_int_eq(pthread_create(&runner[i].thread, NULL, until_failed, &runner[i]), 0);
    }
    nicbarrier_shm_enter(&node.view[0], 1);
    while (atomic_load(&node.view[0].head->completion.sleepers) < 3)
        sched_yield();
    ck_assert(!nicbarrier_shm_failed(&node.view[1]));
    nicbarrier_shm_fail(&node.view[0]);
    for (int i = 0; i < 3; i++) {
        pthread_join(runner[i].thread, NULL);
        ck_assert(!runner[i].wrong);
    }
    node_end();
}
END_TEST

/* ---- datagram ------------------------------------------------------------------------------- */

static void without_kernel(int me)
{
    (void)me;
    fake_kernel.absent = true;
}

static void datagram_begin(int n, nicbarrier_schedule_kind_t schedule, uint64_t seed)
{
    (void)seed;
    members_begin(n, schedule, without_kernel);
}

/** Where the programs are gone soon, one member has none from the beginning. */
static void with_kernel(int me)
{
    fake_kernel.absent = fake_kernel.ends_at != 0 && me == 1;
}

static void stepped_begin(int n, nicbarrier_schedule_kind_t schedule, uint64_t seed)
{
    fake_kernel.ends_at = seed % 2 == 0 ? 0 : 1 + (unsigned)(seed % 7);
    members_begin(n, schedule, with_kernel);
}

static const conformance_row_t datagram = {
    .name = "datagram", .every = 3, .begin = datagram_begin, .steps = 2000, MEMBERS_ROW};
static const conformance_row_t datagram_stepped = {.name = "datagram, stepped by a kernel",
                                                   .every = 12,
                                                   .begin = stepped_begin,
                                                   .steps = 2000,
                                                   MEMBERS_ROW};

/* ---- the tests themselves ------------------------------------------------------------------- */

int main(void)
{
    const conformance_row_t *const rows[] = {&shm_flat, &shm_tree, &shm_led, &datagram,
                                             &datagram_stepped};
    Suite *suite = UNIT_SUITE("nicbarrier_conformance", UNIT_ONCE(sleepers_hear_of_failure));

    unit_in_one_process();
    conformance_add(suite, rows, sizeof(rows) / sizeof(rows[0]));
    return unit_run_suite(suite);
}
