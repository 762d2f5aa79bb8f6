/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The memory by which the processes of a node synchronise on a window. */
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

/** What the processes of a node share about one target of one window. Behind it in the segment lie
 *  its board of fences, five arrays with one element for each process of the node, the reply lines
 *  in which these answer its own operations, and the lock queue. */
typedef struct nicstride_ctl {
    _Alignas(64) onic_owned_lock_t queue_lock; /**< guards the lock queue */
    nicstride_shown_t attached;                /**< dynamic window: what is, as others are shown */
    /* Read by all for each operation, and seldom written: not beside a lock. */
    _Alignas(64) _Atomic uint32_t broken; /**< of the first block: the window has failed; why, and
                                             who has died */
    uint64_t base;                        /**< address of its memory in its address space */
    nicstride_discipline_t discipline;    /**< of accumulates, where others map its memory */
    _Alignas(64) nicstride_stay_t stay;   /**< what the process has of the window's lock */
} nicstride_ctl_t;

/** A lock of some of the elements of a target (protocol/discipline.h). */
typedef struct nicstride_stripe_lock {
    _Alignas(64) onic_owned_lock_t lock;
} nicstride_stripe_lock_t;

/** Where the parts of a block lie, and its bytes. `mapped`: the processes map each other's
 *  memory. */
nicstride_ctl_parts_t nicstride_ctl_place(int nlocal, int nranks, bool mapped);

/** On the node of rank 0 there is one block more, for the queue of the window's lock. */
static inline int nicstride_ctl_blocks(const onic_node_t *node)
{
    return node->n + (node->ranks[0] == 0);
}

/** That block. */
static inline int nicstride_ctl_of_window(const nicstride_module_t *m)
{
    return m->node.n;
}

/** Control block of a process of my node. */
static inline nicstride_ctl_t *nicstride_ctl(const nicstride_module_t *m, int local)
{
    return (nicstride_ctl_t *)((char *)m->segment.base + (size_t)local * m->ctl.bytes);
}

static inline void *nicstride_ctl_part(const nicstride_module_t *m, int local, size_t part)
{
    return (char *)nicstride_ctl(m, local) + part;
}

/* Notices of post, of complete, and grants of its lock, for each process of the node. */
static inline _Atomic uint32_t *nicstride_ctl_notices(const nicstride_module_t *m, int local,
                                                      nicstride_notice_of_t of)
{
    return (_Atomic uint32_t *)nicstride_ctl_part(m, local, m->ctl.notices) + of * m->node.n;
}
static inline _Atomic uint32_t *nicstride_ctl_granted(const nicstride_module_t *m, int local)
{
    return nicstride_ctl_part(m, local, m->ctl.granted);
}
/** Of each process of the node the messages sent here, in all, when it last closed an epoch. */
static inline _Atomic uint64_t *nicstride_ctl_counts(const nicstride_module_t *m, int local)
{
    return nicstride_ctl_part(m, local, m->ctl.counts);
}
/** The locks of a target's elements: NICSTRIDE_STRIPES, or one where its memory is its own. */
static inline nicstride_stripe_lock_t *nicstride_ctl_stripes(const nicstride_module_t *m, int local)
{
    return nicstride_ctl_part(m, local, m->ctl.stripes);
}
static inline nicstride_lockq_t *nicstride_ctl_lockq(const nicstride_module_t *m, int local)
{
    return nicstride_ctl_part(m, local, m->ctl.lockq);
}

/** Address of a rank's memory in its own address space: 0 for dynamic windows. Of other nodes only
 *  the last bits, below NICSTRIDE_LINE, are known. */
static inline uint64_t nicstride_base(const nicstride_module_t *m, int rank)
{
    const int local = onic_node_index(&m->node, rank);

    return local >= 0 ? nicstride_ctl(m, local)->base : nicstride_info(m, rank)->align;
}

/* ---- the locks of a control block ------------------------------------------------------------ */

/** Takes one of them if it is free. Never waits: for handlers. */
static inline bool nicstride_ctl_try(const nicstride_module_t *m, onic_owned_lock_t *lock)
{
    return onic_owned_try(lock, (uint32_t)m->node.me);
}

/** Waits for it; MPI threads. 0, or ONIC_ERR_PROC_FAILED: the owner has died, the window failed. */
int nicstride_ctl_wait(const nicstride_module_t *m, onic_owned_lock_t *lock);

/** Takes it, as above. Inlined but for the waiting: under a lock that nobody else wants the update
 *  of one element takes little longer than this. */
static inline int nicstride_ctl_lock(const nicstride_module_t *m, onic_owned_lock_t *lock)
{
    return nicstride_ctl_try(m, lock) ? 0 : nicstride_ctl_wait(m, lock);
}

static inline void nicstride_ctl_unlock(onic_owned_lock_t *lock)
{
    onic_owned_release(lock);
}

/** True if its owner is known to have died. Any thread. */
static inline bool nicstride_ctl_is_orphaned(const nicstride_module_t *m, onic_owned_lock_t *lock)
{
    const int64_t owner = onic_owned_by(lock);

    return owner >= 0 && onic_peer_has_died(m->near[owner]);
}

/** The same of all locks of a process of the node. */
static inline bool nicstride_ctl_has_orphan(const nicstride_module_t *m, int local)
{
    bool found = nicstride_ctl_is_orphaned(m, &nicstride_ctl(m, local)->queue_lock);

    for (int i = 0; i < (m->shared ? NICSTRIDE_STRIPES : 1) && !found; i++)
        found = nicstride_ctl_is_orphaned(m, &nicstride_ctl_stripes(m, local)[i].lock);
    return found;
}

/* ---- windows that have failed ---------------------------------------------------------------- */

/** What a process was about when it died. */
typedef enum nicstride_broken {
    NICSTRIDE_BROKEN_NOT,
    NICSTRIDE_BROKEN_UPDATE, /**< it updated memory, or the queue of a lock */
    NICSTRIDE_BROKEN_LOCK    /**< it held the lock of a target */
} nicstride_broken_t;

static inline _Atomic uint32_t *nicstride_ctl_broken(const nicstride_module_t *m)
{
    return &nicstride_ctl(m, 0)->broken;
}

/** A process has died in such a way that the window's data cannot be trusted: a process that waits
 *  for locks on this node, or comes to any call of synchronisation, gets an error from now on. The
 *  first cause stays. Any thread. */
void nicstride_break(const nicstride_module_t *m, nicstride_broken_t why, int local);

/** True if the window has failed. */
static inline bool nicstride_is_broken(const nicstride_module_t *m)
{
    return atomic_load_explicit(nicstride_ctl_broken(m), memory_order_relaxed) != 0;
}

/** `rc`, or, where that is OMPI_SUCCESS and the window has failed, an error, with a text. */
int nicstride_broken_error(const nicstride_module_t *m, const char *call);

static inline int nicstride_unless_broken(const nicstride_module_t *m, const char *call, int rc)
{
    return rc != 0 || !nicstride_is_broken(m) ? rc : nicstride_broken_error(m, call);
}
