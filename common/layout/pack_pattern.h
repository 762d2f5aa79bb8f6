/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Two-dimensional moves, and short patterns of runs that a layout repeats often, as arrays
 *  of small structures do. One call moves a block of many passes. Internal to pack.c. */
#pragma once

#include "common/layout/layout_walk.h"
#include "common/layout/pack_kernels.h"

enum {
    SHORT_BLOCK = 128, /* bytes; in longer blocks the call for each of them is hidden */
    FEW_BLOCKS = 12,   /* fewer blocks in a pass make a loop of their own too dear */
    FEW_PASSES = 8,    /* fewer passes are not worth exchanging loops */
    FEW_RUNS = 64,     /* patterns of more runs are moved run by run */
    TILE_BLOCKS = 256  /* blocks, perhaps a cache line each, that stay in the L1 meanwhile */
};

/** One side of a two-dimensional move: `inner` bytes between blocks, `outer` between passes. */
typedef struct side {
    uintptr_t at;
    int64_t inner;
    int64_t outer;
} side_t;

static inline uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/** Moves `passes` times `n` blocks. Passes of few blocks are moved with the loops exchanged, in
 *  tiles that stay in the cache, where the caller says that the order does not matter (`exchange`):
 *  that is, where no byte of the destination is written by two passes. */
static inline void move_nest(side_t dst, side_t src, uint64_t block, uint64_t n, uint64_t passes,
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

/** Looks for a level that has enough passes before it and a short pattern below it, all of which
 *  stands at its beginning. The passes within `len` bytes, or 0; fills in all but the runs. */
static inline uint64_t find_pattern(const onic_cursor_t *c, uint64_t len, pattern_t *p)
{
    const onic_layout_t *l = c->layout;
    bool list = l->nruns > 0;
    uint32_t first = list ? 0 : 1;
    uint64_t n = list ? l->nruns : 1;
    uint64_t size;

    if (l->nlevels <= first || !onic_cursor_at_leaf(c) || (!list && c->index[0] > 0))
        return 0;
    size = list ? onic_layout_leaf_size(l) : l->block * l->level[0].count;
    for (uint32_t i = first; i < l->nlevels && n <= FEW_RUNS; i++) {
        uint64_t passes = l->level[i].count - c->index[i];

        if (passes * size > len)
            passes = len / size;
        if (passes >= FEW_PASSES) {
            p->stride = l->level[i].stride;
            p->level = i;
            p->n = (uint32_t)n;
            p->size = size;
            return passes;
        }
        if (c->index[i] > 0)
            return 0;
        n *= l->level[i].count;
        size *= l->level[i].count;
    }
    return 0;
}

/** Fills in the runs, by walking one pass. */
static inline void read_pattern(const onic_cursor_t *c, pattern_t *p)
{
    onic_cursor_t walk = *c;
    int64_t lb = INT64_MAX;
    int64_t ub = INT64_MIN;

    p->blocks = 0;
    for (uint32_t i = 0; i < p->n; i++) {
        onic_run_t *run = &p->run[i];

        onic_cursor_peek(&walk, UINT64_MAX, run);
        onic_cursor_advance(&walk, run);
        const int64_t span = (int64_t)(run->count - 1) * run->stride;
        const int64_t low = run->offset + (span < 0 ? span : 0);
        const int64_t high = run->offset + (span > 0 ? span : 0) + (int64_t)run->block;
        lb = low < lb ? low : lb;
        ub = high > ub ? high : ub;
        p->blocks += run->count;
    }
    p->extent = (uint64_t)(ub - lb);
}

/** What `p` becomes when it is packed. */
static inline void flatten_pattern(const pattern_t *p, pattern_t *flat)
{
    int64_t at = 0;

    flat->stride = (int64_t)p->size;
    for (uint32_t i = 0; i < p->n; i++) {
        const onic_run_t *run = &p->run[i];

        flat->run[i] = (onic_run_t){at, run->block, run->count, (int64_t)run->block};
        at += (int64_t)(run->block * run->count);
    }
}

static inline bool same_shape(const pattern_t *a, const pattern_t *b)
{
    for (uint32_t i = 0; i < a->n; i++)
        if (a->run[i].block != b->run[i].block || a->run[i].count != b->run[i].count)
            return false;
    return true;
}

/** True where no byte is touched by two passes, so that the order of passes does not matter. */
static inline bool passes_are_apart(const pattern_t *p)
{
    return onic_magnitude(p->stride) >= p->extent;
}

/** Passes of two patterns of the same shape: run after run, each for a tile of passes. */
static inline void move_patterns(uintptr_t dst, const pattern_t *d, uintptr_t src,
                                 const pattern_t *s, uint64_t blocks, uint64_t passes, bool by_src)
{
    uint64_t tile = d->n == 1                           ? passes
                    : blocks < TILE_BLOCKS / FEW_PASSES ? TILE_BLOCKS / blocks
                                                        : FEW_PASSES;

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

static inline void skip_passes(onic_cursor_t *c, const pattern_t *p, uint64_t passes)
{
    c->pos += passes * p->size;
    onic_cursor_pass(c, p->level, passes);
}
