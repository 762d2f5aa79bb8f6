/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Control blocks: their parts, waiting for their locks, windows that have failed; see
 * control.h. */
#include <sched.h>
#include <time.h>

#include "common/support/clock.h"
#include "common/support/pause.h"
#include "osc_nicstride/window/control.h"

/* ---- where the parts of a block lie ---------------------------------------------------------- */

#define ALIGN64(n) (((n) + 63) & ~(size_t)63)

/* After the fixed part: counts, times, posts, completes and grants, one of each for each process of
 * the node; then a slot for each, then the lock queue, then the board of fences. */
static size_t counts_offset(void)
{
    return ALIGN64(sizeof(nicstride_ctl_t));
}

static size_t spent_offset(int nlocal)
{
    return counts_offset() + ALIGN64((size_t)nlocal * sizeof(uint64_t));
}

static size_t counters_offset(int nlocal)
{
    return spent_offset(nlocal) + ALIGN64((size_t)nlocal * sizeof(nicstride_spent_t));
}

static size_t slots_offset(int nlocal)
{
    return counters_offset(nlocal) + ALIGN64(3 * (size_t)nlocal * sizeof(uint32_t));
}

static size_t lockq_offset(int nlocal)
{
    return slots_offset(nlocal) + (size_t)nicstride_slot_count(nlocal) * sizeof(nicstride_slot_t);
}

static size_t board_offset(int nlocal, int nranks)
{
    return lockq_offset(nlocal) + ALIGN64(nicstride_lockq_size((uint32_t)nranks));
}

size_t nicstride_ctl_bytes(int nlocal, int nranks)
{
    return board_offset(nlocal, nranks) + nicstride_fence_board_bytes(nlocal, nranks);
}

nicstride_ctl_t *nicstride_ctl(const nicstride_module_t *m, int local)
{
    return (nicstride_ctl_t *)((char *)m->segment.base + (size_t)local * m->ctl_size);
}

static _Atomic uint32_t *ctl_counters(const nicstride_module_t *m, int local, int which)
{
    char *at = (char *)nicstride_ctl(m, local) + counters_offset(m->node.n);

    return (_Atomic uint32_t *)(void *)at + which * m->node.n;
}

_Atomic uint64_t *nicstride_ctl_counts(const nicstride_module_t *m, int local)
{
    return (_Atomic uint64_t *)(void *)((char *)nicstride_ctl(m, local) + counts_offset());
}

nicstride_spent_t *nicstride_ctl_spent(const nicstride_module_t *m, int local)
{
    return (nicstride_spent_t *)(void *)((char *)nicstride_ctl(m, local) + spent_offset(m->node.n));
}

char *nicstride_ctl_board(const nicstride_module_t *m, int local)
{
    return (char *)nicstride_ctl(m, local) + board_offset(m->node.n, m->size);
}

_Atomic uint32_t *nicstride_ctl_posts(const nicstride_module_t *m, int local)
{
    return ctl_counters(m, local, 0);
}

_Atomic uint32_t *nicstride_ctl_completes(const nicstride_module_t *m, int local)
{
    return ctl_counters(m, local, 1);
}

_Atomic uint32_t *nicstride_ctl_granted(const nicstride_module_t *m, int local)
{
    return ctl_counters(m, local, 2);
}

nicstride_slot_t *nicstride_ctl_slots(const nicstride_module_t *m, int local)
{
    if (nicstride_slot_count(m->node.n) == 0)
        return NULL;
    return (nicstride_slot_t *)(void *)((char *)nicstride_ctl(m, local) + slots_offset(m->node.n));
}

nicstride_lockq_t *nicstride_ctl_lockq(const nicstride_module_t *m, int local)
{
    return (nicstride_lockq_t *)(void *)((char *)nicstride_ctl(m, local) + lockq_offset(m->node.n));
}

/* ---- windows that have failed ---------------------------------------------------------------- */

/* The cause in the upper half of the word, the process + 1 in the lower. Nodes are smaller. */
#define WHO_BITS 16

void nicstride_break(const nicstride_module_t *m, nicstride_broken_t why, int local)
{
    uint32_t not_yet = NICSTRIDE_BROKEN_NOT;

    atomic_compare_exchange_strong(nicstride_ctl_broken(m), &not_yet,
                                   (uint32_t)why << WHO_BITS | (uint32_t)(local + 1));
}

int nicstride_broken_error(const nicstride_module_t *m, const char *call)
{
    const uint32_t word = atomic_load(nicstride_ctl_broken(m));
    const int local = (int)(word & ((1u << WHO_BITS) - 1)) - 1;

    return nicstride_error(m, call, ONIC_ERR_PROC_FAILED,
                           "rank %d of this node has died while it %s: the data of the window "
                           "cannot be trusted any more",
                           local >= 0 && local < m->node.n ? m->node.ranks[local] : -1,
                           word >> WHO_BITS == NICSTRIDE_BROKEN_LOCK ? "held a lock of the window"
                                                                     : "updated the window");
}

/** Finds out whether the owner has died. */
static bool is_orphaned(const nicstride_module_t *m, onic_owned_lock_t *lock)
{
    const int64_t owner = onic_owned_by(lock, (uint32_t)m->node.n);

    if (owner == -2)
        nicstride_break(m, NICSTRIDE_BROKEN_UPDATE, -1);
    if (owner < 0)
        return owner == -2;
    if (!onic_peer_look(m->near[owner]))
        return false;
    /* What it had a moment ago it has for ever, or had given back before. */
    if (onic_owned_by(lock, (uint32_t)m->node.n) != owner)
        return false;
    nicstride_break(m, NICSTRIDE_BROKEN_UPDATE, (int)owner);
    return true;
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
