/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Layouts against a list of byte offsets: building, walking, the wire form. */
#include "test/unit/tree.h"

enum { TREES = 20000, MOST = 6000, DEPTH = 6 };

static onic_layout_t contig(int64_t offset, uint64_t size)
{
    onic_layout_t l;

    ck_assert_int_eq(onic_layout_contig(&l, offset, size), ONIC_LAYOUT_OK);
    return l;
}

static void repeat(onic_layout_t *l, uint64_t count, int64_t stride)
{
    ck_assert_int_eq(onic_layout_repeat(l, count, stride), ONIC_LAYOUT_OK);
}

static void check_level(const onic_layout_t *l, uint32_t i, uint64_t count, int64_t stride)
{
    ck_assert_uint_lt(i, l->nlevels);
    ck_assert_uint_eq(l->level[i].count, count);
    ck_assert_int_eq(l->level[i].stride, stride);
}

static void check_empty(const onic_layout_t *l)
{
    ck_assert_uint_eq(l->size, 0);
    ck_assert_int_eq(l->lb, 0);
    ck_assert_int_eq(l->ub, 0);
    ck_assert_uint_eq(l->nlevels, 0);
    ck_assert_uint_eq(l->nruns, 0);
    ck_assert_uint_eq(onic_layout_blocks(l), 0);
}

/* ---- normal form ---------------------------------------------------------------------------- */

START_TEST(touching_blocks_merge)
{
    onic_layout_t l = contig(16, 8);

    repeat(&l, 1, 999);
    repeat(&l, 10, 8);
    ck_assert(onic_layout_is_contig(&l));
    ck_assert_uint_eq(l.block, 80);
    repeat(&l, 3, 80);
    ck_assert(onic_layout_is_contig(&l));
    ck_assert_uint_eq(l.block, 240);
    ck_assert_int_eq(l.lb, 16);
    ck_assert_int_eq(l.ub, 256);
}
END_TEST

START_TEST(continuing_levels_merge)
{
    onic_layout_t l = contig(0, 8);

    repeat(&l, 4, 16);
    repeat(&l, 5, 64);
    ck_assert_uint_eq(l.nlevels, 1);
    check_level(&l, 0, 20, 16);
    repeat(&l, 3, 1000);
    repeat(&l, 2, 3000);
    ck_assert_uint_eq(l.nlevels, 2);
    check_level(&l, 1, 6, 1000);
    ck_assert_uint_eq(onic_layout_blocks(&l), 120);
}
END_TEST

START_TEST(order_forbids_merging)
{
    onic_layout_t l = contig(0, 8);

    /* Backwards: the blocks touch, but not in this order. */
    repeat(&l, 4, -8);
    ck_assert_uint_eq(l.nlevels, 1);
    check_level(&l, 0, 4, -8);
    ck_assert_int_eq(l.lb, -24);
    ck_assert_int_eq(l.ub, 8);
    repeat(&l, 2, -32);
    ck_assert_uint_eq(l.nlevels, 1);
    check_level(&l, 0, 8, -8);
    repeat(&l, 2, 64);
    ck_assert_uint_eq(l.nlevels, 2);
}
END_TEST

START_TEST(zero_stride_repeats_bytes)
{
    onic_layout_t l = contig(8, 4);

    repeat(&l, 5, 0);
    repeat(&l, 6, 0);
    ck_assert_uint_eq(l.nlevels, 1);
    check_level(&l, 0, 30, 0);
    ck_assert_uint_eq(l.size, 120);
    ck_assert_int_eq(l.lb, 8);
    ck_assert_int_eq(l.ub, 12);
}
END_TEST

