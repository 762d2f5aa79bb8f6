/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file When two accesses to the same bytes conflict (MPI-4.1, 12.7), if nothing completes the
 *  first before the second begins. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/** What an access does with bytes. */
typedef enum nicstride_how {
    NICSTRIDE_READS,   /**< a get, or the buffer that a put sends from */
    NICSTRIDE_WRITES,  /**< a put, or the buffer that a get receives into */
    NICSTRIDE_UPDATES, /**< an accumulate, including one that fetches */
    NICSTRIDE_PEEKS,   /**< an accumulate with MPI_NO_OP */
    NICSTRIDE_SWAPS    /**< compare and swap */
} nicstride_how_t;

/** An access. `op` matters for updates, `type` for all kinds of accumulates. Both may be any
 *  numbers that tell operations and types apart. */
typedef struct nicstride_use {
    uint8_t how;  /**< of nicstride_how_t */
    uint8_t op;   /**< below 16 */
    uint8_t type; /**< below 128 */
} nicstride_use_t;

/** What the program promises about a window, by info keys or by the standard's defaults. */
typedef struct nicstride_promises {
    bool same_op; /**< accumulate_ops is same_op, which allows MPI_NO_OP no exception */
    bool ordered; /**< accumulate_ordering orders updates of one origin */
} nicstride_promises_t;

/** True if the access is over once it is locally complete, which holds for all that only read the
 *  target. */
static inline bool nicstride_only_reads(nicstride_use_t use)
{
    return use.how == NICSTRIDE_READS || use.how == NICSTRIDE_PEEKS;
}

static inline bool nicstride_accumulates(nicstride_use_t use)
{
    return use.how >= NICSTRIDE_UPDATES;
}

/** True if two accumulates may overlap. Those of one origin are ordered unless an info key of the
 *  window says otherwise, and then never run at the same time. Compare and swap has no operation
 *  and may overlap any: MPI's own examples of locks need that. */
static inline bool nicstride_may_meet(nicstride_use_t a, nicstride_use_t b, bool one_origin,
                                      const nicstride_promises_t *p)
{
    if (a.type != b.type)
        return false;
    if ((one_origin && p->ordered) || a.how == NICSTRIDE_SWAPS || b.how == NICSTRIDE_SWAPS)
        return true;
    if (a.how == NICSTRIDE_PEEKS || b.how == NICSTRIDE_PEEKS)
        return a.how == b.how || !p->same_op;
    return a.op == b.op;
}

/** True if two accesses conflict. */
static inline bool nicstride_conflict(nicstride_use_t a, nicstride_use_t b, bool one_origin,
                                      const nicstride_promises_t *p)
{
    if (nicstride_only_reads(a) && nicstride_only_reads(b))
        return false;
    return !nicstride_accumulates(a) || !nicstride_accumulates(b) ||
           !nicstride_may_meet(a, b, one_origin, p);
}
