/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Building layouts: blocks, levels and lists of runs, and the cursor that walks them.
 *
 *  Invariants of a layout that is not empty, on which the walking relies:
 *   - size, lb, ub and ub - lb are at most INT64_MAX, so that differences of offsets are safe;
 *   - every level has a count of at least 2, every block at least one byte;
 *   - a list counts from its first run (runs[0].offset == 0), so that `offset` plus any passes of
 *     the levels is the offset of a byte of the layout. */
#include "common/layout/layout.h"

#include <stdlib.h>
#include <string.h>

#include "common/layout/layout_walk.h"

typedef struct bounds {
    int64_t lb;
    int64_t ub;
} bounds_t;

/** Bounds of `count` copies of `b`, `stride` bytes apart. False on overflow. */
static bool bounds_repeat(bounds_t *b, uint64_t count, int64_t stride)
{
    int64_t span, extent, *moved = stride < 0 ? &b->lb : &b->ub;

    return !__builtin_mul_overflow(count - 1, stride, &span) &&
           !__builtin_add_overflow(*moved, span, moved) &&
           !__builtin_sub_overflow(b->ub, b->lb, &extent);
}

static bool bounds_block(bounds_t *b, int64_t offset, uint64_t size)
{
    int64_t extent;

    b->lb = offset;
    return !__builtin_add_overflow(offset, size, &b->ub) &&
           !__builtin_sub_overflow(b->ub, b->lb, &extent);
}

static bool size_mul(uint64_t a, uint64_t b, uint64_t *product)
{
    return !__builtin_mul_overflow(a, b, product) && *product <= INT64_MAX;
}

onic_layout_status_t onic_layout_contig(onic_layout_t *l, int64_t offset, uint64_t size)
{
    bounds_t b = {0, 0};

    if (size > 0 && !bounds_block(&b, offset, size))
        return ONIC_LAYOUT_OVERFLOW;
    onic_layout_set(l, size);
    l->lb = l->offset = b.lb;
    l->ub = b.ub;
    return ONIC_LAYOUT_OK;
}

/** Adds an outermost level, merged with the present one if that keeps the packed order. */
static bool push_level(onic_layout_t *l, uint64_t count, int64_t stride)
{
    if (onic_layout_is_contig(l) && stride == (int64_t)l->block) {
        l->block *= count;
        return true;
    }
    if (l->nlevels > 0) {
        onic_stride_t *top = &l->level[l->nlevels - 1];
        int64_t next;

        if (!__builtin_mul_overflow(top->count, top->stride, &next) && next == stride) {
            top->count *= count;
            return true;
        }
    }
    if (l->nlevels == ONIC_LAYOUT_MAX_LEVELS)
        return false;
    l->level[l->nlevels++] = (onic_stride_t){.count = count, .stride = stride};
    return true;
}

onic_layout_status_t onic_layout_repeat(onic_layout_t *l, uint64_t count, int64_t stride)
{
    bounds_t b = {l->lb, l->ub};
    uint64_t size;

    if (l->size == 0 || count == 1)
        return ONIC_LAYOUT_OK;
    if (count == 0) {
        onic_layout_fini(l);
        return ONIC_LAYOUT_OK;
    }
    if (!size_mul(l->size, count, &size) || !bounds_repeat(&b, count, stride))
        return ONIC_LAYOUT_OVERFLOW;
    if (!push_level(l, count, stride))
        return ONIC_LAYOUT_TOO_DEEP;
    l->size = size;
    l->lb = b.lb;
    l->ub = b.ub;
    return ONIC_LAYOUT_OK;
}

/* ---- lists of runs -------------------------------------------------------------------------- */

static bool run_bounds(const onic_run_t *run, bounds_t *b)
{
    uint64_t size;

    return size_mul(run->block, run->count, &size) && bounds_block(b, run->offset, run->block) &&
           bounds_repeat(b, run->count, run->stride);
}

static int64_t run_last(const onic_run_t *run)
{
    return run->offset + (int64_t)(run->count - 1) * run->stride;
}

