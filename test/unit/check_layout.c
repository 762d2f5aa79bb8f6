/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Layouts against a list of byte offsets: building and walking. */
#include "test/unit/layout_check.h"
#include "test/unit/unit.h"

static void check_level(const onic_layout_t *l, uint32_t i, uint64_t count, int64_t stride)
{
    ck_assert_uint_lt(i, l->nlevels);
    ck_assert_uint_eq(l->level[i].count, count);
    ck_assert_int_eq(l->level[i].stride, stride);
}

/* ---- normal form ---------------------------------------------------------------------------- */

START_TEST(empty_layouts)
{
    onic_layout_t l = contig(77, 0);
    onic_runs_t runs = {0};

    check_empty(&l);
    repeat(&l, UINT64_MAX, INT64_MAX);
    check_empty(&l);
    l = contig(3, 9);
    repeat(&l, 4, 20);
    repeat(&l, 0, 5);
    check_empty(&l);
    ck_assert_int_eq(onic_runs_add(&runs, (onic_run_t){5, 0, 7, 8}), ONIC_LAYOUT_OK);
    ck_assert_int_eq(onic_runs_add(&runs, (onic_run_t){5, 7, 0, 8}), ONIC_LAYOUT_OK);
    ck_assert_int_eq(onic_runs_add_layout(&runs, &l, 5), ONIC_LAYOUT_OK);
    ck_assert_int_eq(onic_layout_from_runs(&l, &runs, 0), ONIC_LAYOUT_OK);
    check_empty(&l);
}
END_TEST

START_TEST(levels_are_limited)
{
    onic_layout_t l = contig(0, 1);
    onic_layout_t before;

    for (int i = 0; i < ONIC_LAYOUT_MAX_LEVELS; i++)
        repeat(&l, 2, (int64_t)3 << (2 * i));
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
    ck_assert_int_eq(onic_layout_from_runs(&l, &runs, 0), ONIC_LAYOUT_OK);
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
    ck_assert_int_eq(onic_layout_from_runs(&l, &runs, 0), ONIC_LAYOUT_OK);
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
    ck_assert_mem_eq(&l, &before, sizeof(l));
    ck_assert_int_eq(onic_layout_repeat(&l, 2, INT64_MAX - (1 << 20)), ONIC_LAYOUT_OK);
    ck_assert_int_eq(l.ub, INT64_MAX);
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
    ck_assert_int_eq(onic_layout_from_runs(&l, &runs, 0), ONIC_LAYOUT_OVERFLOW);
    ck_assert_ptr_null(runs.run);
    /* Each run is right, and the sum of their sizes is not. */
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(onic_runs_add(&runs, (onic_run_t){i, 4, INT64_MAX / 8, 0}),
                         ONIC_LAYOUT_OK);
    }
    ck_assert_int_eq(onic_layout_from_runs(&l, &runs, 0), ONIC_LAYOUT_OVERFLOW);
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

static struct {
    unsigned lists;
    unsigned levels[ONIC_LAYOUT_MAX_LEVELS + 1];
} seen;

/** May memory be cut before packed byte `at`? */
static bool may_cut(const tree_t *t, uint64_t base, size_t at)
{
    onic_cursor_t c;

    onic_cursor_init(&c, &t->l, at);
    return at == t->ref.n || c.in_block == 0 || t->ref.at[at] != t->ref.at[at - 1] + 1 ||
           (base + (uint64_t)t->ref.at[at]) % 8 == 0;
}

/** No other place would do better. */
static void check_whole(const tree_t *t)
{
    for (int i = 0; i < 20 && t->ref.n > 0; i++) {
        const uint64_t base = (uint64_t)rnd(0, 15);
        const size_t pos = (size_t)rnd(0, (int64_t)t->ref.n - 1);
        const size_t len = (size_t)rnd(1, rnd(0, 1) ? 20 : 1000);
        const size_t n = onic_layout_whole(&t->l, base, pos, len);
        size_t best = len < t->ref.n - pos ? len : t->ref.n - pos;

        UNIT_CHECK(n > 0 && n <= best);
        while (best > 0 && !may_cut(t, base, pos + best))
            best--;
        UNIT_CHECK(n == (best > 0 ? best : len));
    }
}