START_TEST(empty_layouts)
{
    onic_layout_t l = contig(77, 0);
    onic_runs_t runs = {0};

    check_empty(&l);
    repeat(&l, UINT64_MAX, INT64_MAX);
    check_empty(&l);
    ck_assert_int_eq(onic_layout_shift(&l, 5), ONIC_LAYOUT_OK);
    check_empty(&l);
    l = contig(3, 9);
    repeat(&l, 4, 20);
    repeat(&l, 0, 5);
    check_empty(&l);
    ck_assert_int_eq(onic_runs_add(&runs, (onic_run_t){5, 0, 7, 8}), ONIC_LAYOUT_OK);
    ck_assert_int_eq(onic_runs_add(&runs, (onic_run_t){5, 7, 0, 8}), ONIC_LAYOUT_OK);
    ck_assert_int_eq(onic_runs_add_layout(&runs, &l, 5), ONIC_LAYOUT_OK);
    ck_assert_int_eq(onic_layout_from_runs(&l, &runs), ONIC_LAYOUT_OK);
    check_empty(&l);
}
END_TEST

START_TEST(levels_are_limited)
{
    onic_layout_t l = contig(0, 1);
    onic_layout_t before;

    for (int i = 0; i < ONIC_LAYOUT_MAX_LEVELS; i++) {
        repeat(&l, 2, (int64_t)3 << (2 * i));
    }
    ck_assert_uint_eq(l.nlevels, ONIC_LAYOUT_MAX_LEVELS);
    before = l;
    ck_assert_int_eq(onic_layout_repeat(&l, 2, 1000000), ONIC_LAYOUT_TOO_DEEP);
    ck_assert_mem_eq(&l, &before, sizeof(l));
    /* A level that continues the last one still fits. */
    repeat(&l, 3, 2 * l.level[7].stride);
    check_level(&l, 7, 6, before.level[7].stride);
}
END_TEST

START_TEST(lists_find_regularity)
{
    onic_runs_t runs = {0};
    onic_layout_t l;

    for (int k = 0; k < 5; k++) {
        for (int j = 0; j < 4; j++) {
            for (int i = 0; i < 3; i++) {
                onic_run_t run = {100 + 2000 * k + 300 * j + 32 * i, 8, 2, 16};

                ck_assert_int_eq(onic_runs_add(&runs, run), ONIC_LAYOUT_OK);
            }
        }
    }
    ck_assert_int_eq(onic_layout_from_runs(&l, &runs), ONIC_LAYOUT_OK);
    ck_assert_ptr_null(runs.run);
    ck_assert_uint_eq(l.nruns, 0);
    ck_assert_uint_eq(l.nlevels, 3);
    ck_assert_int_eq(l.offset, 100);
    check_level(&l, 0, 6, 16);
    check_level(&l, 1, 4, 300);
    check_level(&l, 2, 5, 2000);
}
END_TEST

START_TEST(lists_merge_runs)
{
    onic_runs_t runs = {0};
    onic_layout_t l;

    /* Bytes that come one at a time become blocks, and blocks that are split become whole. */
    for (int i = 0; i < 300; i++) {
        ck_assert_int_eq(onic_runs_add(&runs, (onic_run_t){40 * (i / 3) + i % 3, 1, 1, 0}),
                         ONIC_LAYOUT_OK);
    }
    ck_assert_int_eq(onic_runs_add(&runs, (onic_run_t){9999, 7, 1, 0}), ONIC_LAYOUT_OK);
    ck_assert_uint_eq(runs.n, 2);
    ck_assert_int_eq(onic_layout_from_runs(&l, &runs), ONIC_LAYOUT_OK);
    ck_assert_uint_eq(l.nruns, 2);
    ck_assert_uint_eq(l.runs[0].count, 100);
    ck_assert_uint_eq(l.runs[0].block, 3);
    ck_assert_uint_eq(onic_layout_blocks(&l), 101);
    onic_layout_fini(&l);
    /* A block that goes on takes its beginning out of the run before. */
    ck_assert_int_eq(onic_runs_add(&runs, (onic_run_t){0, 8, 2, 16}), ONIC_LAYOUT_OK);
    ck_assert_int_eq(onic_runs_add(&runs, (onic_run_t){24, 8, 1, 0}), ONIC_LAYOUT_OK);
    ck_assert_uint_eq(runs.n, 2);
    ck_assert_uint_eq(runs.run[0].count, 1);
    ck_assert_int_eq(runs.run[0].stride, 0);
    ck_assert_int_eq(runs.run[1].offset, 16);
    ck_assert_uint_eq(runs.run[1].block, 16);
    onic_runs_fini(&runs);
}
END_TEST