/** Extends `a` by `b` if the two together are one run. */
static bool run_join(onic_run_t *a, const onic_run_t *b)
{
    onic_run_t joined = *a;
    bounds_t unused;
    int64_t step;

    if (a->block != b->block || __builtin_sub_overflow(b->offset, run_last(a), &step))
        return false;
    if ((a->count > 1 && a->stride != step) || (b->count > 1 && b->stride != step))
        return false;
    joined.count += b->count;
    joined.stride = step;
    if (!run_bounds(&joined, &unused))
        return false;
    *a = joined;
    return true;
}

/** If block `b` touches the last block of the list, removes that from the list and prepends it to
 *  `b`. */
static void runs_take_touching(onic_runs_t *r, onic_run_t *b)
{
    onic_run_t *a = &r->run[r->n - 1];
    int64_t last = run_last(a);

    if (b->count > 1 || last + (int64_t)a->block != b->offset)
        return;
    if (a->block + b->block > INT64_MAX)
        return;
    b->offset = last;
    b->block += a->block;
    if (--a->count == 1)
        a->stride = 0;
    else if (a->count == 0)
        r->n--;
}

static onic_layout_status_t runs_reserve(onic_runs_t *r)
{
    size_t cap = r->cap ? 2 * r->cap : 16;
    onic_run_t *run;

    if (r->n < r->cap)
        return ONIC_LAYOUT_OK;
    if (r->n >= UINT32_MAX)
        return ONIC_LAYOUT_OVERFLOW;
    run = realloc(r->run, cap * sizeof(*run));
    if (run == NULL)
        return ONIC_LAYOUT_NO_MEMORY;
    r->run = run;
    r->cap = cap;
    return ONIC_LAYOUT_OK;
}

onic_layout_status_t onic_runs_add(onic_runs_t *r, onic_run_t run)
{
    onic_layout_status_t status;
    bounds_t unused;

    if (run.block == 0 || run.count == 0)
        return ONIC_LAYOUT_OK;
    if (!run_bounds(&run, &unused))
        return ONIC_LAYOUT_OVERFLOW;
    if (run.count == 1 || run.stride == (int64_t)run.block) {
        run.block *= run.count;
        run.count = 1;
        run.stride = 0;
    }
    status = runs_reserve(r);
    if (status != ONIC_LAYOUT_OK)
        return status;
    if (r->n > 0)
        runs_take_touching(r, &run);
    if (r->n == 0 || !run_join(&r->run[r->n - 1], &run))
        r->run[r->n++] = run;
    return ONIC_LAYOUT_OK;
}

/** Appends the first `size` bytes of a layout, shifted. */
static onic_layout_status_t runs_add_first(onic_runs_t *r, const onic_layout_t *l, uint64_t size,
                                           int64_t shift)
{
    onic_layout_status_t status = ONIC_LAYOUT_OK;
    onic_cursor_t c;
    onic_run_t run;

    onic_cursor_init(&c, l, 0);
    while (status == ONIC_LAYOUT_OK && onic_cursor_peek(&c, size - c.pos, &run) > 0) {
        onic_cursor_advance(&c, &run);
        status = __builtin_add_overflow(run.offset, shift, &run.offset) ? ONIC_LAYOUT_OVERFLOW
                                                                        : onic_runs_add(r, run);
    }
    return status;
}

onic_layout_status_t onic_runs_add_layout(onic_runs_t *r, const onic_layout_t *l, int64_t shift)
{
    return runs_add_first(r, l, l->size, shift);
}

void onic_runs_fini(onic_runs_t *r)
{
    free(r->run);
    *r = (onic_runs_t){0};
}

/** Size and bounds of a non-empty list. False on overflow. */
static bool runs_measure(const onic_runs_t *r, uint64_t *size, bounds_t *all)
{
    int64_t extent;

    *size = 0;
    *all = (bounds_t){INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < r->n; i++) {
        bounds_t b;

        if (!run_bounds(&r->run[i], &b))
            return false;
        *size += r->run[i].block * r->run[i].count;
        if (*size > INT64_MAX)
            return false;
        all->lb = b.lb < all->lb ? b.lb : all->lb;
        all->ub = b.ub > all->ub ? b.ub : all->ub;
    }
    return !__builtin_sub_overflow(all->ub, all->lb, &extent);
}

