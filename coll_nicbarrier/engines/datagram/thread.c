/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Engine datagram: the helper thread. While the MPI threads are away it answers NACKs and advances
 * barriers. Without it a process could wait for ever for an answer from a sender that has left MPI,
 * and an MPI_Ibarrier would not progress during computation.
 *
 * While MPI threads are active (their ticks grow) it sleeps without watching the network, since a
 * thread that sleeps on a socket is woken by each packet, even if another thread already polls for
 * it. Once they have been away for IDLE_MSEC it takes over, and sleeps until a packet comes or the
 * first NACK may become due; where processes behind this one are awaited, of which no packet tells,
 * for IDLE_MSEC. It never waits for the lock: if that is taken, an MPI thread is at
 * work.
 */
#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "coll_nicbarrier/engines/datagram/state.h"
#include "common/support/helper_thread.h"

/** MPI threads count as away when they have not called for this long. */
#define IDLE_MSEC 1

/** True if no MPI thread has called since `seen`. */
static bool in_charge(unsigned long long seen)
{
    nicbarrier_datagram_t *d = &nicbarrier_datagram;
    return !atomic_load(&d->stop) && seen == __atomic_load_n(&d->ticks, __ATOMIC_RELAXED);
}

/** The sleep is bounded, because an MPI thread that enters a barrier and then computes sets an
 *  earlier deadline. Waking this thread each time would cost more than the slightly late NACK after
 *  a packet that is lost in just that case. */
static void sleep_on_network(void)
{
    nicbarrier_datagram_t *d = &nicbarrier_datagram;
    const uint64_t deadline = atomic_load(&d->deadline);
    const uint64_t limit =
        onic_now_nsec() + (d->awaiting ? IDLE_MSEC * 1000000U : NICBARRIER_NACK_CAP * d->silence);
    nicbarrier_datagram_sleep(d->wake_fd, deadline < limit ? deadline : limit);
}

static void sleep_apart(void)
{
    struct pollfd wakeups = {.fd = nicbarrier_datagram.wake_fd, .events = POLLIN};
    (void)poll(&wakeups, 1, IDLE_MSEC);
}

/** Serves until nothing is left to do. False if an MPI thread is at work. */
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

static void *helper_main(void *arg)
{
    nicbarrier_datagram_t *d = &nicbarrier_datagram;
    (void)arg;
    while (!atomic_load(&d->stop)) {
        const unsigned long long seen = __atomic_load_n(&d->ticks, __ATOMIC_RELAXED);
        sleep_apart();
        while (in_charge(seen) && serve() && in_charge(seen))
            sleep_on_network();
    }
    return NULL;
}

int nicbarrier_datagram_start_thread(void)
{
    nicbarrier_datagram_t *d = &nicbarrier_datagram;
    if (d->has_thread)
        return 0;
    d->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (d->wake_fd < 0)
        return errno;
    const int rc = onic_helper_start(&d->thread, "onic-barrier", helper_main, NULL);
    if (rc != 0)
        close(d->wake_fd);
    d->has_thread = rc == 0;
    return rc;
}

void nicbarrier_datagram_stop_thread(void)
{
    nicbarrier_datagram_t *d = &nicbarrier_datagram;
    if (!d->has_thread)
        return;
    atomic_store(&d->stop, true);
    (void)eventfd_write(d->wake_fd, 1);
    pthread_join(d->thread, NULL);
    close(d->wake_fd);
}
