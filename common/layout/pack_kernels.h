/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The inner loops of pack.c: equal blocks from one stride to another. Addresses are
 *  integers: a loop may step past the last block, and a base may be MPI_BOTTOM. A memcpy of a power
 *  of two up to 16 becomes one plain move.
 *
 *  Tearing. Single moves never split an aligned element. Longer blocks are moved in units of at
 * least 8 bytes from a multiple of 8 on, which small units reach first if necessary. `by_src` tells
 *  which side counts; if an element is aligned on both sides, they agree.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/layout/copy.h"
#include "common/layout/layout_walk.h"

#define ONIC_NOINLINE __attribute__((noinline)) /* keeps registers out of the short paths */

/** Bytes; longer blocks gain nothing from unrolling. */
#define ONIC_UNROLL_BELOW 32

/** Moves exactly `bytes`, a constant. The units are spelled out, because the compiler may implement
 *  a memcpy of 12 or 24 bytes with overlapping moves. */
ONIC_INLINE void onic_move_const(uintptr_t dst, uintptr_t src, size_t bytes)
{
    size_t words = bytes & ~(size_t)15;

    for (size_t at = 0; at < words; at += 16)
        ONIC_MOVE_UNIT(dst + at, src + at, 16);
    if (bytes & 8)
        ONIC_MOVE_UNIT(dst + words, src + words, 8);
    if (bytes & 4)
        ONIC_MOVE_UNIT(dst + words + (bytes & 8), src + words + (bytes & 8), 4);
    if (bytes & 2)
        ONIC_MOVE_UNIT(dst + words + (bytes & 12), src + words + (bytes & 12), 2);
    if (bytes & 1)
        ONIC_MOVE_UNIT(dst + bytes - 1, src + bytes - 1, 1);
}

/** `n` blocks of any length. */
static ONIC_NOINLINE void onic_blocks_any(uintptr_t dst, uintptr_t dst_stride, uintptr_t src,
                                          uintptr_t src_stride, uint64_t n, uint64_t block,
                                          bool by_src)
{
    for (; n > 0; n--) {
        onic_move(dst, src, block, by_src ? src : dst);
        dst += dst_stride;
        src += src_stride;
    }
}

/** `n` blocks of a constant length. */
ONIC_INLINE void onic_blocks_const(uintptr_t dst, uintptr_t dst_stride, uintptr_t src,
                                   uintptr_t src_stride, uint64_t n, size_t block)
{
    if (block < ONIC_UNROLL_BELOW && n >= 4) {
        uintptr_t dst_2 = 2 * dst_stride;
        uintptr_t src_2 = 2 * src_stride;
        uintptr_t dst_3 = 3 * dst_stride;
        uintptr_t src_3 = 3 * src_stride;

        /* Hidden from the compiler, which would turn the four addresses into a chain of additions.
         */
        __asm__("" : "+r"(dst_2), "+r"(src_2), "+r"(dst_3), "+r"(src_3));
        for (; n >= 4; n -= 4) {
            onic_move_const(dst, src, block);
            onic_move_const(dst + dst_stride, src + src_stride, block);
            onic_move_const(dst + dst_2, src + src_2, block);
            onic_move_const(dst + dst_3, src + src_3, block);
            dst += 2 * dst_2;
            src += 2 * src_2;
        }
    }
    for (; n > 0; n--) {
        onic_move_const(dst, src, block);
        dst += dst_stride;
        src += src_stride;
    }
}

/** Addresses this many bytes apart fall into the same set of the L1 cache. */
#define ONIC_SET_STRIDE 4096
/** Lines that a set holds at least. */
#define ONIC_SET_WAYS 8
/** Strides from which destinations fall into few sets, and the longest blocks for which that
 *  matters. */
#define ONIC_FEW_SETS_STRIDE 1024
#define ONIC_FEW_SETS_BLOCK  32

/** True if short blocks go to places that fall into few sets of the L1 cache, and are more than fit
 *  there. Pending stores then request their lines too early on AMD processors. Intel processors
 *  gain from requesting many lines at a time. */
ONIC_INLINE bool onic_blocks_collide(uintptr_t dst_stride, uint64_t n, uint64_t block)
{
#if defined(__x86_64__)
    const uintptr_t power = dst_stride & (0 - dst_stride);

    return power >= ONIC_FEW_SETS_STRIDE && block <= ONIC_FEW_SETS_BLOCK &&
           n * (power < ONIC_SET_STRIDE ? power : ONIC_SET_STRIDE) >
               ONIC_SET_WAYS * ONIC_SET_STRIDE &&
           __builtin_cpu_is("amd");
#else
    (void)dst_stride;
    (void)n;
    (void)block;
    return false;
#endif
}

/** Moves such blocks, of a constant length, in groups that fill half of a set at most. On a
 * fifth-generation EPYC columns of grids with rows of 1, 2 and 4 KiB are 1.5 to 3 times faster this
 *  way; on a fourth-generation one, with rows of 4 and 8 KiB, 1.3 times, and 1.1 times with groups
 *  of whole sets. A fence that is not a locked operation takes longer, or does not wait. */
ONIC_INLINE void onic_blocks_in_groups(uintptr_t dst, uintptr_t dst_stride, uintptr_t src,
                                       uintptr_t src_stride, uint64_t n, size_t block)
{
    uint32_t all_written = 0;

    for (uint64_t i = 1; i <= n; i++) {
        onic_move_const(dst, src, block);
        if (i % (ONIC_SET_WAYS / 2) == 0)
            (void)__atomic_exchange_n(&all_written, 0, __ATOMIC_SEQ_CST);
        dst += dst_stride;
        src += src_stride;
    }
}

