/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The server thread: passive-target progress while the MPI threads compute. It sleeps in
 *  poll(), and a byte in its pipe ends that: a process of the node that waits for this one, and
 *  sees that it is away from MPI, wakes it so. It then does what there is to do and sleeps again.
 *
 *  Processes of other nodes cannot wake it. Where one may wait (onic_transport_want_server), or
 *  this process has left work undone, it looks every idle_usec whether the MPI threads' tick
 *  counter moves. Where they have been away for a whole such time it stands in for them, and sleeps
 *  until the network or a returning MPI thread wakes it. Transports are armed only then: an armed
 *  shared-memory queue costs its senders a system call. It never waits for the transport lock. */
#define _GNU_SOURCE
#include "common/transport/internal.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "common/support/clock.h"
#include "common/support/helper_thread.h"
#include "common/support/pause.h"
#include "common/support/help.h"

/** Calls of progress while the lock is held once. */
#define SLICE 16
/** Naps while work is left that no event will announce, in microseconds; what comes ends them. */
#define NAP_MIN 20
#define NAP_MAX 1000
/** A process that has woken this one may have more to send when it has an answer. */
#define LINGER_NSEC 5000
/** But an MPI thread that was in MPI within so many ns has lost its processor, and gets it back. */
#define RECENT_NSEC 50000
/** It sleeps now and then, so that threads on the same processor run. */
#define STAY_NSEC 200000
/** After so many microseconds without an MPI thread it takes over, if it was started because work
 *  was left. */
#define HELP_USEC 1000
/** Looks that find nothing before it sleeps without a timer: work is put off again and again. */
#define LOOKS_IDLE 16

#define FOREVER UINT_MAX

typedef enum slice_result {
    SLICE_MORE,  /**< events were handled: there may be more */
    SLICE_IDLE,  /**< nothing to do, or nothing could be done */
    SLICE_ARMED, /**< nothing more; the next event makes the descriptor readable */
    SLICE_LEAVE  /**< an MPI thread is at work */
} slice_result_t;

/* ---- sleeping ------------------------------------------------------------------------------ */

/** Sleeps up to `usec`, or until a process (true) or, armed, the network wakes it. */
static bool sleep_for(onic_server_t *s, unsigned usec, bool armed)
{
    const struct timespec time = onic_timespec(UINT64_C(1000) * usec);
    if (ppoll(s->fds, armed ? s->nfds : 1, usec != FOREVER ? &time : NULL, NULL) <= 0)
        return false;
    return s->fds[0].revents != 0 && onic_wake_pipe_read(s->fds[0].fd);
}

/* ---- progress ------------------------------------------------------------------------------- */

/** Has the rows announce what comes; 0: no longer. False where one of them has something to do
 *  before. */
static bool arm_rows(unsigned nap)
{
    bool armed = true;
    for (const onic_row_t *const *row = onic_rows; *row != NULL; row++)
        armed = (*row)->arm(nap) && armed;
    return armed;
}

/** Arms, and looks once more: what came in between is not announced. Who leaves something with the
 *  lock held after that sees the thread parked. */
static bool arm(onic_server_t *s)
{
    s->naps += 1U + (s->naps == UINT_MAX); /* never 0 */
    if (!arm_rows(s->naps) || onic_transport_progress_locked() > 0) {
        (void)arm_rows(0);
        return false;
    }
    s->left = onic_transport_leaves_work();
    atomic_store(&s->sleep, ONIC_SERVER_PARKED);
    return true;
}

/** Arming fails once after each event, which counts as one. */
static slice_result_t progress_and_arm(onic_server_t *s, bool arms)
{
    s->worked = false;
    for (int i = 0; i < SLICE; i++) {
        if (onic_transport_progress_locked() > 0) {
            s->worked = true;
            continue;
        }
        if (!arms)
            break;
        if (arm(s))
            return SLICE_ARMED;
        s->worked = true;
    }
    return s->worked ? SLICE_MORE : SLICE_IDLE;
}

/** Progresses for a while, and where `arms` has the next event announced when nothing comes. */
static slice_result_t run_slice(onic_server_t *s, bool arms)
{
    if (!onic_transport_trylock())
        return SLICE_LEAVE;
    const slice_result_t result = progress_and_arm(s, arms);
    onic_transport_unlock();
    return result;
}

/* ---- standing in for the MPI threads -------------------------------------------------------- */

/** True if an MPI thread has left work of this process. */
static bool leaves_work(void)
{
    return atomic_load(&onic_transport.asked[ONIC_LOCKED]) != 0 ||
           atomic_load_explicit(&onic_requests.out, memory_order_relaxed) != 0;
}

static bool has_work(onic_server_t *s)
{
    return atomic_load(&s->want) > 0 || leaves_work();
}

static bool is_away_since(onic_server_t *s, uint64_t seen)
{
    return atomic_load(&onic_transport.mpi_ticks) == seen && !atomic_load(&s->stop);
}

/** True while there is work and no MPI thread has shown up since `seen`. */
static bool in_charge(onic_server_t *s, uint64_t seen)
{
    return is_away_since(s, seen) && has_work(s);
}

/** Waits for an event of a row, or for an MPI thread that comes back or leaves work; where some is
 *  left already no longer than that. */
static void park(onic_server_t *s, uint64_t seen, unsigned usec)
{
    if (in_charge(s, seen) && (s->left || atomic_load(&onic_transport.asked[ONIC_LOCKED]) == 0))
        (void)sleep_for(s, s->left ? usec : FOREVER, true);
    (void)arm_rows(0);
    atomic_store(&s->sleep, ONIC_SERVER_LOOKS);
}

