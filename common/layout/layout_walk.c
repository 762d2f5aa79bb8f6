/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "common/layout/layout_walk.h"

/** Finds the run, the block and the byte of position `pos` in one pass of the list. */
static void seek_in_list(onic_cursor_t *c, uint64_t pos)
{
    const onic_layout_t *l = c->layout;
    uint32_t low = 0;
    uint32_t high = l->nruns;

    while (high - low > 1) {
        uint32_t mid = low + (high - low) / 2;

        if (l->run_start[mid] <= pos)
            low = mid;
        else
            high = mid;
    }
    pos -= l->run_start[low];
    c->run = low;
    c->in_run = pos / l->runs[low].block;
    c->in_block = pos % l->runs[low].block;
}

void onic_cursor_init(onic_cursor_t *c, const onic_layout_t *l, uint64_t pos)
{
    *c = (onic_cursor_t){.layout = l, .pos = pos, .leaf = l->offset};
    /* The end is the only position with nothing under it. */
    if (pos == 0 || pos >= l->size) {
        c->pos = pos > l->size ? l->size : pos;
        return;
    }
    uint64_t leaf = onic_layout_leaf_size(l);
    uint64_t pass = pos / leaf;

    for (uint32_t i = 0; i < l->nlevels && pass > 0; i++) {
        const onic_stride_t *s = &l->level[i];

        c->index[i] = pass % s->count;
        c->leaf += (int64_t)c->index[i] * s->stride;
        pass /= s->count;
    }
    if (l->nruns)
        seek_in_list(c, pos % leaf);
    else
        c->in_block = pos % leaf;
}

bool onic_cursor_next(onic_cursor_t *c, uint64_t max, int64_t *offset_p, uint64_t *len_p)
{
    onic_run_t run;

    if (onic_cursor_peek(c, max, &run) == 0)
        return false;
    run.count = 1;
    onic_cursor_advance(c, &run);
    *offset_p = run.offset;
    *len_p = run.block;
    return true;
}

uint64_t onic_layout_whole(const onic_layout_t *l, uint64_t base, uint64_t pos, uint64_t len)
{
    onic_cursor_t c;
    onic_run_t next;

    if (len >= l->size - pos)
        return l->size - pos;
    onic_cursor_init(&c, l, pos + len);
    if (onic_cursor_peek(&c, 1, &next) == 0)
        return len;
    uint64_t over = (base + (uint64_t)next.offset) % 8;

    over = over < c.in_block ? over : c.in_block;
    return over < len ? len - over : len;
}
