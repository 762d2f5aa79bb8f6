/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What the tests of layouts share: building them, and comparing them with their reference.
 */
#pragma once

#include "test/unit/tree.h"

static inline onic_layout_t contig(int64_t offset, uint64_t size)
{
    onic_layout_t l;

    ck_assert_int_eq(onic_layout_contig(&l, offset, size), ONIC_LAYOUT_OK);
    return l;
}

static inline void repeat(onic_layout_t *l, uint64_t count, int64_t stride)
{
    ck_assert_int_eq(onic_layout_repeat(l, count, stride), ONIC_LAYOUT_OK);
}

static inline void check_empty(const onic_layout_t *l)
{
    ck_assert_uint_eq(l->size, 0);
    ck_assert_int_eq(l->lb, 0);
    ck_assert_int_eq(l->ub, 0);
    ck_assert_uint_eq(l->nlevels, 0);
    ck_assert_uint_eq(l->nruns, 0);
    ck_assert_uint_eq(onic_layout_blocks(l), 0);
}

/** Walks from `pos` in pieces of random length; every byte must be where the reference has it. */
static inline void check_walk(const onic_layout_t *l, const ref_t *ref, size_t from, size_t pos)
{
    onic_cursor_t c;
    int64_t offset;
    uint64_t len;

    onic_cursor_init(&c, l, pos);
    while (onic_cursor_next(&c, (uint64_t)rnd(1, rnd(0, 1) ? 10 : 1000), &offset, &len)) {
        UNIT_CHECK(len > 0 && from + pos + len <= ref->n);
        for (uint64_t i = 0; i < len; i++, pos++)
            UNIT_CHECK(offset + (int64_t)i == ref->at[from + pos]);
        UNIT_CHECK(c.pos == pos);
    }
    ck_assert_uint_eq(pos, l->size);
}

static inline void check_seek(const onic_layout_t *l, const ref_t *ref)
{
    for (int i = 0; i < 20 && ref->n > 0; i++) {
        size_t pos = (size_t)rnd(0, (int64_t)ref->n);
        onic_cursor_t c;
        int64_t offset;
        uint64_t len;

        onic_cursor_init(&c, l, pos);
        UNIT_CHECK(onic_cursor_next(&c, 1, &offset, &len) == (pos < ref->n));
        UNIT_CHECK(pos == ref->n || offset == ref->at[pos]);
    }
}

static inline void check_blocks(const onic_layout_t *l)
{
    onic_cursor_t c;
    int64_t offset;
    uint64_t len, n = 0;

    for (onic_cursor_init(&c, l, 0); onic_cursor_next(&c, UINT64_MAX, &offset, &len);)
        n++;
    ck_assert_uint_eq(onic_layout_blocks(l), n);
}

static inline void check_form(const onic_layout_t *l)
{
    int64_t next;

    ck_assert_uint_le(l->nlevels, ONIC_LAYOUT_MAX_LEVELS);
    for (uint32_t i = 0; i < l->nlevels; i++) {
        ck_assert_uint_ge(l->level[i].count, 2);
        next = i > 0 ? (int64_t)l->level[i - 1].count * l->level[i - 1].stride : (int64_t)l->block;
        ck_assert(l->level[i].stride != next || (i == 0 && l->nruns > 0));
    }
    ck_assert_uint_ne(l->nruns, 1);
}

static inline void check_against_reference(const onic_layout_t *l, const ref_t *ref)
{
    ck_assert_uint_eq(l->size, ref->n);
    ck_assert_int_eq(l->lb, ref_low(ref));
    ck_assert_int_eq(l->ub, ref_high(ref));
    check_form(l);
    check_blocks(l);
    check_walk(l, ref, 0, 0);
    check_seek(l, ref);
    check_walk(l, ref, 0, (size_t)rnd(0, (int64_t)ref->n));
}

/* ---- random layouts ------------------------------------------------------------------------- */

enum { TREES = 20000, MOST = 6000, DEPTH = 6 };

/** Hands TREES random layouts to `check`, which frees them. */
static inline void check_random_trees(void (*check)(tree_t *t))
{
    for (int i = 0; i < TREES; i++) {
        tree_t t = tree_random((unsigned)rnd(0, DEPTH), MOST);

        check(&t);
    }
}

/** Likewise of layouts that have more levels than an onic_layout_t. */
static inline void check_deep_trees(void (*check)(tree_t *t))
{
    for (int i = 0; i < 40; i++) {
        tree_t t = tree_deep();

        check(&t);
    }
}
