/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Changes of a lock queue whose lock another process of the node takes in between
 * (sync/change_queue.c): a change is done once, and each is told once. With a transport of its own
 * in place of the one over UCX.
 */
#include <string.h>

#include "osc_nicstride/queue/send.h"
#include "osc_nicstride/sync/lock_queue.h"
#include "osc_nicstride/window/control.h"
#include "test/unit/unit.h"

enum { NEAR = 2, FAR = 200, SIZE = NEAR + FAR, BLOCKS = NEAR + 1 };

static nicstride_module_t m;
static onic_peer_t *near[NEAR]; /* nobody asks about them */
static nicstride_peer_t peers[SIZE], *peer_of[SIZE];
static int near_ranks[NEAR] = {0, 1};
static uint16_t places[NEAR] = {1, 2};

static unsigned leaves[SIZE], grants[SIZE], changes;
static int status_of[SIZE];
static bool asked_again;
static unsigned takes_after; /* so many messages the other process takes the lock; 0: never */

static onic_owned_lock_t *queue_lock(void)
{
    return &nicstride_ctl(&m, nicstride_ctl_of_window(&m))->queue_lock;
}

static nicstride_lockq_t *queue(void)
{
    return nicstride_ctl_lockq(&m, nicstride_ctl_of_window(&m));
}

/* ---- what change_queue.c calls --------------------------------------------------------------- */

static void sent(void)
{
    UNIT_CHECK(onic_transport_guard.held != 0 && (*queue_lock() == 0 || takes_after == 0));
    if (takes_after > 0 && --takes_after == 0)
        UNIT_CHECK(onic_owned_try(queue_lock(), 1));
}

void nicstride_send_header_locked(nicstride_peer_t *p, nicstride_msg_t *msg)
{
    UNIT_CHECK(msg->type == NICSTRIDE_MSG_GRANT && msg->count == SIZE);
    grants[p->rank]++;
    status_of[p->rank] = msg->status;
    sent();
}

void nicstride_send_note_locked(nicstride_peer_t *p, nicstride_msg_type_t type, unsigned op,
                                uint64_t count)
{
    (void)op, (void)count;
    UNIT_CHECK(type == NICSTRIDE_MSG_LEAVE);
    leaves[p->rank]++;
    sent();
}

void onic_transport_ask(unsigned am_id, onic_place_t place)
{
    UNIT_CHECK(am_id == ONIC_AM_OSC && place == ONIC_LOCKED);
    asked_again = true;
}

static const bool threads = true;
onic_guard_t onic_transport_guard = {.threads = &threads};

static bool wire_locked(void)
{
    return onic_transport_guard.held != 0;
}

void onic_transport_lock_wait(void)
{
    ck_abort();
}

/** The other process gives the lock back. */
int nicstride_ctl_wait(const nicstride_module_t *window, onic_owned_lock_t *lock)
{
    onic_owned_release(lock);
    UNIT_CHECK(nicstride_ctl_try(window, lock));
    return OMPI_SUCCESS;
}

bool onic_peer_has_died(const onic_peer_t *p)
{
    (void)p;
    return false;
}

nicstride_peer_t *nicstride_peer_make_locked(nicstride_module_t *window, int rank)
{
    (void)window, (void)rank;
    ck_abort();
}

/* ---- the window ------------------------------------------------------------------------------ */

/** Rank 0's, with the transport lock or without. */
static void setup(bool with_wire)
{
    const size_t lockq = (sizeof(nicstride_ctl_t) + 63) / 64 * 64;
    const size_t bytes = (lockq + nicstride_lockq_size(SIZE) + 63) / 64 * 64;

    m = (nicstride_module_t){.size = SIZE};
    m.node = (onic_node_t){.n = NEAR, .me = 0, .ranks = near_ranks, .place = places};
    m.near = near;
    m.ctl.bytes = bytes;
    m.ctl.lockq = lockq;
    m.segment.base = aligned_alloc(64, BLOCKS * bytes);
    UNIT_CHECK(m.segment.base != NULL);
    memset(m.segment.base, 0, BLOCKS * bytes);
    nicstride_lockq_init(queue(), SIZE);
    m.peer = peer_of;
    for (int i = 0; i < SIZE; i++) {
        peers[i] = (nicstride_peer_t){.module = &m, .rank = i};
        peer_of[i] = &peers[i];
    }
    memset(leaves, 0, sizeof(leaves));
    memset(grants, 0, sizeof(grants));
    changes = takes_after = 0;
    asked_again = false;
    onic_transport_guard.held = with_wire;
}

