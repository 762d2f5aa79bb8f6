/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The transport's state, its lock, and the waking of the server thread. */
#define _GNU_SOURCE
#include "common/ompi_compat.h"
#include "common/support/clock.h"
#include "common/support/pause.h"
#include "common/transport/internal.h"
#include ONIC_MUTEX_HEADER

#include <sched.h>

#include "ompi/constants.h"

onic_transport_t onic_transport;

/* ---- lock ----------------------------------------------------------------------------------- */

onic_guard_t onic_transport_guard = {.threads = &opal_uses_threads};

/* A spin lock: it is held for short, and contended only by other MPI threads. */
void onic_transport_lock_wait(void)
{
    for (unsigned spins = 1; !onic_transport_trylock(); spins++)
        onic_pause_for_holder(spins);
}

/** Only the forking thread itself can hold the lock for so long. */
#define FORK_PATIENCE_NSEC UINT64_C(3000000000)

static _Thread_local bool locked_for_fork;

/* A fork while the server thread, of which the program knows nothing, is inside UCX would leave the
 * child with UCX's locks held for ever. What threads of its own leave behind is the program's
 * concern, as with any library: the lock that only one of them takes is left alone. A thread that
 * crashes in here may fork a debugger, so it does not wait for ever. */
static void before_fork(void)
{
    const uint64_t end = onic_now_nsec() + FORK_PATIENCE_NSEC;
    onic_guard_fork_t found;
    while ((found = onic_guard_try_fork(&onic_transport_guard)) == ONIC_GUARD_BUSY &&
           onic_now_nsec() < end)
        sched_yield();
    locked_for_fork = found == ONIC_GUARD_TAKEN;
}

static void after_fork(void)
{
    if (locked_for_fork) {
        locked_for_fork = false;
        onic_transport_unlock();
    }
}

bool onic_transport_guard_fork(void)
{
    return pthread_atfork(before_fork, after_fork, after_fork) == 0;
}

/* ---- the server thread ----------------------------------------------------------------------- */

void onic_server_wake(void)
{
    /* Only the first one writes. */
    if (atomic_exchange(&onic_transport.server.sleep, ONIC_SERVER_LOOKS) != ONIC_SERVER_LOOKS)
        onic_wake_pipe_write(onic_here.wake_pipe, ONIC_WAKE_SELF);
}

void onic_transport_mark(void)
{
    onic_transport_t *w = &onic_transport;
    /* No locked instruction, for it would be on the way of every small message. A tick that is
     * missed is followed by others. */
    atomic_store_explicit(&w->mpi_ticks,
                          atomic_load_explicit(&w->mpi_ticks, memory_order_relaxed) + 1,
                          memory_order_relaxed);
    if (atomic_load_explicit(&w->server.sleep, memory_order_relaxed) == ONIC_SERVER_PARKED)
        onic_server_wake();
    onic_presence_mark();
}

void onic_transport_ask(unsigned am_id, onic_place_t place)
{
    atomic_fetch_or(&onic_transport.asked[place], 1U << am_id);
    /* An MPI thread that only starts something and goes away again leaves it to the server. */
    if (place == ONIC_LOCKED)
        onic_server_look_after();
}
