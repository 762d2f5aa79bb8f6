/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What an accumulate holds while it updates elements of a target on this node: locks shared
 *  by the processes of the node, by the discipline of the target's memory (protocol/discipline.h).
 *  Memory that nobody else maps has one lock, by which calls of its own process and handlers of
 *  messages exclude each other. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "osc_nicstride/protocol/discipline.h"
#include "osc_nicstride/window/control.h"
#include "osc_nicstride/window/module.h"
#include "osc_nicstride/window/op.h"

/** An update of a target's memory, and the locks that it holds. */
typedef struct nicstride_hold {
    const nicstride_module_t *m;
    int local;               /**< the process whose memory is updated */
    bool locks;              /**< it needs locks */
    nicstride_stripes_t set; /**< the locks held */
} nicstride_hold_t;

/** Prepares an update, and notes whether it needs locks: to fetch aligned words it does not, as
 * they are loaded whole. `aligned`: all its elements are aligned to their size. */
static inline void nicstride_hold_init(nicstride_hold_t *h, const nicstride_module_t *m, int local,
                                       const nicstride_apply_t *a, bool aligned)
{
    const bool loads = a->kind == NICSTRIDE_APPLY_NO_OP && a->size == a->extent && a->size <= 8;

    *h = (nicstride_hold_t){.m = m, .local = local, .locks = !loads || !aligned};
}

/** True if all elements of `size` bytes that a layout describes are aligned. */
static inline bool nicstride_hold_aligned(const onic_layout_t *l, const void *base, size_t size)
{
    return onic_is_aligned(l, (uintptr_t)base, size & -size);
}

/** Takes the locks that elements in bytes [from, to) of the target need, and gives back those held
 *  before. Waits for them: who has one applies some tens of KiB meanwhile, and waits for
 *  nothing else; so handlers call this, too, with the transport lock. 0, or ONIC_ERR_PROC_FAILED.
 */
int nicstride_hold_take(nicstride_hold_t *h, int64_t from, int64_t to);

/** The same for `len` > 0 packed bytes of a layout from `pos` on. The layout's offsets count from
 *  `disp` bytes into the target's memory. */
static inline int nicstride_hold_take_layout(nicstride_hold_t *h, const onic_layout_t *l,
                                             uint64_t pos, uint64_t len, int64_t disp)
{
    int64_t from = 0, to = 1;

    if (h->locks)
        nicstride_reach_of(l, pos, len, &from, &to);
    return nicstride_hold_take(h, disp + from, disp + to);
}

void nicstride_hold_give(nicstride_hold_t *h);

/* ---- updates that need no walk --------------------------------------------------------------- */

/** Updates `n` contiguous elements at `at`, which is `disp` bytes into the target's memory. Waits
 *  and returns as nicstride_hold_take. `src` and `old` are as in nicstride_apply. */
int nicstride_update(const nicstride_module_t *m, int local, const nicstride_apply_t *a, void *at,
                     int64_t disp, const void *src, void *old, size_t n);

/** Compare and swap of one such element. */
int nicstride_swap(const nicstride_module_t *m, int local, void *at, int64_t disp, size_t size,
                   const void *compare, const void *desired, void *old);
