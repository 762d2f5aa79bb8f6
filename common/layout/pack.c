/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "common/layout/pack.h"

#include "common/layout/pack_kernels.h"

enum {
    RUNS_AHEAD = 12,    /* runs between prefetching memory and using it */
    DIRECT_BYTES = 256, /* fewer bytes in one kernel call are better staged */
    STAGE_BYTES = 4096
};

static uintptr_t address(const void *base, int64_t offset)
{
    return (uintptr_t)base + (uintptr_t)offset;
}

/* ---- between a layout and contiguous memory --------------------------------------------------
 *
 * Packing and unpacking are the same walk. `gather` is a constant in each of its two copies.
 */

/** Packs or unpacks many passes of a short pattern. */
static uint64_t flat_passes(bool gather, onic_cursor_t *c, const void *base, uintptr_t flat,
                            uint64_t len)
{
    pattern_t p;
    pattern_t f;
    uint64_t passes = find_pattern(c, len, &p);

    if (passes == 0)
        return 0;
    read_pattern(c, &p);
    if (!gather && !passes_are_apart(&p))
        return 0;
    f.n = p.n;
    flatten_pattern(&p, &f);
    if (gather)
        move_patterns(flat, &f, (uintptr_t)base, &p, p.blocks, passes, true);
    else
        move_patterns((uintptr_t)base, &p, flat, &f, p.blocks, passes, false);
    skip_passes(c, &p, passes);
    return passes * p.size;
}

ONIC_INLINE void flat_blocks(bool gather, uintptr_t mem, uintptr_t flat, const onic_run_t *run)
{
    if (gather)
        onic_blocks(flat, (int64_t)run->block, mem, run->stride, run->block, run->count, true);
    else
        onic_blocks(mem, run->stride, flat, (int64_t)run->block, run->block, run->count, false);
}

/** Prefetches what a run will need soon, since the memory of a list may be anywhere. */
ONIC_INLINE void run_ahead(const onic_layout_t *l, uint64_t i, uintptr_t mem, bool write)
{
    const void *at;

    i = i + RUNS_AHEAD < l->nruns ? i + RUNS_AHEAD : i;
    at = (const void *)(mem + (uintptr_t)l->runs[i].offset);
    if (write)
        __builtin_prefetch(at, 1);
    else
        __builtin_prefetch(at, 0);
}

/** Moves the cursor from the beginning of a run to the beginning of run `i` (nruns: next pass). */
static void skip_runs(onic_cursor_t *c, uint64_t i)
{
    const onic_layout_t *l = c->layout;

    c->pos += l->run_start[i] - l->run_start[c->run];
    c->run = i;
    if (i == l->nruns) {
        c->run = 0;
        onic_cursor_pass(c, 0, 1);
    }
}

static bool at_run(const onic_cursor_t *c)
{
    return c->layout->nruns > 0 && c->in_run == 0 && c->in_block == 0;
}

/** Packs or unpacks whole runs of a list, starting at the beginning of a run. */
ONIC_INLINE uint64_t flat_list(bool gather, onic_cursor_t *c, const void *base, uintptr_t flat,
                               uint64_t len)
{
    const onic_layout_t *l = c->layout;
    uintptr_t mem = address(base, c->leaf);
    uint64_t i = c->run;
    uint64_t first;

    if (!at_run(c))
        return 0;
    first = l->run_start[i];
    for (; i < l->nruns && l->run_start[i + 1] - first <= len; i++) {
        run_ahead(l, i, mem, !gather);
        flat_blocks(gather, mem + (uintptr_t)l->runs[i].offset, flat + l->run_start[i] - first,
                    &l->runs[i]);
    }
    skip_runs(c, i);
    return l->run_start[i] - first;
}

/** Packs or unpacks the next run, or a part of it. */
ONIC_INLINE uint64_t flat_run(bool gather, onic_cursor_t *c, const void *base, uintptr_t flat,
                              uint64_t len)
{
    onic_run_t run;
    uint64_t n = onic_cursor_peek(c, len, &run);

    if (n > 0) {
        flat_blocks(gather, address(base, run.offset), flat, &run);
        onic_cursor_advance(c, &run);
    }
    return n;
}

