/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "common/pack.h"

#include "common/layout_walk.h"
#include "common/pack_kernels.h"

enum {
    SHORT_BLOCK = 128,  /* bytes; in longer blocks the call for each of them is hidden */
    FEW_BLOCKS = 12,    /* fewer blocks in a pass make a loop of their own too dear */
    FEW_PASSES = 8,     /* fewer passes are not worth exchanging loops */
    FEW_RUNS = 64,      /* patterns of more runs are moved run by run */
    RUNS_AHEAD = 12,    /* runs between asking for memory and using it */
    TILE_BLOCKS = 256,  /* blocks, perhaps a cache line each, that stay in the L1 meanwhile */
    DIRECT_BYTES = 256, /* less than this in one kernel call is better staged */
    STAGE_BYTES = 4096
};

/** One side of a two-dimensional move: `inner` bytes between blocks, `outer` between passes. */
typedef struct side {
    uintptr_t at;
    int64_t inner;
    int64_t outer;
} side_t;

static uintptr_t address(const void *base, int64_t offset)
{
    return (uintptr_t)base + (uintptr_t)offset;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t most(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static int64_t least_signed(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t most_signed(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static uint64_t magnitude(int64_t stride)
{
    return stride < 0 ? -(uint64_t)stride : (uint64_t)stride;
}

static int64_t times(uint64_t n, int64_t stride)
{
    /* May wrap where the product is not used. */
    return (int64_t)(n * (uint64_t)stride);
}

/**
 * Moves `passes` times `n` blocks. Passes of few blocks are moved with the loops exchanged, in
 * tiles that stay in the cache, where the caller says that the order does not matter
 * (`exchange`): that is, where no byte of the destination is written by two passes.
 */
static void move_nest(side_t dst, side_t src, uint64_t block, uint64_t n, uint64_t passes,
                      bool exchange, bool by_src)
{
    uint64_t tile = 1;

    if (n == 1) {
        onic_blocks(dst.at, dst.outer, src.at, src.outer, block, passes, by_src);
        return;
    }
    exchange = exchange && n < FEW_BLOCKS && passes >= FEW_PASSES && block <= SHORT_BLOCK;
    for (; passes > 0; passes -= tile) {
        if (exchange) {
            tile = least(passes, TILE_BLOCKS / n);
            for (uint64_t i = 0; i < n; i++) {
                onic_blocks(dst.at + i * (uintptr_t)dst.inner, dst.outer,
                            src.at + i * (uintptr_t)src.inner, src.outer, block, tile, by_src);
            }
        } else {
            onic_blocks(dst.at, dst.inner, src.at, src.inner, block, n, by_src);
        }
        dst.at += tile * (uintptr_t)dst.outer;
        src.at += tile * (uintptr_t)src.outer;
    }
}

/* ---- patterns -------------------------------------------------------------------------------- */

/** One pass of a level, as runs, and the distance of the passes. */
typedef struct pattern {
    int64_t stride;
    uint64_t size;   /**< bytes of data */
    uint64_t extent; /**< bytes from the first to the last that it touches */
    uint64_t blocks; /**< blocks in all its runs */
    uint32_t level;
    uint32_t n; /**< runs */
    onic_run_t run[FEW_RUNS];
} pattern_t;

/**
 * Looks for a level that has enough passes before it and a short pattern below it, all of which
 * stands at its beginning. Returns the passes within `len` bytes, or 0; fills in all but the runs.
 */
static uint64_t find_pattern(const onic_cursor_t *c, uint64_t len, pattern_t *p)
{
    const onic_layout_t *l = c->layout;
    bool list = l->nruns > 0;
    uint32_t first = list ? 0 : 1;
    uint64_t n = list ? l->nruns : 1;
    uint64_t size;

    if (l->nlevels <= first || !onic_cursor_at_leaf(c) || (!list && c->index[0] > 0)) {
        return 0;
    }
    size = list ? onic_layout_leaf_size(l) : l->block * l->level[0].count;
    for (uint32_t i = first; i < l->nlevels && n <= FEW_RUNS; i++) {
        uint64_t passes = l->level[i].count - c->index[i];

        if (passes * size > len) {
            passes = len / size;
        }
        if (passes >= FEW_PASSES) {
            p->stride = l->level[i].stride;
            p->level = i;
            p->n = (uint32_t)n;
            p->size = size;
            return passes;
        }
        if (c->index[i] > 0) {
            return 0;
        }
        n *= l->level[i].count;
        size *= l->level[i].count;
    }
    return 0;
}

/** Fills in the runs, by walking one pass. */
static void read_pattern(const onic_cursor_t *c, pattern_t *p)
{
    onic_cursor_t walk = *c;
    int64_t lb = INT64_MAX;
    int64_t ub = INT64_MIN;

    p->blocks = 0;
    for (uint32_t i = 0; i < p->n; i++) {
        onic_run_t *run = &p->run[i];
        int64_t last;

        onic_cursor_peek(&walk, UINT64_MAX, run);
        onic_cursor_advance(&walk, run);
        last = run->offset + (int64_t)(run->count - 1) * run->stride;
        lb = least_signed(lb, least_signed(run->offset, last));
        ub = most_signed(ub, most_signed(run->offset, last) + (int64_t)run->block);
        p->blocks += run->count;
    }
    p->extent = (uint64_t)(ub - lb);
}

/** What `p` becomes when it is packed. */
static void flatten_pattern(const pattern_t *p, pattern_t *flat)
{
    int64_t at = 0;

    flat->stride = (int64_t)p->size;
    for (uint32_t i = 0; i < p->n; i++) {
        const onic_run_t *run = &p->run[i];

        flat->run[i] = (onic_run_t){at, run->block, run->count, (int64_t)run->block};
        at += (int64_t)(run->block * run->count);
    }
}

static bool same_shape(const pattern_t *a, const pattern_t *b)
{
    for (uint32_t i = 0; i < a->n; i++) {
        if (a->run[i].block != b->run[i].block || a->run[i].count != b->run[i].count) {
            return false;
        }
    }
    return true;
}

/** True where no byte is touched by two passes, so that the order of passes does not matter. */
static bool passes_are_apart(const pattern_t *p)
{
    return magnitude(p->stride) >= p->extent;
}

/** Passes of two patterns of the same shape: run after run, each for a tile of passes. */
static void move_patterns(uintptr_t dst, const pattern_t *d, uintptr_t src, const pattern_t *s,
                          uint64_t blocks, uint64_t passes, bool by_src)
{
    uint64_t tile = d->n == 1 ? passes : most(TILE_BLOCKS / blocks, FEW_PASSES);

    for (; passes > 0; passes -= tile) {
        tile = least(tile, passes);
        for (uint32_t i = 0; i < d->n; i++) {
            const onic_run_t *to = &d->run[i];
            const onic_run_t *from = &s->run[i];

            move_nest((side_t){dst + (uintptr_t)to->offset, to->stride, d->stride},
                      (side_t){src + (uintptr_t)from->offset, from->stride, s->stride}, to->block,
                      to->count, tile, true, by_src);
        }
        dst += tile * (uintptr_t)d->stride;
        src += tile * (uintptr_t)s->stride;
    }
}

static void skip_passes(onic_cursor_t *c, const pattern_t *p, uint64_t passes)
{
    c->pos += passes * p->size;
    onic_cursor_pass(c, p->level, passes);
}

/* ---- between a layout and contiguous memory --------------------------------------------------
 *
 * Packing and unpacking are the same walk. `gather` is a constant in each of its two copies.
 */

/** Many passes of a short pattern. */
static uint64_t flat_passes(bool gather, onic_cursor_t *c, const void *base, uintptr_t flat,
                            uint64_t len)
{
    pattern_t p;
    pattern_t f;
    uint64_t passes = find_pattern(c, len, &p);

    if (passes == 0) {
        return 0;
    }
    read_pattern(c, &p);
    if (!gather && !passes_are_apart(&p)) {
        return 0;
    }
    f.n = p.n;
    flatten_pattern(&p, &f);
    if (gather) {
        move_patterns(flat, &f, (uintptr_t)base, &p, p.blocks, passes, true);
    } else {
        move_patterns((uintptr_t)base, &p, flat, &f, p.blocks, passes, false);
    }
    skip_passes(c, &p, passes);
    return passes * p.size;
}

ONIC_INLINE void flat_blocks(bool gather, uintptr_t mem, uintptr_t flat, const onic_run_t *run)
{
    if (gather) {
        onic_blocks(flat, (int64_t)run->block, mem, run->stride, run->block, run->count, true);
    } else {
        onic_blocks(mem, run->stride, flat, (int64_t)run->block, run->block, run->count, false);
    }
}

/** Whole runs of a list, from the beginning of one on. The memory of a list may be anywhere, so
 *  what will be needed soon is asked for ahead. */
ONIC_INLINE uint64_t flat_list(bool gather, onic_cursor_t *c, const void *base, uintptr_t flat,
                               uint64_t len)
{
    const onic_layout_t *l = c->layout;
    uintptr_t mem = address(base, c->leaf);
    uint64_t first = l->run_start[c->run];
    uint64_t i = c->run;

    for (; i < l->nruns && l->run_start[i + 1] - first <= len; i++) {
        const onic_run_t *ahead = &l->runs[i + RUNS_AHEAD < l->nruns ? i + RUNS_AHEAD : i];

        if (gather) {
            __builtin_prefetch((const void *)(mem + (uintptr_t)ahead->offset), 0);
        } else {
            __builtin_prefetch((const void *)(mem + (uintptr_t)ahead->offset), 1);
        }
        flat_blocks(gather, mem + (uintptr_t)l->runs[i].offset, flat + l->run_start[i] - first,
                    &l->runs[i]);
    }
    c->run = i;
    c->pos += l->run_start[i] - first;
    if (i == l->nruns) {
        c->run = 0;
        onic_cursor_pass(c, 0, 1);
    }
    return l->run_start[i] - first;
}

/** The next run, or a part of it. */
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
    bool list = l->nruns > 0;
    uint64_t done = 0;

    len = least(len, l->size - c->pos);
    while (done < len) {
        uint64_t n = flat_passes(gather, c, base, flat + done, len - done);

        if (n == 0 && list && c->in_run == 0 && c->in_block == 0) {
            n = flat_list(gather, c, base, flat + done, len - done);
        }
        if (n == 0) {
            n = flat_run(gather, c, base, flat + done, len - done);
        }
        done += n;
    }
    return done;
}

uint64_t onic_pack(onic_cursor_t *c, const void *base, void *dst, uint64_t len)
{
    return flat_move(true, c, base, (uintptr_t)dst, len);
}

uint64_t onic_unpack(onic_cursor_t *c, void *base, const void *src, uint64_t len)
{
    return flat_move(false, c, base, (uintptr_t)src, len);
}

/* ---- between two layouts -------------------------------------------------------------------- */

/**
 * Cuts two runs back to what one nest can move between them: the same number of bytes, in which
 * each block of `big` is whole blocks of `small`.
 */
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

/** A run as one side of a nest whose passes hold `n` blocks of `block` bytes. */
static side_t run_side(const onic_run_t *run, const void *base, uint64_t block, uint64_t n)
{
    uintptr_t at = address(base, run->offset);

    if (run->block == block) {
        return (side_t){at, run->stride, times(n, run->stride)};
    }
    return (side_t){at, (int64_t)block, run->stride};
}

/** Moves what the innermost runs at both cursors have in common. Returns 0 and does nothing where
 *  that is little and more is to follow. */
static uint64_t copy_runs(onic_cursor_t *dst, void *dst_base, onic_cursor_t *src,
                          const void *src_base, uint64_t len)
{
    onic_run_t d;
    onic_run_t s;
    uint64_t block;
    uint64_t bytes;
    uint64_t passes;
    uint64_t n;

    if (onic_cursor_peek(dst, len, &d) == 0 || onic_cursor_peek(src, len, &s) == 0) {
        return 0;
    }
    if (d.block > s.block) {
        match_runs(&d, &s);
    } else {
        match_runs(&s, &d);
    }
    bytes = d.block * d.count;
    if (bytes < DIRECT_BYTES && bytes < len) {
        return 0;
    }
    block = least(d.block, s.block);
    passes = least(d.count, s.count);
    n = bytes / block / passes;
    move_nest(run_side(&d, dst_base, block, n), run_side(&s, src_base, block, n), block, n, passes,
              magnitude(d.stride) >= d.block, false);
    onic_cursor_advance(dst, &d);
    onic_cursor_advance(src, &s);
    return bytes;
}

/** Many passes of a short pattern that has the same shape on both sides, as where both are arrays
 *  of one type of structure. */
static uint64_t copy_passes(onic_cursor_t *dst, void *dst_base, onic_cursor_t *src,
                            const void *src_base, uint64_t len)
{
    pattern_t d;
    pattern_t s;
    uint64_t passes = find_pattern(dst, len, &d);

    if (passes == 0) {
        return 0;
    }
    passes = least(passes, find_pattern(src, len, &s));
    if (passes == 0 || d.n != s.n || d.size != s.size) {
        return 0;
    }
    read_pattern(dst, &d);
    read_pattern(src, &s);
    if (!same_shape(&d, &s) || !passes_are_apart(&d)) {
        return 0;
    }
    move_patterns((uintptr_t)dst_base, &d, (uintptr_t)src_base, &s, d.blocks, passes, false);
    skip_passes(dst, &d, passes);
    skip_passes(src, &s, passes);
    return passes * d.size;
}

/** Bytes to the end of a short pattern that the cursor is inside, where passes can be taken up
 *  again; else `len`. */
static uint64_t to_pattern(const onic_cursor_t *c, uint64_t len)
{
    const onic_layout_t *l = c->layout;
    uint64_t size = onic_layout_leaf_size(l);

    if (l->nruns == 0 && l->nlevels > 0) {
        size *= l->level[0].count;
    }
    return c->pos % size > 0 ? least(len, size - c->pos % size) : len;
}

/** Moves a little through a buffer that stays in the cache: right for any two shapes. */
static uint64_t copy_staged(onic_cursor_t *dst, void *dst_base, onic_cursor_t *src,
                            const void *src_base, uint64_t len)
{
    _Alignas(64) unsigned char stage[STAGE_BYTES];
    uint64_t n = to_pattern(dst, least(len, sizeof(stage)));

    onic_pack(src, src_base, stage, n);
    return onic_unpack(dst, dst_base, stage, n);
}

uint64_t onic_copy(onic_cursor_t *dst, void *dst_base, onic_cursor_t *src, const void *src_base,
                   uint64_t len)
{
    uint64_t done = 0;

    len = least(len, dst->layout->size - dst->pos);
    len = least(len, src->layout->size - src->pos);
    while (done < len) {
        uint64_t n = copy_passes(dst, dst_base, src, src_base, len - done);

        if (n == 0) {
            n = copy_runs(dst, dst_base, src, src_base, len - done);
        }
        done += n > 0 ? n : copy_staged(dst, dst_base, src, src_base, len - done);
    }
    return done;
}