/* ---- 64-bit arithmetic ---------------------------------------------------------------------- */

START_TEST(overflow_is_refused)
{
    onic_layout_t l;
    onic_layout_t before;

    ck_assert_int_eq(onic_layout_contig(&l, 0, (uint64_t)INT64_MAX + 1), ONIC_LAYOUT_OVERFLOW);
    ck_assert_int_eq(onic_layout_contig(&l, 1, INT64_MAX), ONIC_LAYOUT_OVERFLOW);
    ck_assert_int_eq(onic_layout_contig(&l, INT64_MIN, UINT64_C(1) << 63), ONIC_LAYOUT_OVERFLOW);
    ck_assert_int_eq(onic_layout_contig(&l, -1, INT64_MAX), ONIC_LAYOUT_OK);
    l = contig(0, 1 << 20);
    before = l;
    ck_assert_int_eq(onic_layout_repeat(&l, UINT64_C(1) << 43, 0), ONIC_LAYOUT_OVERFLOW);
    ck_assert_int_eq(onic_layout_repeat(&l, UINT64_MAX, 0), ONIC_LAYOUT_OVERFLOW);
    ck_assert_int_eq(onic_layout_repeat(&l, UINT64_MAX, -1), ONIC_LAYOUT_OVERFLOW);
    ck_assert_int_eq(onic_layout_repeat(&l, 2, INT64_MAX), ONIC_LAYOUT_OVERFLOW);
    ck_assert_int_eq(onic_layout_repeat(&l, 2, INT64_MIN), ONIC_LAYOUT_OVERFLOW);
    ck_assert_int_eq(onic_layout_repeat(&l, 3, INT64_MIN / 2 - 1), ONIC_LAYOUT_OVERFLOW);
    ck_assert_int_eq(onic_layout_shift(&l, INT64_MAX), ONIC_LAYOUT_OVERFLOW);
    ck_assert_mem_eq(&l, &before, sizeof(l));
    ck_assert_int_eq(onic_layout_repeat(&l, 2, INT64_MAX - (1 << 20)), ONIC_LAYOUT_OK);
    ck_assert_int_eq(l.ub, INT64_MAX);
    ck_assert_int_eq(onic_layout_shift(&l, INT64_MIN), ONIC_LAYOUT_OK);
    ck_assert_int_eq(onic_layout_shift(&l, -1), ONIC_LAYOUT_OVERFLOW);
}
END_TEST

START_TEST(list_overflow_is_refused)
{
    onic_runs_t runs = {0};
    onic_layout_t l;
    onic_layout_t big = contig(INT64_MAX - 8, 8);

    ck_assert_int_eq(onic_runs_add(&runs, (onic_run_t){INT64_MAX, 1, 1, 0}), ONIC_LAYOUT_OVERFLOW);
    ck_assert_int_eq(onic_runs_add(&runs, (onic_run_t){0, 8, UINT64_MAX, 1}), ONIC_LAYOUT_OVERFLOW);
    ck_assert_int_eq(onic_runs_add(&runs, (onic_run_t){0, 1, 3, INT64_MIN}), ONIC_LAYOUT_OVERFLOW);
    ck_assert_int_eq(onic_runs_add_layout(&runs, &big, 1), ONIC_LAYOUT_OVERFLOW);
    ck_assert_uint_eq(runs.n, 0);
    /* Each run is right, and their distance is not. */
    ck_assert_int_eq(onic_runs_add(&runs, (onic_run_t){INT64_MIN, 1, 1, 0}), ONIC_LAYOUT_OK);
    ck_assert_int_eq(onic_runs_add(&runs, (onic_run_t){5, 1, 1, 0}), ONIC_LAYOUT_OK);
    ck_assert_int_eq(onic_layout_from_runs(&l, &runs), ONIC_LAYOUT_OVERFLOW);
    ck_assert_ptr_null(runs.run);
    /* Each run is right, and the sum of their sizes is not. */
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(onic_runs_add(&runs, (onic_run_t){i, 4, INT64_MAX / 8, 0}),
                         ONIC_LAYOUT_OK);
    }
    ck_assert_int_eq(onic_layout_from_runs(&l, &runs), ONIC_LAYOUT_OVERFLOW);
}
END_TEST

