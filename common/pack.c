/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "common/pack.h"

#include "common/layout_walk.h"
#include "common/pack_kernels.h"

enum {
    SHORT_BLOCK = 128,  /* bytes; in longer blocks the call for each of them is hidden */
    FEW_BLOCKS = 8,     /* fewer blocks in a pass make a loop of their own too dear */
    FEW_PASSES = 8,     /* fewer passes are not worth exchanging loops */
    FEW_RUNS = 64,      /* longer lists are moved run by run */
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

/** Moves `n` equal blocks, in their order. */
static void move_blocks(uintptr_t dst, int64_t dst_stride, uintptr_t src, int64_t src_stride,
                        uint64_t block, uint64_t n, bool by_src)
{
    uint64_t unaligned = by_src ? src | (uintptr_t)src_stride : dst | (uintptr_t)dst_stride;

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
    if ((unaligned & 7) == 0) {
        switch (block) {
            KERNEL(12);
            KERNEL(24);
            KERNEL(32);
            KERNEL(40);
            KERNEL(48);
            KERNEL(64);
            KERNEL(128);
        default:
            break;
        }
    }
#undef KERNEL
    for (; n > 0; n--) {
        onic_move(dst, src, block, by_src);
        dst += (uintptr_t)dst_stride;
        src += (uintptr_t)src_stride;
    }
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
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
        move_blocks(dst.at, dst.outer, src.at, src.outer, block, passes, by_src);
        return;
    }
    exchange = exchange && n < FEW_BLOCKS && passes >= FEW_PASSES && block <= SHORT_BLOCK;
    for (; passes > 0; passes -= tile) {
        if (exchange) {
            tile = least(passes, TILE_BLOCKS / n);
            for (uint64_t i = 0; i < n; i++) {
                move_blocks(dst.at + i * (uintptr_t)dst.inner, dst.outer,
                            src.at + i * (uintptr_t)src.inner, src.outer, block, tile, by_src);
            }
        } else {
            move_blocks(dst.at, dst.inner, src.at, src.inner, block, n, by_src);
        }
        dst.at += tile * (uintptr_t)dst.outer;
        src.at += tile * (uintptr_t)src.outer;
    }
}

/* ---- between a layout and contiguous memory --------------------------------------------------
 *
 * Packing and unpacking are the same walk. `gather` is a constant in each of its two copies.
 */

ONIC_INLINE void flat_nest(bool gather, side_t mem, side_t flat, uint64_t block, uint64_t n,
                           uint64_t passes, bool exchange)
{
    if (gather) {
        move_nest(flat, mem, block, n, passes, true, true);
    } else {
        move_nest(mem, flat, block, n, passes, exchange, false);
    }
}

/** Stride form, at the beginning of a pass of level 1: as many whole passes as `len` allows. */
ONIC_INLINE uint64_t flat_strides(bool gather, onic_cursor_t *c, const void *base, uintptr_t flat,
                                  uint64_t len)
{
    const onic_layout_t *l = c->layout;
    const onic_stride_t *row = &l->level[0];
    const onic_stride_t *column = &l->level[1];
    uint64_t size = l->block * row->count;
    uint64_t passes = least(len / size, column->count - c->index[1]);

    if (passes == 0) {
        return 0;
    }
    flat_nest(gather, (side_t){address(base, c->leaf), row->stride, column->stride},
              (side_t){flat, (int64_t)l->block, (int64_t)size}, l->block, row->count, passes,
              magnitude(column->stride) >= l->block + (row->count - 1) * magnitude(row->stride));
    c->pos += passes * size;
    onic_cursor_pass(c, 1, passes);
    return passes * size;
}

/** Blocks of a list; `*extent` is the number of bytes from its first to its last. */
static uint64_t measure_list(const onic_layout_t *l, uint64_t *extent)
{
    int64_t lb = 0;
    int64_t ub = 0;
    uint64_t blocks = 0;

    for (uint32_t i = 0; i < l->nruns; i++) {
        const onic_run_t *run = &l->runs[i];
        int64_t last = run->offset + (int64_t)(run->count - 1) * run->stride;
        int64_t low = last < run->offset ? last : run->offset;
        int64_t high = (last < run->offset ? run->offset : last) + (int64_t)run->block;

        lb = low < lb ? low : lb;
        ub = high > ub ? high : ub;
        blocks += run->count;
    }
    *extent = (uint64_t)(ub - lb);
    return blocks;
}

