/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Applying an accumulate to target memory, element by element: fetches old values, stores
 *  new ones. The caller ensures that nobody else updates the same elements meanwhile. Pure: the
 *  caller passes the reduction as a function. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/layout/layout.h"

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

/** Applies `len` packed bytes (a multiple of a->size) from the cursor on, and advances it. `src`
 *  may be NULL for NO_OP. `old`, if not NULL, gets the previous packed values. Returns the bytes
 *  done, which is less than `len` only at the end of the layout. */
uint64_t nicstride_apply(const nicstride_apply_t *a, onic_cursor_t *target, void *base,
                         const void *src, void *old, uint64_t len);

/** The same, but `src` is a cursor with as many bytes, whose layout is at `src_base`; it is
 *  advanced, too. Long pieces of whole elements are applied from where they are; what is between
 *  them is gathered first. */
uint64_t nicstride_apply_from(const nicstride_apply_t *a, onic_cursor_t *target, void *base,
                              onic_cursor_t *src, const void *src_base, void *old, uint64_t len);

/** Compare and swap of one element of `size` bytes (1 .. 64). `old` gets the previous value and may
 *  be the same memory as `compare`. If the previous value equals `compare`, byte for byte,
 *  `desired` is stored. */
void nicstride_apply_cas(void *target, size_t size, const void *compare, const void *desired,
                         void *old);