START_TEST(huge_layouts_can_be_walked)
{
    onic_layout_t l = contig(-40, 8);
    onic_cursor_t c;
    int64_t offset;
    uint64_t len;

    repeat(&l, UINT64_C(3) << 30, 24);
    repeat(&l, 1000, -16);
    ck_assert_uint_eq(l.size, UINT64_C(24000) << 30);
    onic_cursor_init(&c, &l, (UINT64_C(24) << 30) * 999 + 8 * UINT64_C(0xa0000000) + 3);
    ck_assert(onic_cursor_next(&c, 100, &offset, &len));
    ck_assert_int_eq(offset, -40 - 16 * 999 + 24 * INT64_C(0xa0000000) + 3);
    ck_assert_uint_eq(len, 5);
    onic_cursor_init(&c, &l, l.size - 1);
    ck_assert(onic_cursor_next(&c, 100, &offset, &len));
    ck_assert_int_eq(offset, -40 - 16 * 999 + 24 * ((INT64_C(3) << 30) - 1) + 7);
    ck_assert_uint_eq(len, 1);
    ck_assert(!onic_cursor_next(&c, 100, &offset, &len));
}
END_TEST

/* ---- properties of random layouts ----------------------------------------------------------- */

/** Walks from `pos` in pieces of random length; every byte must be where the reference has it. */
static void check_walk(const onic_layout_t *l, const ref_t *ref, size_t from, size_t pos)
{
    onic_cursor_t c;
    int64_t offset;
    uint64_t len;

    onic_cursor_init(&c, l, pos);
    while (onic_cursor_next(&c, (uint64_t)rnd(1, rnd(0, 1) ? 10 : 1000), &offset, &len)) {
        EXPECT(len > 0 && from + pos + len <= ref->n);
        for (uint64_t i = 0; i < len; i++, pos++) {
            EXPECT(offset + (int64_t)i == ref->at[from + pos]);
        }
        EXPECT(c.pos == pos);
    }
    ck_assert_uint_eq(pos, l->size);
}

static void check_seek(const onic_layout_t *l, const ref_t *ref)
{
    for (int i = 0; i < 20 && ref->n > 0; i++) {
        size_t pos = (size_t)rnd(0, (int64_t)ref->n);
        onic_cursor_t c;
        int64_t offset;
        uint64_t len;

        onic_cursor_init(&c, l, pos);
        EXPECT(onic_cursor_next(&c, 1, &offset, &len) == (pos < ref->n));
        EXPECT(pos == ref->n || offset == ref->at[pos]);
    }
}

static void check_form(const onic_layout_t *l)
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

static void check_against_reference(const onic_layout_t *l, const ref_t *ref)
{
    ck_assert_uint_eq(l->size, ref->n);
    ck_assert_int_eq(l->lb, ref_low(ref));
    ck_assert_int_eq(l->ub, ref_high(ref));
    check_form(l);
    check_walk(l, ref, 0, 0);
    check_seek(l, ref);
    check_walk(l, ref, 0, (size_t)rnd(0, (int64_t)ref->n));
}

