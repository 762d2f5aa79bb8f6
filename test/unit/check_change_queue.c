/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Changes of a lock queue whose lock another process of the node takes in between
 * (sync/change_queue.c): a change is done once, and each is told once, with the queue's lock free.
 * With a transport of its own in place of the one over UCX.
 */
#include <string.h>

#include "osc_nicstride/queue/send.h"
#include "osc_nicstride/sync/lock_queue.h"
#include "osc_nicstride/window/control.h"
#include "test/unit/unit.h"

enum { NEAR = 2, FAR = 200, SIZE = NEAR + FAR, BLOCKS = NEAR + 1 };

static nicstride_module_t m;
static nicstride_peer_t peers[SIZE], *peer_of[SIZE];
static int near_ranks[NEAR] = {0, 1};
static uint16_t places[NEAR] = {1, 2};

static unsigned leaves[SIZE], grants[SIZE], waits;
static int status_of[SIZE];
static unsigned takes_after; /* so many messages the other process takes the lock; 0: never */
static bool dead;            /* the other process, with the lock */

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
    UNIT_CHECK(onic_transport_guard.held != 0 && *queue_lock() == 0);
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

static const bool threads = true;
onic_guard_t onic_transport_guard = {.threads = &threads};

void onic_transport_lock_wait(void)
{
    ck_abort();
}

/** The other process gives the lock back, or has died. */
int nicstride_ctl_wait(const nicstride_module_t *window, onic_owned_lock_t *lock)
{
    waits++;
    if (dead)
        return ONIC_ERR_PROC_FAILED;
    onic_owned_release(lock);
    UNIT_CHECK(nicstride_ctl_try(window, lock));
    return OMPI_SUCCESS;
}

bool onic_peer_has_died(const onic_peer_t *peer)
{
    (void)peer;
    ck_abort();
}

void nicstride_break(const nicstride_module_t *window, int local)
{
    (void)window, (void)local;
    ck_abort();
}

nicstride_peer_t *nicstride_peer_make_locked(nicstride_module_t *window, int rank)
{
    (void)window, (void)rank;
    ck_abort();
}

/* ---- the window ------------------------------------------------------------------------------ */

/** Rank 0's, with the transport lock or without. */
static void setup(bool locked)
{
    const size_t lockq = (sizeof(nicstride_ctl_t) + 63) / 64 * 64;
    const size_t bytes = (lockq + nicstride_lockq_size(SIZE) + 63) / 64 * 64;

    m = (nicstride_module_t){.size = SIZE};
    m.node = (onic_node_t){.n = NEAR, .me = 0, .ranks = near_ranks, .place = places};
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
    waits = takes_after = 0;
    dead = false;
    onic_transport_guard.held = locked;
}

static void done(bool locked)
{
    UNIT_CHECK(*queue_lock() == 0 || dead || takes_after == 0);
    UNIT_CHECK((onic_transport_guard.held != 0) == locked);
    free(m.segment.base);
}

/** Tells those that the queue's state concerns. */
static int change(bool locked)
{
    return nicstride_change_queue(&m, nicstride_ctl_of_window(&m), NICSTRIDE_LOCK_UNCHANGED, 0,
                                  locked);
}

/** The same after one more process has asked for the lock, which is not free. */
static int want(uint32_t origin, unsigned type, bool locked)
{
    ck_assert(!nicstride_lockq_request(queue(), origin, type, false));
    return change(locked);
}

/** Are the first `n` told, once each, and nobody else? */
static void check_told(const unsigned *times, unsigned n)
{
    for (unsigned i = 0; i < SIZE; i++)
        ck_assert_uint_eq(times[i], i >= NEAR && i < NEAR + n);
}

/* ---- the tests ------------------------------------------------------------------------------- */

/** Of any number who stay each is asked to leave once, and who wants the lock waits for it, with
 *  the transport lock or without. */