/** How many of every `each`-th run, from `first` on, at most `most`, are `stride` apart. */
static size_t regular_prefix(const onic_runs_t *r, size_t first, size_t each, int64_t stride,
                             size_t most)
{
    size_t n = 1;

    for (size_t i = first; n < most && i + each < r->n; i += each, n++)
        if (r->run[i + each].offset - r->run[i].offset != stride)
            break;
    return n;
}

/** Finds nested strides in a list of equal runs: the first equally spaced runs form a group, which
 *  must repeat until the list ends; then the groups are examined in the same way. False if that
 *  takes more than `most` levels. */
static bool runs_are_regular(const onic_runs_t *r, onic_layout_t *l, uint32_t most)
{
    const onic_run_t *run = r->run;

    for (size_t i = 1; i < r->n; i++)
        if (run[i].block != run->block || run[i].count != run->count ||
            run[i].stride != run->stride)
            return false;
    if (onic_layout_contig(l, run->offset, run->block) != ONIC_LAYOUT_OK ||
        onic_layout_repeat(l, run->count, run->stride) != ONIC_LAYOUT_OK)
        return false;
    for (size_t each = 1, group; each < r->n; each = group) {
        int64_t stride = run[each].offset - run->offset;
        size_t n = regular_prefix(r, 0, each, stride, r->n);

        group = each * n;
        for (size_t i = 0; i < r->n; i += group)
            if (regular_prefix(r, i, each, stride, n) < n)
                return false;
        if (onic_layout_repeat(l, n, stride) != ONIC_LAYOUT_OK)
            return false;
    }
    return l->nlevels <= most;
}

onic_layout_status_t onic_layout_from_runs(onic_layout_t *l, onic_runs_t *r, uint32_t above)
{
    onic_layout_t list = {0};
    bounds_t b;

    if (r->n == 0) {
        onic_runs_fini(r);
        return onic_layout_contig(l, 0, 0);
    }
    if (!runs_measure(r, &list.size, &b)) {
        onic_runs_fini(r);
        return ONIC_LAYOUT_OVERFLOW;
    }
    if (runs_are_regular(r, l, ONIC_LAYOUT_MAX_LEVELS - above)) {
        onic_runs_fini(r);
        return ONIC_LAYOUT_OK;
    }
    list.run_start = onic_list_positions(r->run, r->n);
    if (list.run_start == NULL) {
        onic_runs_fini(r);
        return ONIC_LAYOUT_NO_MEMORY;
    }
    list.lb = b.lb;
    list.ub = b.ub;
    list.offset = r->run[0].offset;
    list.nruns = (uint32_t)r->n;
    list.runs = realloc(r->run, r->n * sizeof(*r->run));
    if (list.runs == NULL)
        list.runs = r->run;
    *r = (onic_runs_t){0};
    for (uint32_t i = 0; i < list.nruns; i++)
        list.runs[i].offset -= list.offset;
    *l = list;
    return ONIC_LAYOUT_OK;
}

onic_layout_status_t onic_layout_cut(onic_layout_t *l, uint64_t size)
{
    onic_layout_status_t status;
    onic_runs_t r = {0};
    onic_layout_t cut;

    if (size >= l->size)
        return ONIC_LAYOUT_OK;
    status = runs_add_first(&r, l, size, 0);
    if (status == ONIC_LAYOUT_OK)
        status = onic_layout_from_runs(&cut, &r, 0);
    onic_runs_fini(&r);
    if (status == ONIC_LAYOUT_OK) {
        onic_layout_fini(l);
        *l = cut;
    }
    return status;
}

/* ---- walking -------------------------------------------------------------------------------- */

/** Finds the run, block and byte of position `pos` in one pass of the list. */
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
    /* The end is the only position without a byte. */
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