ONIC_INLINE uint64_t flat_move(bool gather, onic_cursor_t *c, const void *base, uintptr_t flat,
                               uint64_t len)
{
    const onic_layout_t *l = c->layout;
    uint64_t done = 0;

    len = least(len, l->size - c->pos);
    while (done < len) {
        uint64_t n = flat_passes(gather, c, base, flat + done, len - done);

        if (n == 0)
            n = flat_list(gather, c, base, flat + done, len - done);
        if (n == 0)
            n = flat_run(gather, c, base, flat + done, len - done);
        done += n;
    }
    return done;
}

uint64_t onic_pack(onic_cursor_t *c, const void *base, void *dst, uint64_t len)
{
    return flat_move(true, c, base, (uintptr_t)dst, len);
}

/** Short blocks are first collected in the cache. So are blocks whose aligned elements are not
 *  aligned at the destination, since streaming moves begin at multiples of 8 there. */
uint64_t onic_pack_streaming(onic_cursor_t *c, const void *base, void *dst, uint64_t len)
{
    _Alignas(64) unsigned char stage[STAGE_BYTES];
    uint64_t done = 0;
    onic_run_t run;

    while (onic_cursor_peek(c, len - done, &run) > 0) {
        const uintptr_t from = address(base, run.offset), to = (uintptr_t)dst + done;

        if (run.block >= sizeof(stage) && (from - to) % 8 == 0) {
            run.count = 1;
            onic_copy_streaming((void *)to, (const void *)from, run.block);
            onic_cursor_advance(c, &run);
            done += run.block;
        } else {
            const uint64_t n = onic_pack(c, base, stage, least(len - done, sizeof(stage)));

            onic_copy_streaming((void *)to, stage, n);
            done += n;
        }
    }
    return done;
}

uint64_t onic_unpack(onic_cursor_t *c, void *base, const void *src, uint64_t len)
{
    return flat_move(false, c, base, (uintptr_t)src, len);
}

/* ---- between two layouts -------------------------------------------------------------------- */

/** Shortens two runs to what one nest can move between them: the same number of bytes, where each
 *  block of `big` consists of whole blocks of `small`. */
static void match_runs(onic_run_t *big, onic_run_t *small)
{
    uint64_t ratio = big->block == small->block ? 1 : big->block / small->block;

    if (ratio * small->block == big->block && small->count >= ratio) {
        big->count =
            ratio == 1 ? least(big->count, small->count) : least(big->count, small->count / ratio);
        small->count = big->count * ratio;
        return;
    }
    small->count = least(small->count, ratio);
    big->block = small->block * small->count;
    big->count = 1;
    big->stride = 0;
}

static int64_t times(uint64_t n, int64_t stride)
{
    /* May wrap around if the product is not used. */
    return (int64_t)(n * (uint64_t)stride);
}

/** A run as one side of a nest whose passes hold `n` blocks of `block` bytes. */
static side_t run_side(const onic_run_t *run, const void *base, uint64_t block, uint64_t n)
{
    uintptr_t at = address(base, run->offset);

    if (run->block == block)
        return (side_t){at, run->stride, times(n, run->stride)};
    return (side_t){at, (int64_t)block, run->stride};
}

/** Moves the bytes that the innermost runs have in common; 0 if they are few and more will follow.
 */
static uint64_t copy_runs(onic_cursor_t *dst, void *dst_base, onic_cursor_t *src,
                          const void *src_base, uint64_t len, bool by_src)
{
    onic_run_t d;
    onic_run_t s;
    uint64_t block;
    uint64_t bytes;
    uint64_t passes;
    uint64_t n;

    if (onic_cursor_peek(dst, len, &d) == 0 || onic_cursor_peek(src, len, &s) == 0)
        return 0;
    if (d.block > s.block)
        match_runs(&d, &s);
    else
        match_runs(&s, &d);
    bytes = d.block * d.count;
    if (bytes < DIRECT_BYTES && bytes < len)
        return 0;
    block = least(d.block, s.block);
    passes = least(d.count, s.count);
    n = bytes / block / passes;
    move_nest(run_side(&d, dst_base, block, n), run_side(&s, src_base, block, n), block, n, passes,
              onic_magnitude(d.stride) >= d.block, by_src);
    onic_cursor_advance(dst, &d);
    onic_cursor_advance(src, &s);
    return bytes;
}

