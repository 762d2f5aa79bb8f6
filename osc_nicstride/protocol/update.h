/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Accumulates as atomic operations of an adapter: what the adapter is to do for one element,
 *  step by step. Sums of integers, replacing, fetching, and compare and swap are one operation. All
 *  else is read first, reduced here and stored by a compare and swap, again and again until no
 * other process has come between.
 *
 *  Pure. Elements are in their memory form, `size` bytes of a word; the rest of it is 0. */
#ifndef NICSTRIDE_UPDATE_H
#define NICSTRIDE_UPDATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/wire/atomic_op.h"
#include "osc_nicstride/protocol/apply.h"

/** What becomes of an element. */
typedef enum nicstride_update_kind {
    NICSTRIDE_UPDATE_FETCH,   /**< it stays */
    NICSTRIDE_UPDATE_REPLACE, /**< the value of the origin */
    NICSTRIDE_UPDATE_COMPARE, /**< that, where it equals another one */
    NICSTRIDE_UPDATE_ADD,     /**< that is added */
    NICSTRIDE_UPDATE_LOOP     /**< it is reduced here */
} nicstride_update_kind_t;

typedef struct nicstride_update {
    nicstride_update_kind_t kind;
    size_t size;                    /**< of an element, 4 or 8 */
    const nicstride_apply_t *apply; /**< LOOP */
} nicstride_update_t;

/** One element on its way. */
typedef struct nicstride_atomic {
    onic_atomic_op_t op; /**< what the adapter is to do next, */
    uint64_t operand;    /**< by that, of a compare and swap what is compared */
    uint64_t value;      /**< of which the new value is this; the adapter puts the old one here */
    uint64_t origin;     /**< the value of the origin */
    bool read;           /**< LOOP: the element has been read */
} nicstride_atomic_t;

/** Can an adapter update an element of so many bytes, which are `extent` apart, at that address? */
static inline bool nicstride_update_fits(size_t size, size_t extent, uint64_t address)
{
    return (size == 4 || size == 8) && size == extent && address % size == 0;
}

/** The first step for an element. `origin`: its value; `compare`: what is compared, for COMPARE. */
void nicstride_atomic_begin(nicstride_atomic_t *a, const nicstride_update_t *u, uint64_t origin,
                            uint64_t compare);

/** The adapter has done a step. True: it was the last one, and `value` is what the element was
 *  before. False: the next step is to be done. */
bool nicstride_atomic_is_over(nicstride_atomic_t *a, const nicstride_update_t *u);

#endif
