/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Applying an accumulate to target memory: old values out, new values in, element by
 *  element. The caller holds the accumulate lock of the target. All data of the origin comes
 *  packed. Pure: the reduction itself comes as a function. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/layout/layout.h"
#include "common/wire/atomic_op.h"

typedef enum nicstride_apply_kind {
    NICSTRIDE_APPLY_REDUCE, /**< target = target op source */
    NICSTRIDE_APPLY_REPLACE,
    NICSTRIDE_APPLY_NO_OP /**< only fetch */
} nicstride_apply_kind_t;

/** Reduces `n` elements in their memory form, `extent` bytes apart: dst = dst op src. */
typedef void (*nicstride_reduce_fn_t)(void *ctx, const void *src, void *dst, size_t n);

typedef struct nicstride_apply {
    nicstride_apply_kind_t kind;
    size_t size;               /**< packed bytes of an element, 1 .. 64 */
    size_t extent;             /**< bytes from one element to the next in memory, 1 .. 64 */
    const onic_layout_t *elem; /**< bytes of one element in memory; read only if size != extent */
    nicstride_reduce_fn_t reduce;
    void *ctx;
} nicstride_apply_t;

/** Applies `len` packed bytes (a multiple of a->size) from the cursor on, and moves it. `src` may
 *  be NULL for NO_OP. `old`, where not NULL, gets the packed values from before. Returns the bytes
 *  done, less than `len` only at the end of the layout. */
uint64_t nicstride_apply(const nicstride_apply_t *a, onic_cursor_t *target, void *base,
                         const void *src, void *old, uint64_t len);

/** The same for one element without gaps (a->size == a->extent), at `target`. */
void nicstride_apply_element(const nicstride_apply_t *a, void *target, const void *src, void *old);

/** Compare and swap of one element of `size` bytes (1 .. 64): `old` gets the value from before, and
 *  may be the memory of `compare`; `desired` is stored where it equals `compare`, byte for byte. */
void nicstride_apply_cas(void *target, size_t size, const void *compare, const void *desired,
                         void *old);

/* ---- by an adapter ------------------------------------------------------------------------------
 *
 * Accumulates as atomic operations of an adapter: what the adapter is to do for one element,
 * step by step. Sums of integers, replacing, fetching, and compare and swap are one operation.
 * All else is read first, reduced here and stored by a compare and swap, again and again until
 * no other process has come between.
 *
 * Elements are in their memory form, `size` bytes of a word; the rest of it is 0. */

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
