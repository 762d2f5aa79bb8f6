/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What MPI threads leave to the server thread, and what wakes that: the lock excludes, what
 *  was left is done though no MPI thread comes back, and the thread sleeps while there is nothing.
 *  The server thread is the product's, and so are its sleep and the progress of MPI threads; the
 *  rows and the pipe are small stands-in. */
#define _GNU_SOURCE
#include "common/support/clock.h"

/* No time passes, so the server thread does not linger. */
#define onic_now_nsec() UINT64_C(0)
#include "test/explore/transport.h"

/* ---- stands-in ------------------------------------------------------------------------------- */

static onic_presence_t page;
static _Atomic unsigned pipe_bytes; /**< bit 0: of the own process, bit 1: of another one */
static _Atomic unsigned network, network_armed, network_event;
static _Atomic unsigned ring;
static _Atomic unsigned taken; /**< from the ring and the network */
static bool full;              /**< messages wait for room; under the lock */
static atomic_uint sent;       /**< of those */

static int poll_stand_in(struct pollfd *fds, nfds_t n, const struct timespec *time)
{
    for (;;) {
        fds[0].revents = atomic_load(&pipe_bytes) != 0 ? POLLIN : 0;
        if (n > 1)
            fds[1].revents = atomic_load(&network_event) != 0 ? POLLIN : 0;
        if (fds[0].revents != 0 || (n > 1 && fds[1].revents != 0))
            return 1;
        if (time == NULL) {
            explore_pause();
            continue;
        }
        (void)explore_pause_for_a_time();
        return 0;
    }
}

void onic_wake_pipe_write(int fd, char what)
{
    (void)fd;
    atomic_fetch_or(&pipe_bytes, what == ONIC_WAKE_PEER ? 2 : 1);
}

bool onic_wake_pipe_read(int fd)
{
    (void)fd;
    return (atomic_exchange(&pipe_bytes, 0) & 2) != 0;
}

onic_presence_t *onic_presence_mine(void)
{
    return &page;
}

void onic_presence_mark(void)
{
}

/* Two rows: the rings of a node, and a network. */

static int ring_progress(void)
{
    is_alone();
    const int found = full;
    full = false;
    atomic_fetch_add(&sent, (unsigned)found);
    if (atomic_load_explicit(&ring, memory_order_acquire) == 0)
        return found;
    taken += atomic_exchange_explicit(&ring, 0, memory_order_acquire);
    return found + 1;
}

static bool ring_leaves_work(void)
{
    return full;
}

/** As onic_outbox_park does (ring.c tests that). */
static bool ring_arm(unsigned nap)
{
    atomic_store_explicit(&page.parked, nap, memory_order_release);
    atomic_thread_fence(memory_order_seq_cst);
    return true;
}

static int network_progress(void)
{
    is_alone();
    if (atomic_load(&network) == 0)
        return 0;
    taken += atomic_exchange(&network, 0);
    return 1;
}

/** As completion queues of verbs: what came before is not announced. */
static bool network_arm(unsigned nap)
{
    if (nap != 0) {
        atomic_store(&network_event, 0);
        atomic_store(&network_armed, 1);
    }
    return true;
}

static void arrive(void)
{
    atomic_fetch_add(&network, 1);
    if (atomic_exchange(&network_armed, 0) != 0)
        atomic_store(&network_event, 1);
}

static const onic_row_t ring_row = {.progress = ring_progress,
                                    .leaves_work = ring_leaves_work,
                                    .arm = ring_arm},
                        network_row = {.progress = network_progress,
                                       .leaves_work = leaves_nothing,
                                       .arm = network_arm};
const onic_row_t *const onic_rows[ONIC_ROWS + 1] = {&ring_row, &network_row, NULL};

/* ---- the program ----------------------------------------------------------------------------- */

static atomic_uint did;

static int do_deferred(void)
{
    is_alone();
    atomic_fetch_add(&did, 1);
    return 1;
}

static void wait_for(const atomic_uint *word, unsigned value)
{
    while (atomic_load(word) != value)
        explore_pause();
}

/* An MPI thread leaves something, and goes away from MPI. */

static void deferred_setup(void)
{
    new_transport();
    onic_transport.work[ONIC_LOCKED][0] = do_deferred;
}

static void deferred(unsigned me)
{
    if (me == 0) {
        serve();
        return;
    }
    onic_transport_ask(0, ONIC_LOCKED);
    wait_for(&did, 1);
    stop_server();
}

static void deferred_end(void)
{
    EXPLORE_ASSERT(did == 1 && onic_transport.asked[ONIC_LOCKED] == 0);
}

/* Two MPI threads, of which one makes progress while the other leaves something. */

static void progress_setup(void)
{
    deferred_setup();
    onic_transport_guard.helper = server_thread = EXPLORE_THREADS + 1; /* none */
}

