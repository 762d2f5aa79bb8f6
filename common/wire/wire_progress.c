/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The wire's lock and its progress.
 */
#define _GNU_SOURCE
#include "common/ompi_compat.h"
#include "common/support/clock.h"
#include "common/support/pause.h"
#include "common/support/say.h"
#include "common/wire/wire_internal.h"
#include ONIC_MUTEX_HEADER

#include <sched.h>

/* ---- lock ----------------------------------------------------------------------------------- */

onic_wire_guard_t onic_wire_guard = {.threads = &opal_uses_threads};

/* A spin lock: it is held for short, and contended only by other MPI threads. */
void onic_wire_lock_wait(void)
{
    for (unsigned spins = 1; !onic_wire_trylock(); spins++) {
        /* The holder may have lost its processor. */
        if (spins % 64 == 0)
            sched_yield();
        else
            onic_pause();
    }
}

/** Nobody has the wire for so long but the forking thread itself. */
#define FORK_PATIENCE_NSEC UINT64_C(3000000000)

static _Thread_local bool locked_for_fork;

/* A fork while the server thread is inside UCX would leave the child with UCX's locks held for
 * ever. UCX takes some of them before each fork, so that a child that forks itself would hang. But
 * a thread that crashes in here may fork a debugger, from UCX's handler or the application's. Below
 * MPI_THREAD_MULTIPLE a thread that forks beside the one that calls MPI can find the lock free in
 * the very moment in which that one takes it: as bad for the child as without this. */
void onic_wire_before_fork(void)
{
    const uint64_t end = onic_now_nsec() + FORK_PATIENCE_NSEC;
    while (!(locked_for_fork = onic_wire_trylock()) && onic_now_nsec() < end) {
        sched_yield();
    }
}

void onic_wire_after_fork(void)
{
    if (locked_for_fork) {
        locked_for_fork = false;
        onic_wire_unlock();
    }
}

/* ---- progress -------------------------------------------------------------------------------- */

static int run_deferred(void)
{
    const unsigned wanted = atomic_exchange(&onic_wire.deferred, 0);
    int events = 0;
    onic_wire.deferred_left = false;
    for (unsigned id = 0; id < ONIC_AM_COUNT; id++) {
        if ((wanted >> id & 1) == 0 || onic_wire.deferred_fn[id] == NULL) {
            continue;
        }
        int n = onic_wire.deferred_fn[id]();
        if (n < 0) {
            onic_wire.deferred_left = true;
            onic_wire_defer(id);
        } else {
            events += n;
        }
    }
    return events;
}

void onic_wire_defer(unsigned am_id)
{
    atomic_fetch_or(&onic_wire.deferred, 1U << am_id);
    /* An MPI thread that only starts something and goes away again leaves it to the server. */
    onic_server_look_after();
}

void onic_wire_count_loss(void)
{
    atomic_fetch_add_explicit(&onic_wire.losses, 1, memory_order_relaxed);
    atomic_store(&onic_wire.deferred, ~0U);
}

int onic_wire_progress_locked(void)
{
    int events = onic_queues_receive();
    events += (int)ucp_worker_progress(onic_wire.worker);
    if (onic_drain_goes_on(&onic_wire.drain) &&
        onic_drain_ends(&onic_wire.drain, (unsigned)events)) {
        onic_sends_abandon();
        onic_wire_count_loss();
    }
    if (onic_queues_have_waiting()) {
        events += onic_queues_send();
    }
    if (onic_wire.unsent_head != NULL) {
        events += onic_unsent_progress();
    }
    if (onic_wire.done_head != NULL) {
        events += onic_done_progress();
    }
    if (onic_wire.loop_head != NULL) {
        events += onic_loop_progress();
    }
    if (atomic_load_explicit(&onic_wire.deferred, memory_order_relaxed) != 0) {
        events += run_deferred();
    }
    return events;
}

static int run_mpi_fns(void)
{
    int events = 0;
    if (atomic_load_explicit(&onic_wire.mpi_kicks, memory_order_relaxed) == 0) {
        return 0;
    }
    for (unsigned kicks = atomic_exchange(&onic_wire.mpi_kicks, 0); kicks != 0;
         kicks &= kicks - 1) {
        onic_wire_mpi_fn_t fn = atomic_load(&onic_wire.mpi_fn[__builtin_ctz(kicks)]);
        events += fn != NULL ? fn() : 0;
    }
    return events;
}

void onic_wire_set_unlocked_fn(onic_wire_unlocked_fn_t fn)
{
    atomic_store(&onic_wire.unlocked_fn, fn);
}

int onic_wire_run_unlocked(void)
{
    const onic_wire_unlocked_fn_t fn =
        atomic_load_explicit(&onic_wire.unlocked_fn, memory_order_acquire);
    const int done = fn != NULL ? fn() : 0;
    if (atomic_load_explicit(&onic_wire.unlocked_left, memory_order_relaxed) != (done < 0)) {
        atomic_store(&onic_wire.unlocked_left, done < 0);
    }
    return done;
}

int onic_wire_progress(void)
{
    int events = 0;
    onic_presence_mark();
    onic_say_waiting();
    if (onic_wire_trylock()) {
        events = onic_wire_progress_locked();
        onic_wire_unlock();
    }
    const int done = onic_wire_run_unlocked();
    if (done > 0) {
        events += done;
    } else if (done < 0) {
        /* This thread may go away from MPI now. */
        onic_server_look_after();
    }
    return events + run_mpi_fns();
}

bool onic_wire_has_messages(void)
{
    return atomic_load_explicit(&onic_wire.neps, memory_order_relaxed) > 0 ||
           onic_queues_have_messages();
}

int onic_wire_poll_locked(void)
{
    int events = onic_queues_receive();
    if (events == 0 && atomic_load_explicit(&onic_wire.neps, memory_order_relaxed) > 0) {
        events = (int)ucp_worker_progress(onic_wire.worker);
    }
    /* Who waited for what has come may compute next, and others wait for an answer. */
    if (onic_wire.unsent_head != NULL) {
        events += onic_unsent_progress();
    }
    return events;
}

void onic_wire_set_mpi_fn(unsigned am_id, onic_wire_mpi_fn_t fn)
{
    if (am_id < ONIC_AM_COUNT) {
        atomic_store(&onic_wire.mpi_fn[am_id], fn);
    }
}

void onic_wire_kick_mpi(unsigned am_id)
{
    if (am_id < ONIC_AM_COUNT) {
        atomic_fetch_or(&onic_wire.mpi_kicks, 1U << am_id);
    }
}

void onic_wire_set_deferred_fn(unsigned am_id, onic_wire_deferred_fn_t fn)
{
    if (am_id < ONIC_AM_COUNT) {
        onic_wire_lock();
        onic_wire.deferred_fn[am_id] = fn;
        onic_wire_defer(am_id);
        onic_wire_unlock();
    }
}

bool onic_wire_wait(ucs_status_ptr_t request, unsigned usec)
{
    if (!UCS_PTR_IS_PTR(request)) {
        return true;
    }
    uint64_t end = onic_now_nsec() + UINT64_C(1000) * usec;
    while (ucp_request_check_status(request) == UCS_INPROGRESS && onic_now_nsec() < end) {
        if (onic_wire_progress_locked() == 0) {
            sched_yield();
        }
    }
    bool done = ucp_request_check_status(request) != UCS_INPROGRESS;
    ucp_request_free(request);
    return done;
}