static void check_wire(const onic_layout_t *l, const ref_t *ref)
{
    uint8_t buf[ONIC_LAYOUT_ENCODED_MAX];
    onic_layout_t back;
    size_t len;
    size_t used;

    if (l->nruns > 0) {
        ck_assert_int_eq(onic_layout_encode(l, buf, sizeof(buf), &len), ONIC_LAYOUT_NO_SPACE);
        return;
    }
    ck_assert_int_eq(onic_layout_encode(l, buf, sizeof(buf), &len), ONIC_LAYOUT_OK);
    ck_assert_int_eq(onic_layout_decode(&back, buf, sizeof(buf), &used), ONIC_LAYOUT_OK);
    ck_assert_uint_eq(used, len);
    check_against_reference(&back, ref);
    for (size_t cut = 0; cut < len; cut++) {
        EXPECT(onic_layout_encode(l, buf, cut, &used) == ONIC_LAYOUT_NO_SPACE);
        EXPECT(onic_layout_decode(&back, buf, cut, &used) == ONIC_LAYOUT_BAD_ENCODING);
    }
}

/** Slices of random size from a random position to the end, each decoded and walked. */
static void check_slices(const onic_layout_t *l, const ref_t *ref, uint64_t granule)
{
    size_t pos = granule * (size_t)rnd(0, (int64_t)(ref->n / granule));
    onic_cursor_t c;
    uint8_t buf[1024];

    onic_cursor_init(&c, l, pos);
    while (pos < ref->n) {
        size_t cap = (size_t)rnd(rnd(0, 3) ? 200 : 40, sizeof(buf));
        uint64_t max = (uint64_t)rnd((int64_t)granule, rnd(0, 1) ? 100 : 5000) + granule;
        onic_layout_status_t status;
        onic_layout_t slice;
        onic_cursor_t fresh;
        uint64_t data;
        size_t len;
        size_t used;

        status = onic_layout_encode_slice(&c, max, granule, buf, cap, &len, &data);
        if (status == ONIC_LAYOUT_NO_SPACE && granule > 1) {
            /* A granule of many scattered bytes may really need more. */
            ck_assert_uint_eq(c.pos, pos);
            return;
        }
        EXPECT(status == ONIC_LAYOUT_OK);
        EXPECT(len <= cap && data > 0 && data <= max && data % granule == 0);
        EXPECT(onic_layout_decode(&slice, buf, len, &used) == ONIC_LAYOUT_OK);
        EXPECT(used == len && slice.size == data);
        check_walk(&slice, ref, pos, 0);
        onic_layout_fini(&slice);
        pos += data;
        onic_cursor_init(&fresh, l, pos);
        EXPECT(memcmp(&c, &fresh, sizeof(c)) == 0);
    }
}

static void check_tree(tree_t *t)
{
    onic_layout_t copy;

    check_against_reference(&t->l, &t->ref);
    check_wire(&t->l, &t->ref);
    if (t->ref.n < 3000) {
        check_slices(&t->l, &t->ref, 1);
        for (uint64_t granule = 2; granule <= 16; granule++) {
            if (t->ref.n % granule == 0) {
                check_slices(&t->l, &t->ref, granule);
                break;
            }
        }
    }
    ck_assert_int_eq(onic_layout_dup(&copy, &t->l), ONIC_LAYOUT_OK);
    onic_layout_fini(&t->l);
    check_walk(&copy, &t->ref, 0, 0);
    onic_layout_fini(&copy);
    tree_free(t);
}

START_TEST(random_trees)
{
    unsigned lists = 0;
    unsigned levels[ONIC_LAYOUT_MAX_LEVELS + 1] = {0};

    for (int i = 0; i < TREES; i++) {
        tree_t t = tree_random((unsigned)rnd(0, DEPTH), MOST);

        lists += t.l.nruns > 0;
        levels[t.l.nlevels]++;
        check_tree(&t);
    }
    /* The generator must reach both forms and deep ones, or this test says little. */
    ck_assert_uint_gt(lists, TREES / 20);
    ck_assert_uint_lt(lists, TREES / 2);
    ck_assert_uint_gt(levels[4] + levels[5] + levels[6], TREES / 100);
}
END_TEST