static void stand_in(onic_server_t *s, uint64_t seen)
{
    onic_naps_t naps = ONIC_NAPS(NAP_MIN, NAP_MAX);
    slice_result_t result = SLICE_MORE;
    atomic_store_explicit(&onic_presence_mine()->away, true, memory_order_relaxed);
    while (result != SLICE_LEAVE && in_charge(s, seen)) {
        result = run_slice(s, true);
        /* What follows a step that was done comes soon. */
        if (result != SLICE_ARMED || s->worked || !s->left)
            onic_naps_shorten(&naps);
        if (result == SLICE_ARMED)
            park(s, seen, naps.now);
        else if (result == SLICE_IDLE)
            (void)sleep_for(s, NAP_MIN, false);
        if (result == SLICE_ARMED && s->left)
            onic_naps_lengthen(&naps);
    }
    atomic_store_explicit(&onic_presence_mine()->away, false, memory_order_relaxed);
}

/** Does what there is for processes that have woken this one, and what follows at once. */
static void answer(onic_server_t *s)
{
    const uint64_t seen = atomic_load(&onic_transport.mpi_ticks), begun = onic_now_nsec();
    const uint64_t linger =
        onic_presence_unseen(onic_presence_mine(), begun) < RECENT_NSEC ? 0 : LINGER_NSEC;
    uint64_t did = begun;
    slice_result_t result;
    do {
        result = run_slice(s, false);
        if (result == SLICE_MORE)
            did = onic_now_nsec();
        onic_pause();
    } while ((result == SLICE_MORE || result == SLICE_IDLE) && onic_now_nsec() - did < linger &&
             onic_now_nsec() - begun < STAY_NSEC && is_away_since(s, seen));
    /* Processes that woke it meanwhile have been served, or are now. */
    (void)onic_wake_pipe_read(s->fds[0].fd);
    do {
        result = run_slice(s, false);
    } while (result == SLICE_MORE);
    if (leaves_work() && in_charge(s, seen))
        stand_in(s, seen);
}

/* ---- sleeping deep --------------------------------------------------------------------------- */

/** Sleeps without a timer where nothing needs one. True where another process has woken it. */
static bool sleep_deep(onic_server_t *s)
{
    bool woken = false;
    atomic_store(&s->sleep, ONIC_SERVER_ASLEEP);
    if (!has_work(s) && !atomic_load(&s->stop))
        woken = sleep_for(s, FOREVER, false);
    atomic_store(&s->sleep, ONIC_SERVER_LOOKS);
    return woken;
}

static void *server_main(void *arg)
{
    onic_server_t *s = arg;
    unsigned idle = LOOKS_IDLE;
    while (!atomic_load(&s->stop)) {
        const uint64_t seen = atomic_load(&onic_transport.mpi_ticks);
        const bool deep = !has_work(s) && idle >= LOOKS_IDLE;
        idle = has_work(s) ? 0 : idle + 1;
        if (deep ? sleep_deep(s) : sleep_for(s, atomic_load(&s->idle_usec), false))
            answer(s);
        else if (deep)
            idle = 0;
        else if (in_charge(s, seen))
            stand_in(s, seen);
    }
    return NULL;
}

/* ---- its life ------------------------------------------------------------------------------- */

/** Starts the thread. NULL, or why that cannot be. */
static const char *start(onic_server_t *s)
{
    s->fds[0] = (struct pollfd){.fd = onic_here.wake_pipe, .events = POLLIN};
    s->nfds = 1;
    for (const onic_row_t *const *row = onic_rows; *row != NULL; row++)
        if ((*row)->event_fd != NULL && s->nfds < ONIC_SERVER_FDS)
            s->fds[s->nfds++] = (struct pollfd){.fd = (*row)->event_fd(), .events = POLLIN};
    for (nfds_t i = 0; i < s->nfds; i++)
        if (s->fds[i].fd < 0)
            return "there are no descriptors to be had";
    const int rc = onic_helper_start(&s->thread, "onic-server", server_main, s);
    return rc != 0 ? strerror(rc) : NULL;
}

void onic_server_start(unsigned idle_usec)
{
    onic_server_t *s = &onic_transport.server;
    /* From its next sleep on. */
    atomic_store(&s->idle_usec, idle_usec);
    if (atomic_load(&s->running) || onic_requests.closing)
        return;
    atomic_store(&s->sleep, ONIC_SERVER_LOOKS);
    atomic_store(&s->stop, false);
    atomic_store(&onic_transport_guard.helped, true);
    const char *why = start(s);
    s->failed = why != NULL;
    if (why != NULL) {
        onic_say_once("ompi-nic: no passive progress, for lack of a server thread: %s", why);
        return;
    }
    onic_transport_guard.helper = s->thread;
    atomic_store(&s->running, true);
    atomic_store_explicit(&onic_presence_mine()->helped, true, memory_order_release);
}

void onic_transport_need_help_locked(void)
{
    const onic_server_t *s = &onic_transport.server;
    if (!atomic_load_explicit(&s->running, memory_order_relaxed) && !s->failed)
        onic_server_start(HELP_USEC);
}

void onic_server_stop(void)
{
    onic_server_t *s = &onic_transport.server;
    if (!atomic_load(&s->running))
        return;
    atomic_store_explicit(&onic_presence_mine()->helped, false, memory_order_release);
    atomic_store(&s->stop, true);
    onic_wake_pipe_write(onic_here.wake_pipe, ONIC_WAKE_SELF);
    pthread_join(s->thread, NULL);
    atomic_store(&s->running, false);
}

void onic_transport_want_server(bool want)
{
    onic_server_t *s = &onic_transport.server;
    const int before = atomic_fetch_add(&s->want, want ? 1 : -1);
    if (atomic_load(&s->running) && before == (want ? 0 : 1))
        onic_server_look_after();
}
