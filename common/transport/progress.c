/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The transport's progress. */
#include "common/ompi_compat.h"

#include "common/support/clock.h"
#include "common/transport/internal.h"

#define ALL ((1U << ONIC_AM_COUNT) - 1)

static bool is_asked(onic_place_t place)
{
    return atomic_load_explicit(&onic_transport.asked[place], memory_order_relaxed) != 0;
}

/** Runs the functions that were asked for. True if one has left something. */
static bool run_asked(onic_place_t place, int *done_p)
{
    unsigned left = 0;
    for (unsigned asked = atomic_exchange(&onic_transport.asked[place], 0) & ALL; asked != 0;
         asked &= asked - 1) {
        const unsigned id = (unsigned)__builtin_ctz(asked);
        const onic_work_fn_t fn =
            atomic_load_explicit(&onic_transport.work[place][id], memory_order_acquire);
        const int n = fn != NULL ? fn() : 0;
        if (n < 0)
            left |= 1U << id;
        else
            *done_p += n;
    }
    if (left != 0) {
        atomic_fetch_or(&onic_transport.asked[place], left);
        onic_server_look_after();
    }
    return left != 0;
}

bool onic_rows_leave_work(void)
{
    bool left = false;
    for (const onic_row_t *const *row = onic_rows; *row != NULL && !left; row++)
        left = (*row)->leaves_work();
    return left;
}

bool onic_transport_leaves_work(void)
{
    return onic_transport.locked_left || onic_rows_leave_work();
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
    if (is_asked(ONIC_LOCKED))
        onic_transport.locked_left = run_asked(ONIC_LOCKED, &events);
    return events;
}

/** Calls of progress between two readings of the clock. */
#define LOOK_CALLS 1024
/** Nanoseconds between two looks for processes that have died. */
#define LOOK_NSEC UINT64_C(10000000)

static void look_for_dead_now_and_then(void)
{
    static atomic_uint calls;
    static _Atomic uint64_t looked;
    /* Concurrent threads may lose counts. */
    const unsigned n = atomic_load_explicit(&calls, memory_order_relaxed) + 1;
    atomic_store_explicit(&calls, n, memory_order_relaxed);
    if (n % LOOK_CALLS != 0)
        return;
    const uint64_t now = onic_now_nsec();
    if (now - atomic_load_explicit(&looked, memory_order_relaxed) < LOOK_NSEC)
        return;
    atomic_store_explicit(&looked, now, memory_order_relaxed);
    onic_transport_look_for_dead();
}

int onic_transport_progress(void)
{
    int events = 0;
    onic_transport_mark();
    look_for_dead_now_and_then();
    if (onic_transport_trylock()) {
        events = onic_transport_progress_locked();
        onic_transport_unlock();
    }
    if (is_asked(ONIC_MPI))
        (void)run_asked(ONIC_MPI, &events);
    return events;
}

bool onic_transport_has_messages(void)
{
    bool may = false;
    for (const onic_row_t *const *row = onic_rows; *row != NULL && !may; row++)
        may = (*row)->may_have();
    return may;
}

int onic_transport_poll_locked(void)
{
    int events = 0;
    for (const onic_row_t *const *row = onic_rows; *row != NULL && events == 0; row++)
        events = (*row)->poll();
    return events;
}

void onic_transport_set_fns(unsigned am_id, const onic_transport_fns_t *fns)
{
    onic_transport_lock();
    onic_transport.am[am_id] = fns->am;
    for (unsigned place = 0; place < ONIC_PLACES; place++)
        atomic_store(&onic_transport.work[place][am_id], fns->work[place]);
    onic_transport_ask(am_id, ONIC_LOCKED);
    onic_transport_unlock();
}
