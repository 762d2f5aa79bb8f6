/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Random layouts for the tests of layout and pack, each beside a reference that shares nothing with
 * the code under test: the offsets of all its bytes, one by one, in packed order.
 */
#pragma once

#include <stdlib.h>
#include <string.h>

#include "common/layout/layout.h"
#include "test/unit/unit.h"

/* ---- random numbers ------------------------------------------------------------------------- */

static unit_random_t tree_source;

/** To be called before the tests are run. */
static inline void tree_seed(void)
{
    tree_source.state = unit_seed();
}

static inline uint64_t rnd64(void)
{
    return unit_random64(&tree_source);
}

/** A number in low .. high. */
static inline int64_t rnd(int64_t low, int64_t high)
{
    return low + (int64_t)unit_below(&tree_source, (uint64_t)(high - low + 1));
}

/* ---- the reference -------------------------------------------------------------------------- */

typedef struct ref {
    int64_t *at; /**< offset of each byte */
    size_t n;
} ref_t;

typedef struct tree {
    onic_layout_t l;
    ref_t ref;
} tree_t;

/** `r` must have room. */
static inline void ref_append(ref_t *r, const ref_t *more, int64_t shift)
{
    for (size_t i = 0; i < more->n; i++)
        r->at[r->n + i] = more->at[i] + shift;
    r->n += more->n;
}

static inline int64_t ref_low(const ref_t *r)
{
    int64_t low = r->n > 0 ? r->at[0] : 0;

    for (size_t i = 0; i < r->n; i++)
        low = r->at[i] < low ? r->at[i] : low;
    return low;
}

static inline int64_t ref_high(const ref_t *r)
{
    int64_t high = r->n > 0 ? r->at[0] + 1 : 0;

    for (size_t i = 0; i < r->n; i++)
        high = r->at[i] + 1 > high ? r->at[i] + 1 : high;
    return high;
}

static inline void tree_free(tree_t *t)
{
    onic_layout_fini(&t->l);
    free(t->ref.at);
    memset(t, 0, sizeof(*t));
}

static inline tree_t tree_block(int64_t offset, uint64_t size)
{
    tree_t t = {0};

    t.ref.at = calloc(size + 1, sizeof(*t.ref.at));
    t.ref.n = size;
    for (size_t i = 0; i < size; i++)
        t.ref.at[i] = offset + (int64_t)i;
    UNIT_CHECK(onic_layout_contig(&t.l, offset, size) == ONIC_LAYOUT_OK);
    return t;
}

static inline void tree_repeat(tree_t *t, uint64_t count, int64_t stride)
{
    onic_layout_status_t status = onic_layout_repeat(&t->l, count, stride);
    ref_t all = {0};

    if (status == ONIC_LAYOUT_TOO_DEEP) {
        onic_runs_t runs = {0};

        for (uint64_t i = 0; i < count; i++)
            UNIT_CHECK(onic_runs_add_layout(&runs, &t->l, (int64_t)i * stride) == ONIC_LAYOUT_OK);
        onic_layout_fini(&t->l);
        status = onic_layout_from_runs(&t->l, &runs, 0);
    }
    UNIT_CHECK(status == ONIC_LAYOUT_OK);
    all.at = malloc((count * t->ref.n + 1) * sizeof(*all.at));
    for (uint64_t i = 0; i < count; i++)
        ref_append(&all, &t->ref, (int64_t)i * stride);
    free(t->ref.at);
    t->ref = all;
}

/** Puts `b` behind `a`, which becomes a list; `b` is freed. */
static inline void tree_join(tree_t *a, tree_t *b, int64_t shift)
{
    onic_runs_t runs = {0};

    UNIT_CHECK(onic_runs_add_layout(&runs, &a->l, 0) == ONIC_LAYOUT_OK);
    UNIT_CHECK(onic_runs_add_layout(&runs, &b->l, shift) == ONIC_LAYOUT_OK);
    onic_layout_fini(&a->l);
    UNIT_CHECK(onic_layout_from_runs(&a->l, &runs, 0) == ONIC_LAYOUT_OK);
    a->ref.at = realloc(a->ref.at, (a->ref.n + b->ref.n + 1) * sizeof(*a->ref.at));
    ref_append(&a->ref, &b->ref, shift);
    tree_free(b);
}

static inline void tree_shift(tree_t *t, int64_t delta)
{
    if (t->l.size > 0) {
        t->l.lb += delta;
        t->l.ub += delta;
        t->l.offset += delta;
    }
    for (size_t i = 0; i < t->ref.n; i++)
        t->ref.at[i] += delta;
}

/* ---- random trees --------------------------------------------------------------------------- */

/** A stride that has a chance to touch, to continue, to overlap, to go back, or to do nothing. */
static inline int64_t tree_stride(const onic_layout_t *l)
{
    int64_t extent = l->ub - l->lb;
    const onic_stride_t *top = l->nlevels > 0 ? &l->level[l->nlevels - 1] : NULL;

    switch (rnd(0, 8)) {
    case 0:
        return (int64_t)l->size;
    case 1:
        return top != NULL ? (int64_t)top->count * top->stride : extent;
    case 2:
        return -extent;
    case 3:
        return rnd(-40, 40);
    case 4:
        return 0;
    case 5:
        return 8 * rnd(0, 16);
    default:
        return extent + rnd(0, 24);
    }
}

/** Bytes of a leaf: mostly those that have a kernel. */
static inline uint64_t tree_leaf(void)
{
    static const uint8_t sizes[] = {1, 2, 4, 8, 8, 12, 16, 24, 32, 40, 48, 64, 128};

    switch (rnd(0, 3)) {
    case 0:
        return (uint64_t)rnd(0, 40);
    case 1:
        return rnd(0, 20) == 0 ? (uint64_t)rnd(100, 3000) : (uint64_t)rnd(1, 130);
    default:
        return sizes[rnd(0, sizeof(sizes) - 1)];
    }
}

/** A random tree of at most about `most` bytes of data and `depth` levels of types. */
static inline tree_t tree_random(unsigned depth, size_t most)
{
    tree_t t;

    if (depth == 0 || rnd(0, 9) == 0)
        return tree_block(rnd(-100, 100), tree_leaf());
    t = tree_random(depth - 1, most);
    if (rnd(0, 4) == 0) {
        for (int64_t n = rnd(1, 4); n > 0; n--) {
            tree_t part = tree_random(rnd(0, 1) ? 0 : depth - 1, most / 8);
            bool touch = rnd(0, 3) == 0 && t.ref.n > 0 && part.ref.n > 0;

            tree_join(&t, &part,
                      touch ? t.ref.at[t.ref.n - 1] + 1 - part.ref.at[0] : rnd(-300, 300));
        }
    } else {
        uint64_t count = (uint64_t)(rnd(0, 15) == 0 ? rnd(0, 1) : rnd(2, rnd(0, 7) ? 5 : 200));

        while (count > 2 && count * t.ref.n > most)
            count /= 2;
        if (count * t.ref.n <= most)
            tree_repeat(&t, count, tree_stride(&t.l));
    }
    if (rnd(0, 5) == 0)
        tree_shift(&t, rnd(-1000, 1000));
    return t;
}

/** A tree of more regular levels than a layout has: a list. */
static inline tree_t tree_deep(void)
{
    tree_t t = tree_block(rnd(-9, 9), (uint64_t)rnd(1, 3));

    for (int depth = 0; depth < 11; depth++)
        tree_repeat(&t, 2, (t.l.ub - t.l.lb) + rnd(1, 9));
    return t;
}