START_TEST(trees_deeper_than_the_levels)
{
    for (int i = 0; i < 40; i++) {
        tree_t t = tree_block(rnd(-9, 9), (uint64_t)rnd(1, 3));

        for (int depth = 0; depth < 11; depth++) {
            tree_repeat(&t, 2, (t.l.ub - t.l.lb) + rnd(1, 9));
        }
        check_tree(&t);
    }
}
END_TEST

/* ---- slices of special shapes --------------------------------------------------------------- */

/** MPI_SHORT_INT: two bytes, a gap, four bytes; elements of six must not be torn. */
START_TEST(slices_keep_elements_whole)
{
    tree_t t = tree_block(0, 2);
    tree_t second = tree_block(4, 4);
    onic_layout_t slice;
    onic_cursor_t c;
    uint8_t buf[64];
    uint64_t data;
    size_t len;
    size_t used;

    tree_join(&t, &second, 0);
    tree_repeat(&t, 500, 8);
    onic_cursor_init(&c, &t.l, 0);
    /* Whole passes travel as a repeated list: a few bytes for 496 elements. */
    ck_assert_int_eq(onic_layout_encode_slice(&c, 2979, 6, buf, sizeof(buf), &len, &data),
                     ONIC_LAYOUT_OK);
    ck_assert_uint_eq(data, 2976);
    ck_assert_uint_lt(len, 16);
    ck_assert_int_eq(onic_layout_decode(&slice, buf, len, &used), ONIC_LAYOUT_OK);
    ck_assert_uint_eq(slice.nruns, 2);
    check_walk(&slice, &t.ref, 0, 0);
    onic_layout_fini(&slice);
    /* Not one element fits. */
    ck_assert_int_eq(onic_layout_encode_slice(&c, 5, 6, buf, sizeof(buf), &len, &data),
                     ONIC_LAYOUT_NO_SPACE);
    ck_assert_int_eq(onic_layout_encode_slice(&c, 100, 6, buf, 3, &len, &data),
                     ONIC_LAYOUT_NO_SPACE);
    ck_assert_uint_eq(c.pos, 2976);
    for (int i = 0; i < 50; i++) {
        check_slices(&t.l, &t.ref, 6);
    }
    tree_free(&t);
}
END_TEST

START_TEST(slices_of_strides_stay_small)
{
    onic_layout_t l = contig(0, 8);
    onic_layout_t slice;
    onic_cursor_t c;
    uint8_t buf[64];
    uint64_t data;
    size_t len;
    size_t used;

    repeat(&l, 10, 16);
    repeat(&l, UINT64_C(1) << 40, 4096);
    onic_cursor_init(&c, &l, 24);
    /* To the end of the row first, then as many rows as are asked for. */
    ck_assert_int_eq(onic_layout_encode_slice(&c, 1 << 20, 1, buf, sizeof(buf), &len, &data),
                     ONIC_LAYOUT_OK);
    ck_assert_uint_eq(data, 56);
    ck_assert_int_eq(onic_layout_encode_slice(&c, 1 << 20, 16, buf, sizeof(buf), &len, &data),
                     ONIC_LAYOUT_OK);
    ck_assert_uint_eq(data, (1 << 20) / 80 * 80);
    ck_assert_int_eq(onic_layout_decode(&slice, buf, len, &used), ONIC_LAYOUT_OK);
    ck_assert_uint_eq(slice.nlevels, 2);
    ck_assert_int_eq(slice.lb, 4096);
    onic_cursor_init(&c, &l, l.size);
    ck_assert_int_eq(onic_layout_encode_slice(&c, 1, 1, buf, sizeof(buf), &len, &data),
                     ONIC_LAYOUT_OK);
    ck_assert_uint_eq(data, 0);
    ck_assert_int_eq(onic_layout_decode(&slice, buf, len, &used), ONIC_LAYOUT_OK);
    check_empty(&slice);
}
END_TEST

