/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "osc_nicstride/protocol/apply.h"

#include <string.h>

#include "common/layout/layout_walk.h"
#include "common/layout/pack.h"

/* Bytes that fit into the first-level cache together with the data that is gathered. */
#define SCRATCH 4096
/* Pieces of the target with at least this many bytes are reduced in place. With blocks of 4 KiB
 * that takes a third of the time of gathering them. */
#define PIECE 256
/* The alignment that loops over elements of `size` bytes need. */
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

/** Reduces packed elements in place, within one piece of the target. Returns the bytes done: 0 if
 *  the elements are not aligned, are cut, or are too few to be worth a call. */
static uint64_t apply_in_place(const nicstride_apply_t *a, onic_cursor_t *c, void *base,
                               const char *src, uint64_t len)
{
    onic_run_t run;

    if (a->size != a->extent || onic_cursor_peek(c, len, &run) == 0)
        return 0;
    char *at = (char *)base + run.offset;
    if ((run.block < PIECE && run.block < len) || run.block % a->size != 0 ||
        (uintptr_t)at % ALIGNED(a->size) != 0)
        return 0;
    run.count = 1;
    a->reduce(a->ctx, src, at, run.block / a->size);
    onic_cursor_advance(c, &run);
    return run.block;
}

/** Applies one chunk that fits the scratch memory: gathers, reduces and scatters it. */
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

/** Reduces in place up to `most` bytes, or gathers a chunk. Returns the bytes done. */
static uint64_t reduce(const nicstride_apply_t *a, onic_cursor_t *c, void *base, const char *src,
                       uint64_t chunk, uint64_t most)
{
    const uint64_t n = apply_in_place(a, c, base, src, most);

    if (n > 0)
        return n;
    apply_gathered(a, c, base, src, chunk);
    return chunk;
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
        if (a->kind == NICSTRIDE_APPLY_REDUCE)
            n = reduce(a, target, base, s + done, n, o != NULL ? n : len - done);
        done += n;
    }
    return done;
}

uint64_t nicstride_apply_from(const nicstride_apply_t *a, onic_cursor_t *target, void *base,
                              onic_cursor_t *src, const void *src_base, void *old, uint64_t len)
{
    _Alignas(64) char tmp[SCRATCH];
    const uint64_t most = SCRATCH - SCRATCH % a->size;
    uint64_t done = 0, n;

    if (len > target->layout->size - target->pos)
        len = target->layout->size - target->pos;
    len -= len % a->size;
    for (; done < len; done += n) {
        const void *from = tmp;
        onic_run_t run;

        if (onic_cursor_peek(src, len - done, &run) > 0 && run.block >= PIECE &&
            run.block % a->size == 0) {
            n = run.block;
            run.count = 1;
            from = (const char *)src_base + run.offset;
            onic_cursor_advance(src, &run);
        } else {
            n = len - done < most ? len - done : most;
            onic_pack(src, src_base, tmp, n);
        }
        nicstride_apply(a, target, base, from, old != NULL ? (char *)old + done : NULL, n);
    }
    return done;
}

void nicstride_apply_cas(void *target, size_t size, const void *compare, const void *desired,
                         void *old)
{
    /* Compared before `old` is written, which may be the same memory as `compare`. */
    const bool equal = memcmp(target, compare, size) == 0;

    memcpy(old, target, size);
    if (equal)
        onic_copy_bytes(target, desired, size);
}
