/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Applying an accumulate to target memory: old values out, new values in, element by
 *  element. The caller makes sure that nobody else updates the same elements meanwhile, except by
 *  atomics where it says so (discipline.h). Pure: the caller passes the reduction as a function. */
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

/** What the processor can do with an element by itself. */
typedef enum nicstride_native {
    NICSTRIDE_NATIVE_NOT, /**< the function does it */
    NICSTRIDE_NATIVE_ADD, /**< integers */
    NICSTRIDE_NATIVE_AND,
    NICSTRIDE_NATIVE_OR,
    NICSTRIDE_NATIVE_XOR,
    NICSTRIDE_NATIVE_ADD_FLOATING /**< float and double */
} nicstride_native_t;

/** Reduces `n` elements in their memory form, `extent` bytes apart: dst = dst op src. */
typedef void (*nicstride_reduce_fn_t)(void *ctx, const void *src, void *dst, size_t n);

typedef struct nicstride_apply {
    nicstride_apply_kind_t kind;
    nicstride_native_t native;
    bool atomic;               /**< aligned elements by atomics; size == extent then */
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

/** The same, but that `src` is a cursor, of as many bytes from `src_base` on, and moves, too. Where
 *  both sides have long pieces of whole elements none of them is copied; else the source is
 * gathered first. */
uint64_t nicstride_apply_from(const nicstride_apply_t *a, onic_cursor_t *target, void *base,
                              onic_cursor_t *src, const void *src_base, void *old, uint64_t len);

/** The same for one element without gaps (a->size == a->extent), at `target`. */
void nicstride_apply_element(const nicstride_apply_t *a, void *target, const void *src, void *old);

/** Compare and swap of one element of `size` bytes (1 .. 64): `old` gets the value from before, and
 *  may be the memory of `compare`; `desired` is stored where it equals `compare`, byte for byte. */
void nicstride_apply_cas(void *target, size_t size, const void *compare, const void *desired,
                         void *old);