START_TEST(largest_encoding_fits)
{
    onic_layout_t l = contig(INT64_MIN, 1);
    uint8_t buf[ONIC_LAYOUT_ENCODED_MAX];
    size_t len;
    size_t used;
    onic_layout_t back;

    for (int i = 0; i < ONIC_LAYOUT_MAX_LEVELS; i++) {
        repeat(&l, 127, INT64_MAX / 1024 - i * 1000);
    }
    ck_assert_int_eq(onic_layout_encode(&l, buf, sizeof(buf), &len), ONIC_LAYOUT_OK);
    ck_assert_int_eq(onic_layout_decode(&back, buf, len, &used), ONIC_LAYOUT_OK);
    ck_assert_mem_eq(&back, &l, sizeof(l));
}
END_TEST

/* ---- decoding what nobody sane has sent ----------------------------------------------------- */

#define REFUSED(...)                                                                               \
    do {                                                                                           \
        const uint8_t bytes[] = {__VA_ARGS__};                                                     \
        onic_layout_t got;                                                                         \
        size_t used;                                                                               \
                                                                                                   \
        ck_assert_int_eq(onic_layout_decode(&got, bytes, sizeof(bytes), &used),                    \
                         ONIC_LAYOUT_BAD_ENCODING);                                                \
    } while (0)

#define ACCEPTED(data_bytes, ...)                                                                  \
    do {                                                                                           \
        const uint8_t bytes[] = {__VA_ARGS__};                                                     \
        onic_layout_t got;                                                                         \
        size_t used;                                                                               \
                                                                                                   \
        ck_assert_int_eq(onic_layout_decode(&got, bytes, sizeof(bytes), &used), ONIC_LAYOUT_OK);   \
        ck_assert_uint_eq(used, sizeof(bytes));                                                    \
        ck_assert_uint_eq(got.size, data_bytes);                                                   \
        onic_layout_fini(&got);                                                                    \
    } while (0)

#define MAX_UNSIGNED 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01
#define MAX_SIGNED   0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01
#define MAX_SIZE     0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f

START_TEST(bad_stride_forms_are_refused)
{
    REFUSED(0x03);
    REFUSED(0x10);                     /* an empty layout with a level */
    REFUSED(0x01, 0x00, 0x00);         /* a block of no bytes */
    REFUSED(0x01, 0x80, 0x00, 0x08);   /* an offset with a byte that adds nothing */
    REFUSED(0x01, 0x00, 0x88, 0x00);   /* the same in the block */
    REFUSED(0x01, 0x00, MAX_UNSIGNED); /* a block above INT64_MAX */
    REFUSED(0x01, MAX_SIGNED, 0x01);   /* an end above INT64_MAX */
    REFUSED(0x01, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x03, 0x01);
    REFUSED(0x01, 0x00, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01);
    REFUSED(0x11, 0x00, 0x08, 0x00, 0x20);             /* a level of no passes */
    REFUSED(0x11, 0x00, 0x08, 0x01, 0x20);             /* of one pass */
    REFUSED(0x11, 0x00, 0x08, 0x03, 0x10);             /* of touching blocks */
    REFUSED(0x21, 0x00, 0x08, 0x03, 0x20, 0x02, 0x60); /* that continues the one below */
    REFUSED(0x11, 0x00, 0x08, MAX_UNSIGNED, 0x00);     /* a size that overflows */
    REFUSED(0x11, 0x00, 0x02, MAX_SIZE, 0x00);
    REFUSED(0x11, 0x00, 0x01, 0x03, MAX_SIGNED); /* an offset that overflows */
    REFUSED(0x91, 0x00, 0x01, 2, 6, 2, 20, 2, 60, 2, 0x80, 2, 2, 0x80, 4, 2, 0x80, 8, 2, 0x80, 16,
            2, 0x80, 32, 2, 0x80, 64); /* nine levels */
    ACCEPTED(0, 0x00);
    ACCEPTED(8, 0x01, 0x03, 0x08);
    ACCEPTED(24, 0x11, 0x00, 0x08, 0x03, 0x20);
    ACCEPTED(INT64_MAX, 0x01, 0x00, MAX_SIZE);
    ACCEPTED(INT64_MAX, 0x11, 0x00, 0x01, MAX_SIZE, 0x00);
}
END_TEST

