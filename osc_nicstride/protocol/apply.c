/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "osc_nicstride/protocol/apply.h"

#include <string.h>

#include "common/layout/pack.h"

/* Small enough for the first-level cache together with what it is gathered from. */
#define SCRATCH 4096
/* What an element of so many bytes must be aligned to, for loops over elements. */
#define ALIGNED(size) ((size) % 16 == 0 ? 16 : (size) & -(size))

/** Reduces packed elements whose packed form is not their memory form (pair types with gaps). */
static void reduce_padded(const nicstride_apply_t *a, const char *src, char *dst, size_t n)
{
    _Alignas(64) char s[SCRATCH], d[SCRATCH];
    onic_layout_t l = *a->elem;
    onic_cursor_t c;

    memset(s, 0, n * a->extent);
    memset(d, 0, n * a->extent);
    if (onic_layout_repeat(&l, n, (int64_t)a->extent) != ONIC_LAYOUT_OK)
        return;
    onic_cursor_init(&c, &l, 0);
    onic_unpack(&c, s, src, n * a->size);
    onic_cursor_init(&c, &l, 0);
    onic_unpack(&c, d, dst, n * a->size);
    a->reduce(a->ctx, s, d, n);
    onic_cursor_init(&c, &l, 0);
    onic_pack(&c, d, dst, n * a->size);
}

/** Elements that lie together, as they are packed, are reduced where they are. */
static bool apply_in_place(const nicstride_apply_t *a, onic_cursor_t *c, void *base,
                           const char *src, uint64_t len)
{
    char *at = (char *)base + c->layout->offset + (int64_t)c->pos;

    if (a->size != a->extent || !onic_layout_is_contig(c->layout) ||
        (uintptr_t)at % ALIGNED(a->size) != 0)
        return false;
    a->reduce(a->ctx, src, at, len / a->size);
    onic_cursor_init(c, c->layout, c->pos + len);
    return true;
}

/** One chunk that fits the scratch memory: gather, reduce, scatter. */
static void apply_gathered(const nicstride_apply_t *a, onic_cursor_t *c, void *base,
                           const char *src, uint64_t len)
{
    _Alignas(64) char tmp[SCRATCH];
    onic_cursor_t from = *c;

    onic_pack(&from, base, tmp, len);
    if (a->size == a->extent)
        a->reduce(a->ctx, src, tmp, len / a->size);
    else
        reduce_padded(a, src, tmp, len / a->size);
    onic_unpack(c, base, tmp, len);
}

uint64_t nicstride_apply(const nicstride_apply_t *a, onic_cursor_t *target, void *base,
                         const void *src, void *old, uint64_t len)
{
    const size_t widest = a->extent > a->size ? a->extent : a->size;
    const uint64_t chunk = SCRATCH / widest * a->size;
    const char *s = src;
    char *o = old;
    uint64_t done = 0;

    if (len > target->layout->size - target->pos)
        len = target->layout->size - target->pos;
    len -= len % a->size;
    while (done < len) {
        uint64_t n = len - done < chunk ? len - done : chunk;
        onic_cursor_t read = *target;

        if (o != NULL)
            onic_pack(&read, base, o + done, n);
        if (a->kind == NICSTRIDE_APPLY_NO_OP)
            onic_cursor_init(target, target->layout, target->pos + n);
        if (a->kind == NICSTRIDE_APPLY_REPLACE)
            onic_unpack(target, base, s + done, n);
        else if (a->kind == NICSTRIDE_APPLY_REDUCE && !apply_in_place(a, target, base, s + done, n))
            apply_gathered(a, target, base, s + done, n);
        done += n;
    }
    return done;
}

void nicstride_apply_element(const nicstride_apply_t *a, void *target, const void *src, void *old)
{
    if (old != NULL)
        memcpy(old, target, a->size);
    /* Stored once: the target may see it, and store something else, before a second time. */
    if (a->kind == NICSTRIDE_APPLY_REPLACE)
        onic_copy_bytes(target, src, a->size);
    else if (a->kind == NICSTRIDE_APPLY_REDUCE)
        a->reduce(a->ctx, src, target, 1);
}

void nicstride_apply_cas(void *target, size_t size, const void *compare, const void *desired,
                         void *old)
{
    /* Before `old` is written: it may be the same memory as `compare`. */
    const bool equal = memcmp(target, compare, size) == 0;

    memcpy(old, target, size);
    if (equal)
        onic_copy_bytes(target, desired, size);
}