/** Moves many passes of a short pattern with the same shape on both sides, as for arrays of one
 *  structure. */
static uint64_t copy_passes(onic_cursor_t *dst, void *dst_base, onic_cursor_t *src,
                            const void *src_base, uint64_t len, bool by_src)
{
    pattern_t d;
    pattern_t s;
    uint64_t passes = find_pattern(dst, len, &d);

    if (passes == 0)
        return 0;
    passes = least(passes, find_pattern(src, len, &s));
    if (passes == 0 || d.n != s.n || d.size != s.size)
        return 0;
    read_pattern(dst, &d);
    read_pattern(src, &s);
    if (!same_shape(&d, &s) || !passes_are_apart(&d))
        return 0;
    move_patterns((uintptr_t)dst_base, &d, (uintptr_t)src_base, &s, d.blocks, passes, by_src);
    skip_passes(dst, &d, passes);
    skip_passes(src, &s, passes);
    return passes * d.size;
}

/** Moves whole runs of two lists, as long as these have the same shape. */
static uint64_t copy_lists(onic_cursor_t *dst, void *dst_base, onic_cursor_t *src,
                           const void *src_base, uint64_t len, bool by_src)
{
    const onic_layout_t *d = dst->layout;
    const onic_layout_t *s = src->layout;
    uintptr_t to_mem = address(dst_base, dst->leaf);
    uintptr_t from_mem = address(src_base, src->leaf);
    uint64_t i = dst->run;
    uint64_t j = src->run;
    uint64_t done = 0;

    if (!at_run(dst) || !at_run(src))
        return 0;
    for (; i < d->nruns && j < s->nruns; i++, j++) {
        const onic_run_t *to = &d->runs[i];
        const onic_run_t *from = &s->runs[j];
        uint64_t bytes = to->block * to->count;

        if (to->block != from->block || to->count != from->count || bytes > len - done)
            break;
        run_ahead(d, i, to_mem, true);
        run_ahead(s, j, from_mem, false);
        onic_blocks(to_mem + (uintptr_t)to->offset, to->stride, from_mem + (uintptr_t)from->offset,
                    from->stride, to->block, to->count, by_src);
        done += bytes;
    }
    skip_runs(dst, i);
    skip_runs(src, j);
    return done;
}

/** Bytes to the end of a short pattern, after which passes can be moved again; else `len`. */
static uint64_t to_pattern(const onic_cursor_t *c, uint64_t len)
{
    const onic_layout_t *l = c->layout;
    uint64_t size = onic_layout_leaf_size(l);

    if (l->nruns == 0 && l->nlevels > 0)
        size *= l->level[0].count;
    return c->pos % size > 0 ? least(len, size - c->pos % size) : len;
}

/** Moves a few bytes through a buffer that stays in the cache: works for any two shapes. */
static uint64_t copy_staged(onic_cursor_t *dst, void *dst_base, onic_cursor_t *src,
                            const void *src_base, uint64_t len)
{
    _Alignas(64) unsigned char stage[STAGE_BYTES];
    uint64_t n = to_pattern(dst, least(len, sizeof(stage)));

    onic_pack(src, src_base, stage, n);
    return onic_unpack(dst, dst_base, stage, n);
}

uint64_t onic_copy(onic_cursor_t *dst, void *dst_base, onic_cursor_t *src, const void *src_base,
                   uint64_t len, bool by_src)
{
    uint64_t done = 0;

    len = least(len, dst->layout->size - dst->pos);
    len = least(len, src->layout->size - src->pos);
    while (done < len) {
        uint64_t n = copy_passes(dst, dst_base, src, src_base, len - done, by_src);

        if (n == 0)
            n = copy_lists(dst, dst_base, src, src_base, len - done, by_src);
        if (n == 0)
            n = copy_runs(dst, dst_base, src, src_base, len - done, by_src);
        done += n > 0 ? n : copy_staged(dst, dst_base, src, src_base, len - done);
    }
    return done;
}
