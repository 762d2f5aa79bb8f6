/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The window: what is shared on the node, the peers, waiting.
 */
#include <stddef.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "osc_nicstride/module.h"
#include "osc_nicstride/calls.h"
#include "osc_nicstride/component.h"
#include "osc_nicstride/control.h"
#include "osc_nicstride/errors.h"
#include "osc_nicstride/stream.h"
#include "osc_nicstride/wake.h"
#include "common/pause.h"

#include "opal/runtime/opal_progress.h"

#define ALIGN64(n) (((n) + 63) & ~(size_t)63)

/* After the fixed part: the board of fences; counts, posts, completes and grants, one counter each
 * for each process of the node; then a slot for each, then the lock queue. */
static size_t board_offset(void)
{
    return ALIGN64(sizeof(nicstride_ctl_t));
}

static size_t counts_offset(int nlocal)
{
    return board_offset() + nicstride_fence_board_bytes(nlocal);
}

static size_t counters_offset(int nlocal)
{
    return counts_offset(nlocal) + ALIGN64((size_t)nlocal * sizeof(uint64_t));
}

static size_t slots_offset(int nlocal)
{
    return counters_offset(nlocal) + ALIGN64(3 * (size_t)nlocal * sizeof(uint32_t));
}

static size_t lockq_offset(int nlocal)
{
    return slots_offset(nlocal) + (size_t)nicstride_slot_count(nlocal) * sizeof(nicstride_slot_t);
}

size_t nicstride_ctl_bytes(int nlocal, int nranks)
{
    return lockq_offset(nlocal) + ALIGN64(nicstride_lockq_size((uint32_t)nranks));
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
    return (_Atomic uint64_t *)(void *)((char *)nicstride_ctl(m, local) + counts_offset(m->node.n));
}

char *nicstride_ctl_board(const nicstride_module_t *m, int local)
{
    return (char *)nicstride_ctl(m, local) + board_offset();
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

void nicstride_spin_wait(_Atomic uint32_t *lock)
{
    /* The holder may have lost its processor: give it ours rather than burn it. */
    for (unsigned spins = 0; !nicstride_spin_try(lock); spins++) {
        if (spins % 128 == 127)
            sched_yield();
        else
            onic_pause();
    }
}

void nicstride_progress(void)
{
    opal_progress();
}

/* Turns of the wire between two turns of everything else, which cost several times as much. */
#define WIRE_TURNS 32
/* And between two signs of life. */
#define BEAT_TURNS 4

/** `wakes`: `p` is woken. `always`: what is waited for may come without an event. */
static void wait_until(nicstride_peer_t *p, bool wakes, bool always, bool (*done)(void *arg),
                       void *arg)
{
    nicstride_patience_t patience;

    nicstride_patience_begin(&patience);
    for (;;) {
        bool over = false;
        int events = 1;

        onic_wire_lock();
        for (int turn = 0; turn < WIRE_TURNS; turn++) {
            /* What is waited for comes with an event, or is in the slot. */
            if (p != NULL && nicstride_look_locked(p))
                events = 1;
            over = (always || events != 0) && done(arg);
            if (over)
                break;
            if (turn % BEAT_TURNS == 0)
                onic_beat();
            events = onic_wire_progress_locked();
        }
        onic_wire_unlock();
        if (over)
            return;
        if (wakes)
            nicstride_wake_waited(&patience, p);
        opal_progress();
    }
}

void nicstride_wait_until(nicstride_peer_t *p, bool (*done)(void *arg), void *arg)
{
    wait_until(p, p != NULL, false, done, arg);
}

void nicstride_wait_patiently(nicstride_peer_t *p, bool (*done)(void *arg), void *arg)
{
    wait_until(p, false, false, done, arg);
}

void nicstride_wait_polling(bool (*done)(void *arg), void *arg)
{
    wait_until(NULL, false, true, done, arg);
}

/** Finds the slots by which a process of my node and I answer each other. */
static void find_slots(const nicstride_module_t *m, nicstride_peer_t *p)
{
    nicstride_slot_t *mine = nicstride_ctl_slots(m, m->node.me);

    if (mine == NULL || p->local < 0 || p->rank == m->rank)
        return;
    p->slot = &mine[p->local];
    p->slot_there = &nicstride_ctl_slots(m, p->local)[m->node.me];
}

nicstride_peer_t *nicstride_peer_locked(nicstride_module_t *m, int rank)
{
    nicstride_peer_t *p = m->peer[rank];

    if (p != NULL)
        return p;
    p = calloc(1, sizeof(*p));
    if (p == NULL)
        return NULL;
    p->wire = m->wire[rank];
    p->rank = rank;
    p->local = m->node.index[rank];
    p->tx.window = mca_osc_nicstride_component.params.window;
    p->rx.window = m->info[rank].window;
    find_slots(m, p);
    /* Other MPI threads look without the lock. */
    __atomic_store_n(&m->peer[rank], p, __ATOMIC_RELEASE);
    return p;
}

nicstride_peer_t *nicstride_peer(nicstride_module_t *m, int rank)
{
    nicstride_peer_t *p = __atomic_load_n(&m->peer[rank], __ATOMIC_ACQUIRE);

    if (p == NULL) {
        onic_wire_lock();
        p = nicstride_peer_locked(m, rank);
        onic_wire_unlock();
    }
    return p;
}

/** Parts that may lie apart have no place where they are empty, as with osc/sm of Open MPI. */
void *nicstride_shared_base(const nicstride_module_t *m, int rank)
{
    const bool apart = m->parts != NICSTRIDE_PARTS_CONTIGUOUS;

    return apart && m->info[rank].size == 0 ? NULL : m->mapped[m->node.index[rank]];
}

int nicstride_shared_query(ompi_win_t *win, int rank, size_t *size, int *disp_unit, void *baseptr)
{
    nicstride_module_t *m = nicstride_module(win);
    int found = rank;

    if (m->flavor != MPI_WIN_FLAVOR_SHARED)
        return nicstride_error(m, "MPI_Win_shared_query", OMPI_ERR_RMA_FLAVOR,
                               "the window was not made by MPI_Win_allocate_shared");
    if (rank == MPI_PROC_NULL) {
        /* The standard: the lowest rank that has memory. */
        for (found = 0; found < m->size && m->info[found].size == 0; found++)
            ;
    } else if (rank < 0 || rank >= m->size) {
        return nicstride_error(m, "MPI_Win_shared_query", MPI_ERR_RANK,
                               "rank %d is outside of 0 .. %d", rank, m->size - 1);
    }
    if (found == m->size) {
        *size = 0;
        *disp_unit = 0;
        *(void **)baseptr = NULL;
        return OMPI_SUCCESS;
    }
    *size = m->info[found].size;
    *disp_unit = (int)m->info[found].disp_unit;
    *(void **)baseptr = nicstride_shared_base(m, found);
    return OMPI_SUCCESS;
}