START_TEST(many_who_stay)
{
    static const unsigned numbers[] = {1, 2, 63, FAR - 1};
    const unsigned n = numbers[_i / 2];
    const bool locked = _i % 2 != 0;

    for (unsigned every = 0; every < 200; every += 7) {
        setup(locked);
        for (uint32_t i = 0; i < n; i++)
            ck_assert(nicstride_lockq_request(queue(), NEAR + i, NICSTRIDE_LOCK_OF_ALL, false));
        takes_after = every;
        ck_assert_int_eq(want(SIZE - 1, NICSTRIDE_LOCK_OF_SOME, locked), OMPI_SUCCESS);
        ck_assert_uint_eq(waits, every > 0 && every <= n);
        check_told(leaves, n);
        check_told(grants, 0);
        done(locked);
    }
}
END_TEST

/** The same for those who get it; one of them is on this node, and finds it in its memory. */
START_TEST(many_who_get_it)
{
    const bool locked = _i != 0;

    setup(locked);
    ck_assert(nicstride_lockq_request(queue(), 1, NICSTRIDE_LOCK_OF_SOME, false));
    ck_assert(!nicstride_lockq_request(queue(), 0, NICSTRIDE_LOCK_OF_ALL, false));
    for (uint32_t i = NEAR; i < SIZE - 1; i++)
        ck_assert(!nicstride_lockq_request(queue(), i, NICSTRIDE_LOCK_OF_ALL, false));
    ck_assert(nicstride_lockq_release(queue(), 1));
    takes_after = 3;
    ck_assert_int_eq(want(SIZE - 1, NICSTRIDE_LOCK_OF_ALL, locked), OMPI_SUCCESS);
    ck_assert_uint_eq(waits, 1);
    check_told(grants, FAR);
    check_told(leaves, 0);
    for (unsigned i = NEAR; i < SIZE; i++)
        ck_assert_int_eq(status_of[i], 0);
    ck_assert(nicstride_stay_is_used(&nicstride_ctl(&m, 0)->stay));
    done(locked);
}
END_TEST

/** A process of this node that stays without using the lock is taken out, and asked to leave where
 *  it uses it. */
START_TEST(near_who_stay)
{
    nicstride_stay_t *stay;

    setup(false);
    stay = &nicstride_ctl(&m, 1)->stay;
    ck_assert(nicstride_lockq_request(queue(), 1, NICSTRIDE_LOCK_OF_ALL, false));
    nicstride_stay_granted(stay, NICSTRIDE_LOCK_OF_ALL);
    if (_i != 0)
        ck_assert(nicstride_stay_end(stay));
    ck_assert_int_eq(want(NEAR, NICSTRIDE_LOCK_OF_SOME, false), OMPI_SUCCESS);
    ck_assert_uint_eq(grants[NEAR], _i != 0);
    if (_i == 0)
        ck_assert(!nicstride_stay_end(stay));
    done(false);
}
END_TEST

/** In a window that has failed each process of another node that waits is refused once. */
START_TEST(all_refused)
{
    setup(true);
    ck_assert(nicstride_lockq_request(queue(), 1, NICSTRIDE_LOCK_OF_SOME, false));
    for (uint32_t i = NEAR; i < SIZE; i++)
        ck_assert(!nicstride_lockq_request(queue(), i, NICSTRIDE_LOCK_OF_ALL, false));
    atomic_store(nicstride_ctl_broken(&m), 1);
    takes_after = 5;
    ck_assert_int_eq(change(true), OMPI_SUCCESS);
    check_told(grants, FAR);
    for (unsigned i = NEAR; i < SIZE; i++)
        ck_assert_int_eq(status_of[i], ONIC_ERR_PROC_FAILED);
    done(true);
}
END_TEST

/** Where the owner of the queue's lock has died nothing is changed. */
START_TEST(owner_dead)
{
    setup(true);
    ck_assert(onic_owned_try(queue_lock(), 1));
    dead = true;
    ck_assert_int_eq(change(true), ONIC_ERR_PROC_FAILED);
    ck_assert_uint_eq(queue()->head + queue()->holders, 0);
    done(true);
}
END_TEST

int main(void)
{
    return UNIT_RUN("change_queue", UNIT_LOOP(many_who_stay, 0, 8),
                    UNIT_LOOP(many_who_get_it, 0, 2), UNIT_LOOP(near_who_stay, 0, 2),
                    UNIT_ONCE(all_refused), UNIT_ONCE(owner_dead));
}