/** The first bytes of a layout are those of its reference. */
static void check_cut(const tree_t *t)
{
    const int64_t all = (int64_t)t->ref.n;
    const int64_t level = t->l.nlevels > 0 ? all / (int64_t)t->l.level[t->l.nlevels - 1].count : 1;
    const int64_t sizes[] = {0, rnd(0, all), rnd(0, all / level) * level, level, all + rnd(0, 9)};

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]) && level > 0; i++) {
        const ref_t first = {.at = t->ref.at, .n = (size_t)(sizes[i] < all ? sizes[i] : all)};
        onic_layout_t copy;

        onic_layout_dup(&copy, &t->l);
        ck_assert_int_eq(onic_layout_cut(&copy, (uint64_t)sizes[i]), ONIC_LAYOUT_OK);
        check_against_reference(&copy, &first);
        onic_layout_fini(&copy);
    }
}

/* Regular layouts stay so where they can, and do not become a list of all their blocks. */
START_TEST(cuts_are_short)
{
    onic_layout_t l = contig(16, 8);

    repeat(&l, 1000000, 24);
    repeat(&l, 500, 100000000);
    ck_assert_int_eq(onic_layout_cut(&l, l.size / 500 * 3 + 8 * 7 + 5), ONIC_LAYOUT_OK);
    ck_assert_uint_eq(l.nruns, 5);
    ck_assert_int_eq(l.ub, 300000000 + 16 + 24 * 7 + 5);
    onic_layout_fini(&l);
    l = contig(16, 8);
    repeat(&l, 1000000, 24);
    repeat(&l, 500, 100000000);
    ck_assert_int_eq(onic_layout_cut(&l, l.size / 500 * 3), ONIC_LAYOUT_OK);
    ck_assert_uint_eq(l.nruns, 0);
    ck_assert_uint_eq(l.nlevels, 2);
    ck_assert_int_eq(onic_layout_cut(&l, 80), ONIC_LAYOUT_OK);
    check_level(&l, 0, 10, 24);
    ck_assert_int_eq(l.ub, 16 + 9 * 24 + 8);
    ck_assert_int_eq(onic_layout_cut(&l, 3), ONIC_LAYOUT_OK);
    ck_assert(onic_layout_is_contig(&l));
    ck_assert_int_eq(l.lb, 16);
    ck_assert_int_eq(l.ub, 19);
}
END_TEST

static void check_tree(tree_t *t)
{
    onic_layout_t copy;

    seen.lists += t->l.nruns > 0;
    seen.levels[t->l.nlevels]++;
    check_against_reference(&t->l, &t->ref);
    check_whole(t);
    check_cut(t);
    onic_layout_dup(&copy, &t->l);
    onic_layout_fini(&t->l);
    check_walk(&copy, &t->ref, 0, 0);
    onic_layout_fini(&copy);
    tree_free(t);
}

START_TEST(random_trees)
{
    memset(&seen, 0, sizeof(seen));
    check_random_trees(check_tree);
    /* The generator must reach both forms and deep ones, or this test says little. */
    ck_assert_uint_gt(seen.lists, TREES / 20);
    ck_assert_uint_lt(seen.lists, TREES / 2);
    ck_assert_uint_gt(seen.levels[4] + seen.levels[5] + seen.levels[6], TREES / 100);
}
END_TEST

START_TEST(trees_deeper_than_the_levels)
{
    check_deep_trees(check_tree);
}
END_TEST

int main(void)
{
    tree_seed();
    return UNIT_RUN("layout", UNIT_ONCE(empty_layouts), UNIT_ONCE(levels_are_limited),
                    UNIT_ONCE(lists_find_regularity), UNIT_ONCE(lists_merge_runs),
                    UNIT_ONCE(overflow_is_refused), UNIT_ONCE(list_overflow_is_refused),
                    UNIT_ONCE(huge_layouts_can_be_walked), UNIT_ONCE(cuts_are_short),
                    UNIT_ONCE(random_trees), UNIT_ONCE(trees_deeper_than_the_levels));
}