static void progress(unsigned me)
{
    if (me == 0) {
        onic_transport_ask(0, ONIC_LOCKED);
        (void)onic_transport_progress();
    } else {
        (void)onic_transport_progress();
    }
}

static void progress_end(void)
{
    (void)onic_transport_progress();
    EXPLORE_ASSERT(did == 1 && onic_transport.asked[ONIC_LOCKED] == 0);
}

/* A function leaves something until another thread has done its part. */

static atomic_uint may_be_done, left_did, left_in_vain;

static int do_left(void)
{
    is_alone();
    if (atomic_load(&left_did) != 0)
        return 0;
    if (atomic_load(&may_be_done) == 0) {
        atomic_fetch_add(&left_in_vain, 1);
        return -1;
    }
    atomic_store(&left_did, 1);
    return 1;
}

static atomic_uint other_did;

static int do_other(void)
{
    is_alone();
    return atomic_exchange(&other_did, 1) == 0;
}

static void left_setup(void)
{
    new_transport();
    onic_transport.work[ONIC_LOCKED][0] = do_left;
    onic_transport.work[ONIC_LOCKED][1] = do_other;
    onic_transport.asked[ONIC_LOCKED] = 3;
}

/** The MPI thread makes progress once, and leaves what cannot be done yet. */
static void left(unsigned me)
{
    if (me == 0) {
        serve();
        return;
    }
    (void)onic_transport_progress();
    atomic_store(&may_be_done, 1);
    wait_for(&left_did, 1);
    (void)onic_transport_progress();
    stop_server();
}

static void left_end(void)
{
    EXPLORE_ASSERT(left_did == 1);
}

/* The server thread stands in; a message comes by the network, or by a ring. */

static void parked_setup(void)
{
    new_transport();
    onic_transport.server.want = 1;
}

static void wait_for_message(void)
{
    /* The MPI thread computes: nobody else looks. */
    wait_for(&taken, 1);
}

static void network_message(unsigned me)
{
    if (me == 0) {
        serve();
        return;
    }
    arrive();
    wait_for_message();
    stop_server();
}

static void ring_message(unsigned me)
{
    if (me == 0) {
        serve();
        return;
    }
    atomic_store_explicit(&ring, 1, memory_order_release);
    /* As the sender's wake (shm/inbox.c). */
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load_explicit(&page.parked, memory_order_relaxed) != 0)
        onic_wake_pipe_write(PIPE, ONIC_WAKE_PEER);
    wait_for_message();
    stop_server();
}

/** An MPI thread finds no room for a message, which it leaves. */
static void full_ring(unsigned me)
{
    if (me == 0) {
        serve();
        return;
    }
    while (!onic_transport_trylock())
        explore_pause();
    full = true;
    onic_server_look_after();
    onic_transport_unlock();
    wait_for(&sent, 1);
    stop_server();
}

/* One MPI thread alone takes the lock without an exchange, until it starts the server thread. */

static atomic_bool thread_begins;
static unsigned guarded;

static void helped_setup(void)
{
    new_transport();
    opal_uses_threads = false;
    onic_transport_guard.helped = false;
    onic_transport.server.running = false;
}

static void count_guarded(unsigned times)
{
    for (unsigned i = 0; i < times; i++) {
        while (!onic_transport_trylock())
            explore_pause();
        guarded++;
        onic_transport_unlock();
    }
}

static void helped(unsigned me)
{
    if (me == 0) {
        while (!atomic_load_explicit(&thread_begins, memory_order_acquire))
            explore_pause();
        count_guarded(2);
        return;
    }
    if (me == 2) {
        /* A thread of the program's own forks. */
        switch (onic_guard_try_fork(&onic_transport_guard)) {
        case ONIC_GUARD_TAKEN:
            guarded++;
            onic_transport_unlock();
            break;
        default:
            break;
        }
        return;
    }
    count_guarded(1);
    while (!onic_transport_trylock())
        explore_pause();
    guarded++;
    atomic_store(&onic_transport_guard.helped, true);
    /* As pthread_create. */
    atomic_store_explicit(&thread_begins, true, memory_order_release);
    guarded++;
    onic_transport_unlock();
    count_guarded(1);
}

static void helped_end(void)
{
    EXPLORE_ASSERT(guarded == 6 || guarded == 7);
}

static const explore_target_t targets[] = {
    {"server-deferred", 2, deferred_setup, deferred, deferred_end, 0, 0},
    {"server-progress", 2, progress_setup, progress, progress_end, 0, 0},
    {"server-left", 2, left_setup, left, left_end, 1, 0},
    {"server-network", 2, parked_setup, network_message, NULL, 2, 0},
    {"server-ring", 2, parked_setup, ring_message, NULL, 2, 0},
    {"server-full", 2, parked_setup, full_ring, NULL, 2, 0},
    {"guard", 3, helped_setup, helped, helped_end, 3, 0},
};

int main(int argc, char **argv)
{
    return explore_main(argc, argv, targets, sizeof(targets) / sizeof(targets[0]));
}
