/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Engine datagram: the helper thread. It stands in for the MPI threads while they are away, answers
 * NACKs then, and moves barriers on; otherwise a process could wait for ever for the answer of the
 * last sender, which has left MPI, and an MPI_Ibarrier would stand still behind computation.
 *
 * While MPI threads come by (their ticks grow) it sleeps without looking at the network, since a
 * thread that sleeps on a socket is woken by each packet that another has long been polling for.
 * Once they have stayed away for a whole IDLE_MSEC, it takes over, and sleeps on the socket and
 * on the first NACK that may become due. It never waits for the lock: where that is taken, an MPI
 * thread is at work.
 *
 * Where a thread goes away from a nonblocking barrier it takes over at once, by a flag, and stays
 * until a packet wakes it while an MPI thread polls. So in a program that comes back when the
 * barrier is over it is never sent away, and needs no waking but by packets.
 */
#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "coll_nicbarrier/engines/datagram/state.h"
#include "common/support/helper_thread.h"

/** MPI threads are away when they have not called for so long. */
#define IDLE_MSEC 1
/** An MPI thread that has polled so recently is polling. */
#define POLLING_NSEC 10000U

static bool is_ordered(void)
{
    return atomic_load(&nicbarrier_datagram.away);
}

/** Is no other thread there? Without an order MPI threads must not have come by since `seen`; with
 *  one they may have, as long as they do not poll. */
static bool in_charge(uint64_t seen, bool by_order)
{
    nicbarrier_datagram_t *d = &nicbarrier_datagram;
    if (atomic_load(&d->stop))
        return false;
    if (is_ordered() || seen == atomic_load_explicit(&d->ticks, memory_order_relaxed))
        return true;
    const uint64_t polled = atomic_load_explicit(&d->polled, memory_order_relaxed);
    return by_order && polled != NICBARRIER_NEVER && onic_now_nsec() - polled >= POLLING_NSEC;
}

static void clear_wakeups(void)
{
    eventfd_t n;
    (void)eventfd_read(nicbarrier_datagram.wake_fd, &n);
}

/** Not for ever, because an MPI thread that comes by, enters a barrier and goes on computing brings
 *  an earlier deadline: to wake this thread each time would cost more than an answer that comes a
 *  little late, where a packet was lost in just that case. */
static void sleep_on_network(void)
{
    nicbarrier_datagram_t *d = &nicbarrier_datagram;
    const uint64_t deadline = atomic_load(&d->deadline), limit = onic_now_nsec() + d->timing.cap;
    nicbarrier_datagram_sleep(d->wake_fd, deadline < limit ? deadline : limit);
}

static void sleep_apart(void)
{
    struct pollfd wakeups = {.fd = nicbarrier_datagram.wake_fd, .events = POLLIN};
    (void)poll(&wakeups, 1, IDLE_MSEC);
    clear_wakeups();
}

/** Until nothing is left to do; false where an MPI thread is at work. */
static bool serve(void)
{
    nicbarrier_datagram_t *d = &nicbarrier_datagram;
    bool quiet = false;
    while (!quiet) {
        if (!nicbarrier_datagram_trylock())
            return false;
        d->helping = true;
        nicbarrier_datagram_see_to_all();
        quiet = nicbarrier_datagram_receive(NULL) == 0;
        d->helping = false;
        nicbarrier_datagram_unlock();
    }
    return true;
}

/** Stands in for the MPI threads until one of them is back; false where one is at work. */
static bool stand_in(uint64_t seen)
{
    nicbarrier_datagram_t *d = &nicbarrier_datagram;
    bool free = true, by_order = false;
    atomic_store(&d->watching, true);
    while (free && in_charge(seen, by_order)) {
        by_order = by_order || is_ordered();
        free = serve();
        if (free && in_charge(seen, by_order))
            sleep_on_network();
        clear_wakeups();
    }
    /* From now on a thread that goes away must wake this one. */
    atomic_store(&d->watching, false);
    return free;
}

static void *helper_main(void *arg)
{
    nicbarrier_datagram_t *d = &nicbarrier_datagram;
    bool free = true;
    (void)arg;
    while (!atomic_load(&d->stop)) {
        const uint64_t seen = atomic_load_explicit(&d->ticks, memory_order_relaxed);
        if (!is_ordered() || !free)
            sleep_apart();
        free = !in_charge(seen, false) || stand_in(seen);
    }
    return NULL;
}

static void wake(void)
{
    (void)eventfd_write(nicbarrier_datagram.wake_fd, 1);
}

void nicbarrier_datagram_hand_over(void)
{
    nicbarrier_datagram_t *d = &nicbarrier_datagram;
    atomic_fetch_add_explicit(&nicbarrier_datagram_counters.handovers, 1, memory_order_relaxed);
    /* Either it reads the flag before it sleeps without the network, or I see it asleep. */
    atomic_store(&d->away, true);
    if (!atomic_load(&d->watching))
        wake();
}

int nicbarrier_datagram_start_thread(void)
{
    nicbarrier_datagram_t *d = &nicbarrier_datagram;
    if (d->has_thread)
        return 0;
    d->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (d->wake_fd < 0)
        return errno;
    atomic_store(&d->stop, false);
    const int rc = onic_helper_start(&d->thread, "onic-barrier", helper_main, NULL);
    if (rc != 0) {
        close(d->wake_fd);
        return rc;
    }
    d->has_thread = true;
    return 0;
}

void nicbarrier_datagram_stop_thread(void)
{
    nicbarrier_datagram_t *d = &nicbarrier_datagram;
    if (!d->has_thread)
        return;
    d->has_thread = false;
    atomic_store(&d->stop, true);
    wake();
    pthread_join(d->thread, NULL);
    close(d->wake_fd);
}