static bool request(nicstride_module_t *window, int local, uint32_t origin, unsigned what)
{
    changes++;
    return nicstride_lockq_request(nicstride_ctl_lockq(window, local), origin, what, false);
}

static int change(uint32_t origin, unsigned type)
{
    return nicstride_change_queue(&m, nicstride_ctl_of_window(&m), request, origin, type,
                                  wire_locked());
}

/** That many others stay in MPI_Win_lock_all's; they are the first. */
static void let_stay(unsigned n)
{
    for (uint32_t i = 0; i < n; i++)
        ck_assert(nicstride_lockq_request(queue(), NEAR + i, NICSTRIDE_LOCK_OF_ALL, false));
}

/** The rest is told, while the other process has the lock at times. */
static void go_on(unsigned every)
{
    for (int i = 0; i < SIZE && asked_again; i++) {
        asked_again = false;
        nicstride_tell_rest_locked(&m);
        ck_assert(asked_again); /* the lock is not free */
        onic_owned_release(queue_lock());
        takes_after = every;
        asked_again = false;
        nicstride_tell_rest_locked(&m);
    }
    ck_assert(!asked_again);
}

/** Are the first `n` told to leave, once each, and nobody else? */
static void check_leaves(unsigned n)
{
    for (unsigned i = 0; i < SIZE; i++)
        ck_assert_uint_eq(leaves[i], i >= NEAR && i < NEAR + n);
}

/* ---- the tests ------------------------------------------------------------------------------- */

/** Of any number who stay each is asked to leave once, and who wants the lock is not refused, with
 *  the transport lock or without. */
START_TEST(many_who_stay)
{
    static const unsigned numbers[] = {1, 63, 64, 65, 128, FAR - 1};
    const unsigned n = numbers[_i / 2];

    for (unsigned every = 1; every < 200; every += 7) {
        setup(_i % 2 != 0);
        let_stay(n);
        takes_after = every;
        ck_assert_int_eq(change(SIZE - 1, NICSTRIDE_LOCK_OF_SOME), OMPI_SUCCESS);
        go_on(every);
        ck_assert_uint_eq(changes, 1);
        check_leaves(n);
        ck_assert_uint_eq(grants[SIZE - 1], 0);
        free(m.segment.base);
    }
}
END_TEST

/** The same for those who get it. */
START_TEST(many_who_get_it)
{
    setup(true);
    ck_assert(nicstride_lockq_request(queue(), 1, NICSTRIDE_LOCK_OF_SOME, false));
    for (uint32_t i = NEAR; i < SIZE - 1; i++)
        ck_assert(!nicstride_lockq_request(queue(), i, NICSTRIDE_LOCK_OF_ALL, false));
    ck_assert(nicstride_lockq_release(queue(), 1));
    takes_after = 3;
    ck_assert_int_eq(change(SIZE - 1, NICSTRIDE_LOCK_OF_ALL), OMPI_SUCCESS);
    go_on(3);
    ck_assert_uint_eq(changes, 1);
    for (unsigned i = NEAR; i < SIZE; i++)
        ck_assert(grants[i] == 1 && status_of[i] == 0);
    check_leaves(0);
    free(m.segment.base);
}
END_TEST

/** Where the lock is not free at first nothing is changed, and the caller comes again; a change of
 *  nothing is put off. */
START_TEST(busy_at_first)
{
    setup(true);
    let_stay(1);
    ck_assert(onic_owned_try(queue_lock(), 1));
    ck_assert_int_eq(change(SIZE - 1, NICSTRIDE_LOCK_OF_SOME), NICSTRIDE_QUEUE_BUSY);
    ck_assert_uint_eq(changes, 0);
    ck_assert(!asked_again);
    ck_assert(nicstride_change_windows_locked(&m, NULL, 0, 0));
    ck_assert(asked_again);
    go_on(0);
    free(m.segment.base);
}
END_TEST

int main(void)
{
    return UNIT_RUN("change_queue", UNIT_LOOP(many_who_stay, 0, 12), UNIT_ONCE(many_who_get_it),
                    UNIT_ONCE(busy_at_first));
}
