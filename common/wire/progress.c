/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The wire's progress. */
#include "common/ompi_compat.h"

#include <errno.h>

#include "common/support/help.h"
#include "common/wire/wire_internal.h"

/** Where UCX cannot open what it needs for a connection that another process makes, it drops the
 *  connection, tells neither side, and the other one waits for ever. It leaves nothing but errno.
 */
static int progress_ucx(void)
{
    errno = 0;
    const int events = (int)onic_ucx.worker_progress(onic_wire.worker);
    if (errno == EMFILE)
        onic_say_descriptors();
    return events;
}

static int run_deferred(void)
{
    const unsigned wanted = atomic_exchange(&onic_wire.deferred, 0);
    int events = 0;
    onic_wire.deferred_left = false;
    for (unsigned id = 0; id < ONIC_AM_COUNT; id++) {
        if ((wanted >> id & 1) == 0 || onic_wire.fns[id].deferred == NULL)
            continue;
        int n = onic_wire.fns[id].deferred();
        if (n < 0) {
            onic_wire.deferred_left = true;
            onic_wire_defer(id);
        } else {
            events += n;
        }
    }
    return events;
}

int onic_wire_progress_locked(void)
{
    int events = onic_queues_receive();
    events += progress_ucx();
    if (onic_wire.drain > 0) {
        onic_wire.drain = events > 0 ? onic_wire.drain - 1 : 0;
        if (onic_wire.drain == 0) {
            onic_sends_abandon();
            onic_wire_count_loss();
        }
    }
    if (onic_queues_have_waiting())
        events += onic_queues_send();
    if (!STAILQ_EMPTY(&onic_wire.done))
        events += onic_done_progress();
    if (!STAILQ_EMPTY(&onic_wire.loop))
        events += onic_loop_progress();
    if (atomic_load_explicit(&onic_wire.deferred, memory_order_relaxed) != 0)
        events += run_deferred();
    return events;
}

static int run_mpi_fns(void)
{
    int events = 0;
    if (atomic_load_explicit(&onic_wire.mpi_kicks, memory_order_relaxed) == 0)
        return 0;
    for (unsigned kicks = atomic_exchange(&onic_wire.mpi_kicks, 0); kicks != 0;
         kicks &= kicks - 1) {
        onic_wire_mpi_fn_t fn = atomic_load(&onic_wire.mpi_fn[__builtin_ctz(kicks)]);
        events += fn != NULL ? fn() : 0;
    }
    return events;
}

/** What they have done together; negative if one has left something. */
static int run_unlocked_fns(void)
{
    bool left = false;
    int done = 0;
    for (unsigned id = 0; id < ONIC_AM_COUNT; id++) {
        const onic_wire_unlocked_fn_t fn =
            atomic_load_explicit(&onic_wire.unlocked_fn[id], memory_order_acquire);
        const int n = fn != NULL ? fn() : 0;
        left = left || n < 0;
        done += n > 0 ? n : 0;
    }
    return left ? -1 : done;
}

int onic_wire_run_unlocked(void)
{
    const int done = run_unlocked_fns();
    if (atomic_load_explicit(&onic_wire.unlocked_left, memory_order_relaxed) == (done < 0))
        return done;
    atomic_store(&onic_wire.unlocked_left, done < 0);
    /* Another thread may have left something before it could see that. */
    if (done >= 0 && run_unlocked_fns() < 0)
        atomic_store(&onic_wire.unlocked_left, true);
    return done;
}

int onic_wire_progress(void)
{
    int events = 0;
    onic_wire_mark();
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
    if (atomic_load_explicit(&onic_wire_needs_help, memory_order_relaxed))
        onic_wire.start_server();
    return events + run_mpi_fns();
}

bool onic_wire_has_messages(void)
{
    return atomic_load_explicit(&onic_wire.neps, memory_order_relaxed) > 0 ||
           onic_inbox_has_messages();
}

int onic_wire_poll_locked(void)
{
    int events = onic_queues_receive();
    if (events == 0 && atomic_load_explicit(&onic_wire.neps, memory_order_relaxed) > 0)
        events = progress_ucx();
    return events;
}

void onic_wire_kick_mpi(unsigned am_id)
{
    atomic_fetch_or(&onic_wire.mpi_kicks, 1U << am_id);
}

void onic_wire_set_fns(unsigned am_id, const onic_wire_fns_t *fns)
{
    onic_wire_lock();
    onic_wire.fns[am_id] = *fns;
    atomic_store(&onic_wire.mpi_fn[am_id], fns->mpi);
    atomic_store(&onic_wire.unlocked_fn[am_id], fns->unlocked);
    onic_wire_defer(am_id);
    onic_wire_unlock();
}
