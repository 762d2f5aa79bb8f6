/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The memory by which the processes of a node synchronise on a window: locks, counters and the lock
 * queue of each target.
 */
#ifndef NICSTRIDE_CONTROL_H
#define NICSTRIDE_CONTROL_H

#include <stdbool.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "osc_nicstride/lockq.h"
#include "osc_nicstride/module.h"
#include "osc_nicstride/slot.h"

/**
 * What the processes of a node share about one target of one window. Behind it in the segment lie
 * its board of fences, four arrays with one counter for each process of the node, the slots in
 * which these answer its own operations, and the lock queue.
 */
typedef struct nicstride_ctl {
    _Alignas(64) _Atomic uint32_t acc_lock;   /**< held while an accumulate is applied */
    _Alignas(64) _Atomic uint32_t queue_lock; /**< guards the lock queue */
    _Atomic uint64_t generation;              /**< of the table of attached regions */
} nicstride_ctl_t;

/** Control block of a process of my node, and the parts behind it. */
nicstride_ctl_t *nicstride_ctl(const nicstride_module_t *m, int local);
_Atomic uint32_t *nicstride_ctl_posts(const nicstride_module_t *m, int local);
_Atomic uint32_t *nicstride_ctl_completes(const nicstride_module_t *m, int local);
_Atomic uint32_t *nicstride_ctl_granted(const nicstride_module_t *m, int local);
nicstride_slot_t *nicstride_ctl_slots(const nicstride_module_t *m, int local);
nicstride_lockq_t *nicstride_ctl_lockq(const nicstride_module_t *m, int local);
/** For each process of the node how many messages it had sent to this one, in all, when it last
 *  closed an epoch. */
_Atomic uint64_t *nicstride_ctl_counts(const nicstride_module_t *m, int local);
char *nicstride_ctl_board(const nicstride_module_t *m, int local);
size_t nicstride_ctl_bytes(int nlocal, int nranks);

/** Spin locks of the control block. `try` never waits: for handlers. Inlined but for the waiting:
 *  under a lock that nobody else wants the update of one element takes little longer than this. */
static inline bool nicstride_spin_try(_Atomic uint32_t *lock)
{
    return atomic_load_explicit(lock, memory_order_relaxed) == 0 &&
           atomic_exchange_explicit(lock, 1, memory_order_acquire) == 0;
}

void nicstride_spin_wait(_Atomic uint32_t *lock);

static inline void nicstride_spin_lock(_Atomic uint32_t *lock)
{
    if (!nicstride_spin_try(lock))
        nicstride_spin_wait(lock);
}

static inline void nicstride_spin_unlock(_Atomic uint32_t *lock)
{
    atomic_store_explicit(lock, 0, memory_order_release);
}

#endif
