/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "osc_nicstride/window/control.h"

#include <sched.h>
#include <time.h>

#include "common/support/pause.h"
#include "osc_nicstride/window/module.h"

/* ---- where the parts of a block lie ---------------------------------------------------------- */

#define ALIGN64(n) (((n) + 63) & ~(size_t)63)

/** Places `bytes` after everything placed so far; returns their offset. */
static size_t place(size_t *end, size_t bytes)
{
    const size_t at = *end;

    *end = ALIGN64(at + bytes);
    return at;
}

nicstride_ctl_parts_t nicstride_ctl_place(int nlocal, int nranks, bool mapped)
{
    nicstride_ctl_parts_t parts;
    size_t end = ALIGN64(sizeof(nicstride_ctl_t));

    parts.stripes = place(&end, (mapped ? NICSTRIDE_STRIPES : 1) * sizeof(nicstride_stripe_lock_t));
    parts.pairs = place(&end, (size_t)nlocal * sizeof(nicstride_pair_t));
    parts.reply_lines =
        place(&end, (size_t)nicstride_reply_line_count(nlocal) * sizeof(nicstride_reply_line_t));
    parts.lockq = place(&end, nicstride_lockq_size((uint32_t)nranks));
    parts.board = place(&end, nicstride_fence_board_bytes(nlocal, nranks));
    parts.bytes = end;
    return parts;
}

/* ---- windows that have failed ---------------------------------------------------------------- */

void nicstride_break(const nicstride_module_t *m, int local)
{
    uint32_t not_yet = 0;

    atomic_compare_exchange_strong(nicstride_ctl_broken(m), &not_yet, (uint32_t)local + 1);
}

int nicstride_broken_error(const nicstride_module_t *m, const char *call)
{
    const uint32_t local = atomic_load(nicstride_ctl_broken(m)) - 1;

    return nicstride_error(m, call, ONIC_ERR_PROC_FAILED,
                           "rank %d of this node has died while it updated the window or held a "
                           "lock of it: its data cannot be trusted any more",
                           m->node.ranks[local]);
}

static bool is_orphaned(const nicstride_module_t *m, onic_owned_lock_t *lock)
{
    const int64_t owner = onic_owned_by(lock);

    if (owner < 0 || !onic_peer_is_dead(m->near[owner]))
        return false;
    /* An owner that is dead now either has the lock for ever or gave it back before. */
    if (onic_owned_by(lock) != owner)
        return false;
    nicstride_break(m, (int)owner);
    return true;
}

/** Tries for some microseconds. If another process takes the lock again and again, it is free only
 *  for moments, which single tries between naps would miss. */
static bool try_again(const nicstride_module_t *m, onic_owned_lock_t *lock)
{
    for (unsigned i = 0; i < 4 * ONIC_OWNED_SPINS; i++) {
        if (nicstride_ctl_try(m, lock))
            return true;
        onic_pause();
    }
    return false;
}

int nicstride_ctl_wait(const nicstride_module_t *m, onic_owned_lock_t *lock)
{
    onic_owned_wait_t w = {0};

    while (!nicstride_ctl_try(m, lock)) {
        switch (onic_owned_next(&w)) {
        case ONIC_OWNED_SPIN:
            onic_pause();
            break;
        case ONIC_OWNED_YIELD:
            sched_yield();
            break;
        case ONIC_OWNED_NAP: {
            const struct timespec nap = onic_timespec(UINT64_C(1000) * w.nap);

            nanosleep(&nap, NULL);
            if (try_again(m, lock))
                return OMPI_SUCCESS;
            break;
        }
        case ONIC_OWNED_LOOK_AT_OWNER:
            if (is_orphaned(m, lock))
                return ONIC_ERR_PROC_FAILED;
            break;
        }
    }
    return OMPI_SUCCESS;
}