/** `n` blocks of `head` bytes (0 or 4), then a number of 16-byte units, then `tail` bytes. Head and
 *  tail are constants; a head is for blocks that begin in the middle of an aligned element. */
ONIC_INLINE void onic_blocks_words(uintptr_t dst, uintptr_t dst_stride, uintptr_t src,
                                   uintptr_t src_stride, uint64_t n, uint64_t block, size_t head,
                                   size_t tail)
{
    uint64_t body = block - head - tail;

    for (; n > 0; n--) {
        if (head > 0)
            ONIC_MOVE_UNIT(dst, src, 4);
        for (uint64_t at = head; at < head + body; at += 16)
            ONIC_MOVE_UNIT(dst + at, src + at, 16);
        if (tail & 8)
            ONIC_MOVE_UNIT(dst + head + body, src + head + body, 8);
        if (tail & 4)
            ONIC_MOVE_UNIT(dst + block - 4, src + block - 4, 4);
        dst += dst_stride;
        src += src_stride;
    }
}

/** Blocks of whole 4-byte words, of which all begin at a multiple of 8, or none does (`odd`). */
static ONIC_NOINLINE void onic_blocks_4(uintptr_t dst, uintptr_t dst_stride, uintptr_t src,
                                        uintptr_t src_stride, uint64_t n, uint64_t block, bool odd)
{
#define KERNEL(head, tail)                                                                         \
    case (head) << 8 | (tail):                                                                     \
        onic_blocks_words(dst, dst_stride, src, src_stride, n, block, head, tail);                 \
        return

    switch (odd ? 4 << 8 | ((block - 4) & 12) : block & 12) {
        KERNEL(0, 0);
        KERNEL(0, 4);
        KERNEL(0, 8);
        KERNEL(0, 12);
        KERNEL(4, 0);
        KERNEL(4, 4);
        KERNEL(4, 8);
        KERNEL(4, 12);
    default:
        return;
    }
#undef KERNEL
}

/** `n` equal blocks, in their order. */
static void onic_blocks(uintptr_t dst, int64_t dst_step, uintptr_t src, int64_t src_step,
                        uint64_t block, uint64_t n, bool by_src)
{
    uintptr_t dst_stride = (uintptr_t)dst_step;
    uintptr_t src_stride = (uintptr_t)src_step;
    uintptr_t begin = by_src ? src : dst;
    uintptr_t stride = by_src ? src_stride : dst_stride;
    bool words = ((begin | stride) & 7) == 0;

#define KERNEL(bytes)                                                                              \
    case bytes:                                                                                    \
        onic_blocks_in_groups(dst, dst_stride, src, src_stride, n, bytes);                         \
        return

    if (onic_blocks_collide(dst_stride, n, block) && (block <= 16 || words)) {
        switch (block) {
            KERNEL(4);
            KERNEL(8);
            KERNEL(16);
            KERNEL(24);
            KERNEL(32);
        default:
            break;
        }
    }
#undef KERNEL

#define KERNEL(bytes)                                                                              \
    case bytes:                                                                                    \
        onic_blocks_const(dst, dst_stride, src, src_stride, n, bytes);                             \
        return

    switch (block) {
        KERNEL(1);
        KERNEL(2);
        KERNEL(4);
        KERNEL(8);
        KERNEL(16);
    default:
        break;
    }
    if (words) {
        switch (block) {
            KERNEL(12);
            KERNEL(24);
            KERNEL(32);
            KERNEL(64);
            KERNEL(128);
        default:
            break;
        }
    }
#undef KERNEL
    if (((begin | block) & 3) == 0 && (stride & 7) == 0 && block < ONIC_LIBC_FROM)
        onic_blocks_4(dst, dst_stride, src, src_stride, n, block, (begin & 4) != 0);
    else
        onic_blocks_any(dst, dst_stride, src, src_stride, n, block, by_src);
}

/* ---- patterns -----------------------------------------------------------------------------------
 *
 * Two-dimensional moves, and short patterns of runs that a layout repeats often, as arrays
 * of small structures do. One call moves a block of many passes. Internal to pack.c. */

enum {
    SHORT_BLOCK = 128, /* bytes; for longer blocks the cost of a call for each is negligible */
    FEW_BLOCKS = 12,   /* with fewer blocks in a pass a separate loop is too dear */
    FEW_PASSES = 8,    /* exchanging loops does not pay for fewer passes */
    FEW_RUNS = 64,     /* patterns of more runs are moved run by run */
    TILE_BLOCKS = 256  /* blocks, each perhaps a cache line, that stay in the L1 */
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

/** Moves `passes` times `n` blocks. If passes have few blocks, the loops are exchanged, in tiles
 *  that stay in the cache; `exchange` allows that: the order does not matter, because no two passes
 *  write the same byte. */
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

/** One pass of a level, as runs, and the distance between passes. */
typedef struct pattern {
    int64_t stride;
    uint64_t size;   /**< bytes of data */
    uint64_t extent; /**< bytes from the first to the last that it touches */
    uint64_t blocks; /**< blocks in all its runs */
    uint32_t level;
    uint32_t n; /**< runs */
    onic_run_t run[FEW_RUNS];
} pattern_t;

/** Looks for a level with enough passes left and a short pattern below it, with the cursor at the
 *  pattern's beginning. Returns the passes within `len` bytes, or 0; fills in everything except the
 *  runs. */
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

/** The packed form of `p`. */
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

/** True if no two passes have a byte in common, so the order of passes does not matter. */
static inline bool passes_are_apart(const pattern_t *p)
{
    return onic_magnitude(p->stride) >= p->extent;
}

/** Moves passes of two patterns of the same shape: run after run, each for a tile of passes. */
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
