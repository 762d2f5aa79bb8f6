/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file How a cursor moves, run by run. Internal to the layout and pack code.
 *
 *  No sum here can overflow: a layout keeps lb, ub, ub - lb and size within int64_t, every partial
 *  sum below is the offset of a byte of the layout, and a list's runs count from its first run. */
#pragma once

#include "common/layout/layout.h"

/** The positions of the runs of a new list, `nruns + 1` of them, owned by one layout; NULL if
 *  memory is exhausted. onic_layout_fini frees them. */
uint64_t *onic_list_positions(const onic_run_t *run, size_t nruns);

/** Bytes in one pass of everything below level 0. The layout must not be empty. */
static inline uint64_t onic_layout_leaf_size(const onic_layout_t *l)
{
    return l->nruns ? l->run_start[l->nruns] : l->block;
}

/** True at the first byte of a leaf: of the block, or of the whole list. */
static inline bool onic_cursor_at_leaf(const onic_cursor_t *c)
{
    return c->in_block == 0 && c->run == 0 && c->in_run == 0;
}

/** Moves forward `n` passes at `level`, at most to the end of that level, and carries upwards. */
static inline void onic_cursor_pass(onic_cursor_t *c, uint32_t level, uint64_t n)
{
    const onic_layout_t *l = c->layout;

    for (; level < l->nlevels; level++, n = 1) {
        const onic_stride_t *s = &l->level[level];

        if (c->index[level] + n < s->count) {
            c->index[level] += n;
            c->leaf += (int64_t)n * s->stride;
            return;
        }
        c->leaf -= (int64_t)c->index[level] * s->stride;
        c->index[level] = 0;
    }
}

/** Moves from the first byte of a block `n` blocks forward, at most to the end of the run. */
static inline void onic_cursor_skip_blocks(onic_cursor_t *c, uint64_t n)
{
    const onic_layout_t *l = c->layout;

    if (l->nruns == 0) {
        onic_cursor_pass(c, 0, n);
        return;
    }
    c->in_run += n;
    if (c->in_run < l->runs[c->run].count)
        return;
    c->in_run = 0;
    if (++c->run == l->nruns) {
        c->run = 0;
        onic_cursor_pass(c, 0, 1);
    }
}

/** The rest of the innermost run, from the block with the cursor on. Not at the end. */
static inline onic_run_t onic_cursor_run(const onic_cursor_t *c)
{
    const onic_layout_t *l = c->layout;

    if (l->nruns) {
        const onic_run_t *r = &l->runs[c->run];

        return (onic_run_t){.offset = c->leaf + r->offset + (int64_t)c->in_run * r->stride,
                            .block = r->block,
                            .count = r->count - c->in_run,
                            .stride = r->stride};
    }
    if (l->nlevels == 0)
        return (onic_run_t){.offset = c->leaf, .block = l->block, .count = 1};
    return (onic_run_t){.offset = c->leaf,
                        .block = l->block,
                        .count = l->level[0].count - c->index[0],
                        .stride = l->level[0].stride};
}

/** The next data as one run of at most `max` bytes: whole blocks if at least one fits, else part of
 *  one. Returns its bytes; 0 at the end of the layout or if `max` is 0. */
static inline uint64_t onic_cursor_peek(const onic_cursor_t *c, uint64_t max, onic_run_t *run)
{
    if (max == 0 || c->pos == c->layout->size)
        return 0;
    *run = onic_cursor_run(c);
    if (c->in_block != 0 || max < run->block) {
        uint64_t left = run->block - c->in_block;

        run->offset += (int64_t)c->in_block;
        run->block = left < max ? left : max;
        run->count = 1;
        run->stride = 0;
    } else if (run->block * run->count > max) {
        run->count = max / run->block;
    }
    return run->block * run->count;
}

/** Moves past `run`, which onic_cursor_peek has returned here, or past a first part of it: some of
 *  its whole blocks, or some bytes of its first block, with a count of 1. */
static inline void onic_cursor_advance(onic_cursor_t *c, const onic_run_t *run)
{
    const onic_layout_t *l = c->layout;
    uint64_t block = l->nruns ? l->runs[c->run].block : l->block;

    c->pos += run->block * run->count;
    if (c->in_block + run->block < block) {
        c->in_block += run->block;
        return;
    }
    c->in_block = 0;
    onic_cursor_skip_blocks(c, run->count);
}