START_TEST(bad_list_forms_are_refused)
{
    REFUSED(0x02);
    REFUSED(0x02, 0x02, 0x00, 0x04);                   /* no last run */
    REFUSED(0x02, 0x1a, 0x00, 0x04);                   /* an unknown flag */
    REFUSED(0x02, 0x0b, 0x00);                         /* nothing to be the same as */
    REFUSED(0x02, 0x0a, 0x00, 0x00);                   /* no bytes */
    REFUSED(0x02, 0x02, 0x00, 0x04, 0x0a, 0x20, 0x04); /* said to differ, and does not */
    REFUSED(0x02, 0x08, 0x00, 0x04, 0x01, 0x10);       /* one block that is not flagged */
    REFUSED(0x02, 0x08, 0x00, 0x04, 0x00, 0x10);       /* no blocks */
    REFUSED(0x02, 0x08, 0x00, 0x04, 0x03, 0x08);       /* touching blocks */
    REFUSED(0x02, 0x0e, 0x00, 0x04);                   /* one, and as before */
    REFUSED(0x02, 0x02, 0x00, 0x04, 0x0d, 0x20);       /* repeats of a single block */
    REFUSED(0x02, 0x00, 0x00, 0x04, 0x03, 0x20, 0x09, 0x20, 0x03, 0x20);
    REFUSED(0x02, 0x02, MAX_SIGNED, 0x04);
    REFUSED(0x02, 0x02, 0x00, 0x04, 0x0b, MAX_SIGNED);
    REFUSED(0x02, 0x02, 0x02, 0x04, 0x0b, MAX_SIGNED);
    REFUSED(0x12, 0x02, 0x00, 0x02, 0x0a, 0x08, 0x04, 0x01, 0x10); /* a level of one pass */
    ACCEPTED(4, 0x02, 0x0a, 0x00, 0x04);
    ACCEPTED(8, 0x02, 0x02, 0x00, 0x04, 0x0b, 0x20);
    ACCEPTED(12, 0x02, 0x08, 0x00, 0x04, 0x03, 0x20);
    ACCEPTED(24, 0x02, 0x00, 0x00, 0x04, 0x03, 0x20, 0x0d, 0x03);
    ACCEPTED(30, 0x12, 0x02, 0x00, 0x02, 0x0a, 0x08, 0x04, 0x05, 0x10);
}
END_TEST

static Suite *layout_suite(void)
{
    Suite *s = suite_create("layout");
    TCase *tc = tcase_create("layout");

    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, touching_blocks_merge);
    tcase_add_test(tc, continuing_levels_merge);
    tcase_add_test(tc, order_forbids_merging);
    tcase_add_test(tc, zero_stride_repeats_bytes);
    tcase_add_test(tc, empty_layouts);
    tcase_add_test(tc, levels_are_limited);
    tcase_add_test(tc, lists_find_regularity);
    tcase_add_test(tc, lists_merge_runs);
    tcase_add_test(tc, overflow_is_refused);
    tcase_add_test(tc, list_overflow_is_refused);
    tcase_add_test(tc, huge_layouts_can_be_walked);
    tcase_add_test(tc, random_trees);
    tcase_add_test(tc, trees_deeper_than_the_levels);
    tcase_add_test(tc, slices_keep_elements_whole);
    tcase_add_test(tc, slices_of_strides_stay_small);
    tcase_add_test(tc, largest_encoding_fits);
    tcase_add_test(tc, bad_stride_forms_are_refused);
    tcase_add_test(tc, bad_list_forms_are_refused);
    suite_add_tcase(s, tc);
    return s;
}

int main(void)
{
    SRunner *runner = srunner_create(layout_suite());
    int failed;

    tree_seed();
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}
