/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The window: what is shared on the node, the peers, waiting.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "osc_nicstride/window/module.h"
#include "osc_nicstride/window/calls.h"
#include "osc_nicstride/window/component.h"
#include "osc_nicstride/window/control.h"

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

/** Finds the slots by which a process of my node and I answer each other. */
static void find_slots(const nicstride_module_t *m, nicstride_peer_t *p)
{
    nicstride_slot_t *mine = nicstride_ctl_slots(m, m->node.me);

    if (mine == NULL || p->local < 0 || p->rank == m->rank)
        return;
    p->slot = &mine[p->local];
    p->slot_there = &nicstride_ctl_slots(m, p->local)[m->node.me];
}

static uint64_t name_of(const nicstride_module_t *m, int rank)
{
    return m->names != NULL ? m->names[rank] : m->first_name + (uint64_t)rank;
}

onic_peer_t *nicstride_wire_locked(const nicstride_module_t *m, int rank)
{
    const int local = onic_node_index(&m->node, rank);

    return local >= 0 ? m->near[local] : onic_peer_named(name_of(m, rank));
}

nicstride_peer_t *nicstride_peer_locked(nicstride_module_t *m, int rank)
{
    const nicstride_rank_info_t *mine = nicstride_info(m, m->rank), *its = nicstride_info(m, rank);
    nicstride_peer_t *p = m->peer[rank];

    if (p != NULL)
        return p;
    p = calloc(1, sizeof(*p));
    onic_peer_t *wire = p != NULL ? onic_peer_take(name_of(m, rank)) : NULL;
    nicstride_process_t *process = wire != NULL ? nicstride_process_locked(wire) : NULL;
    if (process == NULL) {
        if (wire != NULL)
            onic_peer_give(wire);
        free(p);
        return NULL;
    }
    p->module = m;
    p->wire = wire;
    p->process = process;
    p->quota = &process->quota;
    nicstride_quota_part(p->quota, its->share);
    p->next_window = process->peers;
    process->peers = p;
    p->rank = rank;
    p->win = its->win;
    p->me = (uint32_t)m->rank;
    p->local = onic_node_index(&m->node, rank);
    p->tx.window = mine->window;
    p->rx.window = its->window;
    find_slots(m, p);
    /* Other MPI threads look without the lock. */
    __atomic_store_n(&m->peer[rank], p, __ATOMIC_RELEASE);
    return p;
}

void nicstride_peer_free_locked(nicstride_peer_t *p)
{
    nicstride_peer_t **link = &p->process->peers;

    while (*link != p)
        link = &(*link)->next_window;
    *link = p->next_window;
    nicstride_tx_forget(&p->tx, p->quota);
    nicstride_reply_leave(&nicstride_component.replies, &p->asker);
    free(p);
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

    return apart && nicstride_info(m, rank)->size == 0 ? NULL
                                                       : m->mapped[onic_node_index(&m->node, rank)];
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
        for (found = 0; found < m->size && nicstride_info(m, found)->size == 0; found++)
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
    *size = nicstride_info(m, found)->size;
    *disp_unit = (int)nicstride_info(m, found)->disp_unit;
    *(void **)baseptr = nicstride_shared_base(m, found);
    return OMPI_SUCCESS;
}
