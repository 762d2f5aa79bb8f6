/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Engine datagram: the helper thread. It stands in for the MPI threads while they are away, answers
 * NACKs then, and steps barriers on; otherwise who waits for the last process to answer would wait
 * for ever (the last sender has left MPI), and an MPI_Ibarrier would stand still behind
 * computation.
 *
 * While MPI threads come by (their ticks grow) it sleeps without looking at the network, since who
 * sleeps on a socket is woken by each packet that another has long been polling for. Once they have
 * stayed away for a whole IDLE_MSEC, it takes over, and sleeps on the transport and on the first
 * NACK that may become due. While they poll without a pause it looks less often, up to
 * IDLE_MAX_MSEC, since each look may cost one of them its processor for a moment. It never waits
 * for the lock: where that is taken, an MPI thread is at work.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "coll_nicbarrier/datagram.h"

/** MPI threads are away when nothing was heard of them for so long. */
#define IDLE_MSEC     1
#define IDLE_MAX_MSEC 4
/** Calls in a millisecond that only who polls makes. */
#define POLLING_TICKS 100

static bool in_charge(uint64_t seen)
{
    nicbarrier_datagram_t *d = &nicbarrier_datagram;
    return !atomic_load(&d->stop) && atomic_load_explicit(&d->ticks, memory_order_relaxed) == seen;
}

/** Not for ever, because an MPI thread that comes by, enters a barrier and goes on computing brings
 *  an earlier deadline: to wake this thread each time would cost more than an answer that comes a
 *  little late, where a packet was lost in just that case. */
static void sleep_until(uint64_t deadline)
{
    nicbarrier_datagram_t *d = &nicbarrier_datagram;
    struct pollfd fds[1 + NICBARRIER_VIAS] = {{.fd = d->wake_fd, .events = POLLIN}};
    const nfds_t n = 1 + nicbarrier_datagram_descriptors(&fds[1]);
    const uint64_t now = nicbarrier_datagram_now();
    uint64_t time = deadline > now ? deadline - now : 0;
    time = time < d->timing.cap ? time : d->timing.cap;
    const struct timespec left = {(time_t)(time / 1000000000U), (long)(time % 1000000000U)};
    (void)ppoll(fds, n, &left, NULL);
}

static void hear_knocks(void)
{
    uint64_t n;
    while (read(nicbarrier_datagram.wake_fd, &n, sizeof(n)) < 0 && errno == EINTR) {
    }
}

/** Until nothing is left to do; false where an MPI thread is at work. */
static bool serve(void)
{
    bool quiet = false;
    while (!quiet) {
        if (!nicbarrier_datagram_trylock()) {
            return false;
        }
        nicbarrier_datagram_ask();
        quiet = nicbarrier_datagram_receive(NULL) == 0 && nicbarrier_datagram_arm();
        nicbarrier_datagram_unlock();
    }
    return true;
}

/** Stands in for the MPI threads until one of them is back. */
static void stand_in(uint64_t seen)
{
    nicbarrier_datagram_t *d = &nicbarrier_datagram;
    while (in_charge(seen)) {
        nicbarrier_count(&nicbarrier_datagram_counters.thread_wakeups);
        if (!serve()) {
            return;
        }
        if (in_charge(seen)) {
            sleep_until(atomic_load(&d->deadline));
        }
        hear_knocks();
    }
}

static void *helper_main(void *arg)
{
    nicbarrier_datagram_t *d = &nicbarrier_datagram;
    int idle = IDLE_MSEC;
    (void)arg;
    while (!atomic_load(&d->stop)) {
        struct pollfd knocks = {.fd = d->wake_fd, .events = POLLIN};
        const uint64_t seen = atomic_load_explicit(&d->ticks, memory_order_relaxed);
        (void)poll(&knocks, 1, idle);
        hear_knocks();
        if (in_charge(seen)) {
            stand_in(seen);
        }
        const uint64_t ticks = atomic_load_explicit(&d->ticks, memory_order_relaxed) - seen;
        const bool polling = ticks > (uint64_t)idle * POLLING_TICKS;
        idle = !polling ? IDLE_MSEC : 2 * idle < IDLE_MAX_MSEC ? 2 * idle : IDLE_MAX_MSEC;
    }
    return NULL;
}

static void knock(void)
{
    const uint64_t one = 1;
    while (write(nicbarrier_datagram.wake_fd, &one, sizeof(one)) < 0 && errno == EINTR) {
    }
}

int nicbarrier_datagram_start_thread(void)
{
    nicbarrier_datagram_t *d = &nicbarrier_datagram;
    sigset_t all, before;
    d->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (d->wake_fd < 0) {
        return errno;
    }
    atomic_store(&d->stop, false);
    d->pid = getpid();
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int rc = pthread_create(&d->thread, NULL, helper_main, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc != 0) {
        close(d->wake_fd);
        return rc;
    }
    (void)pthread_setname_np(d->thread, "onic-barrier");
    d->has_thread = true;
    return 0;
}

void nicbarrier_datagram_stop_thread(void)
{
    nicbarrier_datagram_t *d = &nicbarrier_datagram;
    if (!d->has_thread) {
        return;
    }
    d->has_thread = false;
    /* A child of fork has the record of a thread, but not the thread. */
    if (d->pid == getpid()) {
        atomic_store(&d->stop, true);
        knock();
        pthread_join(d->thread, NULL);
    }
    close(d->wake_fd);
}
