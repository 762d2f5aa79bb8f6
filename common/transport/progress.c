/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The transport's progress. */
#include "common/ompi_compat.h"

#include "common/transport/internal.h"

static int run_deferred(void)
{
    const unsigned wanted = atomic_exchange(&onic_transport.deferred, 0);
    int events = 0;
    onic_transport.deferred_left = false;
    for (unsigned id = 0; id < ONIC_AM_COUNT; id++) {
        if ((wanted >> id & 1) == 0 || onic_transport.fns[id].deferred == NULL)
            continue;
        int n = onic_transport.fns[id].deferred();
        if (n < 0) {
            onic_transport.deferred_left = true;
            onic_transport_defer(id);
        } else {
            events += n;
        }
    }
    return events;
}

bool onic_rows_leave_work(void)
{
    bool left = false;
    for (const onic_row_t *const *row = onic_rows; *row != NULL && !left; row++)
        left = (*row)->leaves_work != NULL && (*row)->leaves_work();
    return left;
}

bool onic_transport_leaves_work(void)
{
    return onic_transport.deferred_left || onic_rows_leave_work();
}

int onic_transport_progress_locked(void)
{
    int events = 0;
    for (const onic_row_t *const *row = onic_rows; *row != NULL; row++)
        events += (*row)->progress();
    if (onic_transport.drain > 0) {
        onic_transport.drain = events > 0 ? onic_transport.drain - 1 : 0;
        if (onic_transport.drain == 0) {
            onic_requests_abandon();
            onic_transport_count_loss();
        }
    }
    if (!STAILQ_EMPTY(&onic_requests.done))
        events += onic_requests_progress();
    if (atomic_load_explicit(&onic_transport.deferred, memory_order_relaxed) != 0)
        events += run_deferred();
    return events;
}

static int run_mpi_fns(void)
{
    int events = 0;
    if (atomic_load_explicit(&onic_transport.mpi_kicks, memory_order_relaxed) == 0)
        return 0;
    for (unsigned kicks = atomic_exchange(&onic_transport.mpi_kicks, 0); kicks != 0;
         kicks &= kicks - 1) {
        onic_transport_mpi_fn_t fn = atomic_load(&onic_transport.mpi_fn[__builtin_ctz(kicks)]);
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
        const onic_transport_unlocked_fn_t fn =
            atomic_load_explicit(&onic_transport.unlocked_fn[id], memory_order_acquire);
        const int n = fn != NULL ? fn() : 0;
        left = left || n < 0;
        done += n > 0 ? n : 0;
    }
    return left ? -1 : done;
}

int onic_transport_run_unlocked(void)
{
    const int done = run_unlocked_fns();
    if (atomic_load_explicit(&onic_transport.unlocked_left, memory_order_relaxed) == (done < 0))
        return done;
    atomic_store(&onic_transport.unlocked_left, done < 0);
    /* Another thread may have left something before it could see that. */
    if (done >= 0 && run_unlocked_fns() < 0)
        atomic_store(&onic_transport.unlocked_left, true);
    return done;
}

int onic_transport_progress(void)
{
    int events = 0;
    onic_transport_mark();
    if (onic_transport_trylock()) {
        events = onic_transport_progress_locked();
        onic_transport_unlock();
    }
    const int done = onic_transport_run_unlocked();
    if (done > 0) {
        events += done;
    } else if (done < 0) {
        /* This thread may go away from MPI now. */
        onic_server_look_after();
    }
    if (atomic_load_explicit(&onic_transport_needs_help, memory_order_relaxed))
        onic_transport.start_server();
    return events + run_mpi_fns();
}

bool onic_transport_has_messages(void)
{
    bool may = false;
    for (const onic_row_t *const *row = onic_rows; *row != NULL && !may; row++)
        may = (*row)->may_have != NULL && (*row)->may_have();
    return may;
}

int onic_transport_poll_locked(void)
{
    int events = 0;
    for (const onic_row_t *const *row = onic_rows; *row != NULL && events == 0; row++)
        events += (*row)->poll != NULL ? (*row)->poll() : 0;
    return events;
}

void onic_transport_kick_mpi(unsigned am_id)
{
    atomic_fetch_or(&onic_transport.mpi_kicks, 1U << am_id);
}

void onic_transport_set_fns(unsigned am_id, const onic_transport_fns_t *fns)
{
    onic_transport_lock();
    onic_transport.fns[am_id] = *fns;
    atomic_store(&onic_transport.mpi_fn[am_id], fns->mpi);
    atomic_store(&onic_transport.unlocked_fn[am_id], fns->unlocked);
    onic_transport_defer(am_id);
    onic_transport_unlock();
}
