/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The shared memory through which the processes of a node synchronise on a window. */
#pragma once

#include <stdbool.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "osc_nicstride/protocol/discipline.h"
#include "osc_nicstride/protocol/lockq.h"
#include "osc_nicstride/protocol/window_lock.h"
#include "common/transport/shm/owned_lock.h"
#include "osc_nicstride/window/module.h"

/** What the processes of a node share about one target of one window: its control block. The
 *  segment continues with the target's board of fences, a pair with each process of the node, the
 *  reply lines through which these processes answer the target's own operations, and the lock
 *  queue. */
typedef struct nicstride_ctl {
    _Alignas(64) onic_owned_lock_t queue_lock; /**< guards the lock queue */
    nicstride_shown_t attached; /**< dynamic window: the attached memory, as shown to others */
    /* Read by all for each operation and seldom written, so not in a lock's cache line. */
    /** In the first block: the window has failed; which process of the node has died, + 1. */
    _Alignas(64) _Atomic uint32_t broken;
    uint64_t base;  /**< address of the target's memory in its own address space */
    uint8_t stripe; /**< of accumulates (protocol/discipline.h) */
    _Alignas(64) nicstride_stay_t stay; /**< the process's state in the window's lock */
} nicstride_ctl_t;

/** A lock for some of a target's elements (protocol/discipline.h). */
typedef struct nicstride_stripe_lock {
    _Alignas(64) onic_owned_lock_t lock;
} nicstride_stripe_lock_t;

/** The layout and size of a control block. `mapped`: the processes map each other's memory. */
nicstride_ctl_parts_t nicstride_ctl_place(int nlocal, int nranks, bool mapped);

/** The number of control blocks of a node. The node of rank 0 has one more, for the queue of the
 *  window's lock. */
static inline int nicstride_ctl_blocks(const onic_node_t *node)
{
    return node->n + (node->ranks[0] == 0);
}

/** The index of that block. */
static inline int nicstride_ctl_of_window(const nicstride_module_t *m)
{
    return m->node.n;
}

/** The control block of a process of this node. */
static inline nicstride_ctl_t *nicstride_ctl(const nicstride_module_t *m, int local)
{
    return (nicstride_ctl_t *)((char *)m->segment.base + (size_t)local * m->ctl.bytes);
}

static inline void *nicstride_ctl_part(const nicstride_module_t *m, int local, size_t part)
{
    return (char *)nicstride_ctl(m, local) + part;
}

/** What process `origin` of the node tells process `target`. */
static inline nicstride_pair_t *nicstride_pair(const nicstride_module_t *m, int target, int origin)
{
    return (nicstride_pair_t *)nicstride_ctl_part(m, target, m->ctl.pairs) + origin;
}
/** The locks of a target's elements: NICSTRIDE_STRIPES, or one if nobody else maps its memory. */
static inline nicstride_stripe_lock_t *nicstride_ctl_stripes(const nicstride_module_t *m, int local)
{
    return nicstride_ctl_part(m, local, m->ctl.stripes);
}
static inline nicstride_lockq_t *nicstride_ctl_lockq(const nicstride_module_t *m, int local)
{
    return nicstride_ctl_part(m, local, m->ctl.lockq);
}

/** The address of a rank's memory in its own address space; 0 for dynamic windows. For ranks on
 *  other nodes only the lowest bits, below NICSTRIDE_LINE, are known. */
static inline uint64_t nicstride_base(const nicstride_module_t *m, int rank)
{
    const int local = onic_node_index(&m->node, rank);

    return local >= 0 ? nicstride_ctl(m, local)->base : nicstride_info(m, rank)->align;
}

/* ---- the locks of a control block ------------------------------------------------------------ */

/** Takes one of these locks if it is free. */
static inline bool nicstride_ctl_try(const nicstride_module_t *m, onic_owned_lock_t *lock)
{
    return onic_owned_try(lock, (uint32_t)m->node.me);
}

/** Waits for the lock and takes it. Any thread, handlers too: its owner waits for nothing. 0, or
 *  ONIC_ERR_PROC_FAILED if the owner has died or the window has failed. */
int nicstride_ctl_wait(const nicstride_module_t *m, onic_owned_lock_t *lock);

/** Takes the lock; as above. onic_owned_release gives it back. Only the waiting is not inlined:
 * with an uncontended lock, updating one element takes little longer than this. */
static inline int nicstride_ctl_lock(const nicstride_module_t *m, onic_owned_lock_t *lock)
{
    return nicstride_ctl_try(m, lock) ? 0 : nicstride_ctl_wait(m, lock);
}

/** True if a process that is known to have died has a lock of a process of the node. Any thread. */
static inline bool nicstride_ctl_has_orphan(const nicstride_module_t *m, int local)
{
    int64_t owner = onic_owned_by(&nicstride_ctl(m, local)->queue_lock);
    bool found = owner >= 0 && onic_peer_has_died(m->near[owner]);

    for (int i = 0; i < (m->shared ? NICSTRIDE_STRIPES : 1) && !found; i++) {
        owner = onic_owned_by(&nicstride_ctl_stripes(m, local)[i].lock);
        found = owner >= 0 && onic_peer_has_died(m->near[owner]);
    }
    return found;
}

/* ---- windows that have failed ---------------------------------------------------------------- */

static inline _Atomic uint32_t *nicstride_ctl_broken(const nicstride_module_t *m)
{
    return &nicstride_ctl(m, 0)->broken;
}

/** Marks the window as failed: a process of the node died while it updated memory or a queue, or
 *  held a lock, so the data cannot be trusted. From now on, processes that wait for locks on this
 *  node, or make any call of synchronisation, get an error. Only the first such process is kept.
 *  Any thread. */
void nicstride_break(const nicstride_module_t *m, int local);

/** True if the window has failed. */
static inline bool nicstride_is_broken(const nicstride_module_t *m)
{
    return atomic_load_explicit(nicstride_ctl_broken(m), memory_order_relaxed) != 0;
}

/** Returns `rc`; but if that is OMPI_SUCCESS and the window has failed, an error, after a text. */
int nicstride_broken_error(const nicstride_module_t *m, const char *call);

static inline int nicstride_unless_broken(const nicstride_module_t *m, const char *call, int rc)
{
    return rc != 0 || !nicstride_is_broken(m) ? rc : nicstride_broken_error(m, call);
}
