/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Layouts as strided keys: fields of known ones, and what random ones expand to. */
#include "common/verbs/strided.h"
#include "test/unit/layout_check.h"

enum { ROUNDS = 20000 };

static void check_piece(const onic_strided_t *d, int i, int64_t offset, uint32_t bytes,
                        uint32_t skip)
{
    ck_assert_int_eq(d->piece[i].offset, offset);
    ck_assert_uint_eq(d->piece[i].bytes, bytes);
    ck_assert_uint_eq(d->piece[i].skip, skip);
}

START_TEST(a_column)
{
    onic_layout_t l = contig(40, 8);
    onic_strided_t d;

    repeat(&l, 1000, 8000);
    ck_assert(onic_strided_describe(&d, &l));
    ck_assert(d.repeats == 1000 && d.n == 1);
    check_piece(&d, 0, 40, 8, 7992);
}
END_TEST

/** Three blocks backwards in each of 70 planes. */
START_TEST(few_blocks_in_a_row)
{
    onic_layout_t l = contig(600, 16);
    onic_strided_t d;

    repeat(&l, 3, -100);
    repeat(&l, 70, 65535);
    ck_assert(onic_strided_describe(&d, &l));
    ck_assert(d.repeats == 70 && d.n == 3);
    check_piece(&d, 0, 600, 16, 65519);
    check_piece(&d, 1, 500, 16, 65519);
    check_piece(&d, 2, 400, 16, 65519);
}
END_TEST

static bool fits(uint64_t block, uint64_t inner, int64_t inner_stride, uint64_t count,
                 int64_t stride)
{
    onic_layout_t l = contig(0, block);
    onic_strided_t d;

    repeat(&l, inner, inner_stride);
    repeat(&l, count, stride);
    return onic_strided_describe(&d, &l);
}

START_TEST(limits)
{
    const uint64_t most = ONIC_STRIDED_PIECES;

    ck_assert(fits(8, 1, 0, 2, 65535) && !fits(8, 1, 0, 2, 65536));
    ck_assert(fits(65534, 1, 0, 2, 65535) && !fits(65536, 1, 0, 2, 70000));
    ck_assert(!fits(8, 1, 0, 2, -16) && !fits(8, 1, 0, 2, 4));
    ck_assert(fits(8, 1, 0, UINT32_MAX, 16) && !fits(8, 1, 0, (uint64_t)UINT32_MAX + 1, 16));
    ck_assert(fits(8, most, 70000, 9, 16) && !fits(8, most + 1, 70000, 9, 16));
    ck_assert(!fits(8, 1, 0, 1, 0));
}
END_TEST

/** A list does not fit, even with a level above that would. */
START_TEST(lists)
{
    onic_runs_t runs = {0};
    onic_layout_t l;
    onic_strided_t d;

    ck_assert_int_eq(onic_runs_add(&runs, (onic_run_t){0, 8, 1, 0}), ONIC_LAYOUT_OK);
    ck_assert_int_eq(onic_runs_add(&runs, (onic_run_t){20, 4, 1, 0}), ONIC_LAYOUT_OK);
    ck_assert_int_eq(onic_layout_from_runs(&l, &runs, 1), ONIC_LAYOUT_OK);
    repeat(&l, 5, 100);
    ck_assert(!onic_strided_describe(&d, &l));
    onic_layout_fini(&l);
}
END_TEST

/** Byte by byte what the key has, repeat by repeat, is what the layout has. */
static void check_bytes(const onic_strided_t *d, const onic_layout_t *l)
{
    onic_cursor_t c;
    int64_t at;
    uint64_t len;

    onic_cursor_init(&c, l, 0);
    for (uint64_t r = 0; r < d->repeats; r++) {
        for (uint32_t i = 0; i < d->n; i++) {
            const onic_strided_piece_t *p = &d->piece[i];

            UNIT_CHECK(p->bytes > 0 && p->bytes + (uint64_t)p->skip <= 65535);
            for (uint32_t k = 0; k < p->bytes; k++) {
                UNIT_CHECK(onic_cursor_next(&c, 1, &at, &len));
                UNIT_CHECK(at == p->offset + (int64_t)(r * (p->bytes + p->skip) + k));
            }
        }
    }
    UNIT_CHECK(!onic_cursor_next(&c, 1, &at, &len));
}

START_TEST(random_layouts)
{
    int described = 0;

    tree_seed();
    for (int round = 0; round < ROUNDS; round++) {
        onic_layout_t l = contig(rnd(-1000, 1000), (uint64_t)rnd(1, 40));
        onic_strided_t d;

        for (int64_t levels = rnd(0, 4); levels > 0; levels--)
            repeat(&l, (uint64_t)rnd(1, 6), rnd(0, 9) == 0 ? rnd(-300, 70000) : rnd(1, 300));
        if (onic_strided_describe(&d, &l)) {
            check_bytes(&d, &l);
            described++;
        }
    }
    ck_assert_int_gt(described, ROUNDS / 4);
}
END_TEST

int main(void)
{
    return UNIT_RUN("strided", UNIT_ONCE(a_column), UNIT_ONCE(few_blocks_in_a_row),
                    UNIT_ONCE(limits), UNIT_ONCE(lists), UNIT_ONCE(random_layouts));
}