/** List form, at the beginning of a short list that many passes repeat: run after run, each for a
 *  tile of passes. */
ONIC_INLINE uint64_t flat_lists(bool gather, onic_cursor_t *c, const void *base, uintptr_t flat,
                                uint64_t len)
{
    const onic_layout_t *l = c->layout;
    uint64_t size = onic_layout_leaf_size(l);
    uint64_t passes = least(len / size, l->level[0].count - c->index[0]);
    uintptr_t mem = address(base, c->leaf);
    int64_t stride = l->level[0].stride;
    uint64_t extent;
    uint64_t tile;

    if (passes < FEW_PASSES) {
        return 0;
    }
    tile = TILE_BLOCKS / measure_list(l, &extent);
    tile = tile < FEW_PASSES ? FEW_PASSES : tile;
    if (!gather && magnitude(stride) < extent) {
        return 0;
    }
    for (uint64_t left = passes; left > 0; left -= tile) {
        tile = least(tile, left);
        for (uint32_t i = 0; i < l->nruns; i++) {
            const onic_run_t *run = &l->runs[i];

            flat_nest(gather, (side_t){address((void *)mem, run->offset), run->stride, stride},
                      (side_t){flat + l->run_start[i], (int64_t)run->block, (int64_t)size},
                      run->block, run->count, tile, true);
        }
        mem += tile * (uintptr_t)stride;
        flat += tile * size;
    }
    c->pos += passes * size;
    onic_cursor_pass(c, 0, passes);
    return passes * size;
}

/** The next run, or a part of it. */
ONIC_INLINE uint64_t flat_run(bool gather, onic_cursor_t *c, const void *base, uintptr_t flat,
                              uint64_t len)
{
    onic_run_t run;
    uint64_t n = onic_cursor_peek(c, len, &run);
    uintptr_t mem;

    if (n == 0) {
        return 0;
    }
    mem = address(base, run.offset);
    if (gather) {
        move_blocks(flat, (int64_t)run.block, mem, run.stride, run.block, run.count, true);
    } else {
        move_blocks(mem, run.stride, flat, (int64_t)run.block, run.block, run.count, false);
    }
    onic_cursor_advance(c, &run);
    return n;
}

ONIC_INLINE uint64_t flat_move(bool gather, onic_cursor_t *c, const void *base, uintptr_t flat,
                               uint64_t len)
{
    const onic_layout_t *l = c->layout;
    bool strides = l->nruns == 0 && l->nlevels >= 2;
    bool lists = l->nruns > 0 && l->nruns <= FEW_RUNS && l->nlevels >= 1;
    uint64_t done = 0;

    len = least(len, l->size - c->pos);
    while (done < len) {
        uint64_t n = 0;

        if (strides && c->in_block == 0 && c->index[0] == 0) {
            n = flat_strides(gather, c, base, flat + done, len - done);
        } else if (lists && onic_cursor_at_leaf(c)) {
            n = flat_lists(gather, c, base, flat + done, len - done);
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

/** Moves a little through a buffer that stays in the cache: right for any two shapes. */
static uint64_t copy_staged(onic_cursor_t *dst, void *dst_base, onic_cursor_t *src,
                            const void *src_base, uint64_t len)
{
    _Alignas(64) unsigned char stage[STAGE_BYTES];
    uint64_t n = onic_pack(src, src_base, stage, least(len, sizeof(stage)));

    return onic_unpack(dst, dst_base, stage, n);
}

uint64_t onic_copy(onic_cursor_t *dst, void *dst_base, onic_cursor_t *src, const void *src_base,
                   uint64_t len)
{
    uint64_t done = 0;

    len = least(len, dst->layout->size - dst->pos);
    len = least(len, src->layout->size - src->pos);
    while (done < len) {
        uint64_t n = copy_runs(dst, dst_base, src, src_base, len - done);

        done += n > 0 ? n : copy_staged(dst, dst_base, src, src_base, len - done);
    }
    return done;
}
