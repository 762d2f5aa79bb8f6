/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Covers of sieving: every byte is read exactly once, inside the layout's extent. */
#include "unit.h"

#include "osc_nicstride/methods/sieve.h"

static unit_random_t rng;

static void random_layout(onic_layout_t *l)
{
    unsigned levels = (unsigned)unit_below(&rng, 4);

    do {
        ck_assert_int_eq(
            onic_layout_contig(l, (int64_t)unit_below(&rng, 1000) - 500, 1 + unit_below(&rng, 100)),
            ONIC_LAYOUT_OK);
        for (unsigned k = 0; k < levels; k++) {
            uint64_t extent = (uint64_t)(l->ub - l->lb);
            int64_t stride = (int64_t)(extent + unit_below(&rng, k == 0 ? 64 : 9000));

            ck_assert_int_eq(onic_layout_repeat(l, 1 + unit_below(&rng, 12),
                                                unit_below(&rng, 2) ? stride : -stride),
                             ONIC_LAYOUT_OK);
        }
    } while (l->size == 0);
}

/** Walks a layout by covers; the packed bytes of each must lie in it. */
static void check_walk(const onic_layout_t *l, uint64_t piece, uint64_t gap)
{
    onic_cursor_t c;
    uint64_t pos = 0, reads = 0;

    onic_cursor_init(&c, l, 0);
    while (pos < l->size) {
        nicstride_cover_t cover = nicstride_sieve_next(&c, piece, gap);
        uint64_t left = cover.bytes;

        UNIT_CHECK(cover.bytes > 0 && cover.bytes <= l->size - pos);
        UNIT_CHECK(cover.len <= piece);
        UNIT_CHECK(cover.lo >= l->lb);
        UNIT_CHECK(cover.lo + (int64_t)cover.len <= l->ub);
        while (left > 0) {
            int64_t offset;
            uint64_t n;

            UNIT_CHECK(onic_cursor_next(&c, left, &offset, &n));
            UNIT_CHECK(offset >= cover.lo);
            UNIT_CHECK(offset + (int64_t)n <= cover.lo + (int64_t)cover.len);
            left -= n;
        }
        pos += cover.bytes;
        reads++;
        UNIT_CHECK(reads <= l->size);
    }
    ck_assert_uint_eq(pos, l->size);
}

START_TEST(covers_hold_their_bytes)
{
    rng.state = unit_seed();
    for (int i = 0; i < 5000; i++) {
        onic_layout_t l;

        random_layout(&l);
        check_walk(&l, 1 + unit_below(&rng, unit_below(&rng, 2) ? 200 : 20000),
                   unit_below(&rng, 5000));
    }
}
END_TEST

static nicstride_cover_t next_at(const onic_layout_t *l, uint64_t pos, uint64_t piece, uint64_t gap)
{
    onic_cursor_t c;

    onic_cursor_init(&c, l, pos);
    return nicstride_sieve_next(&c, piece, gap);
}

START_TEST(dense_vector_is_read_in_large_pieces)
{
    onic_layout_t l;
    nicstride_cover_t c;

    onic_layout_contig(&l, 0, 8);
    onic_layout_repeat(&l, 1000, 16);
    c = next_at(&l, 0, 1 << 20, NICSTRIDE_SIEVE_GAP);
    ck_assert_uint_eq(c.bytes, 8000);
    ck_assert_uint_eq(c.len, 16 * 999 + 8);
}
END_TEST

START_TEST(large_gaps_are_not_read)
{
    onic_layout_t l;
    nicstride_cover_t c;

    onic_layout_contig(&l, 0, 64);
    onic_layout_repeat(&l, 10, 1 << 20);
    for (uint64_t pos = 0; pos < 640; pos += 64) {
        c = next_at(&l, pos, 1 << 30, NICSTRIDE_SIEVE_GAP);
        ck_assert_int_eq(c.lo, (int64_t)(pos / 64) << 20);
        ck_assert_uint_eq(c.len, 64);
        ck_assert_uint_eq(c.bytes, 64);
    }
}
END_TEST

/** Rows of a matrix, each of several blocks, are read together up to the length of a piece. */
START_TEST(rows_are_read_together)
{
    onic_layout_t l;
    nicstride_cover_t c;

    onic_layout_contig(&l, 0, 8);
    onic_layout_repeat(&l, 10, 16);
    onic_layout_repeat(&l, 100, 200);
    c = next_at(&l, 0, 1000, NICSTRIDE_SIEVE_GAP);
    ck_assert_uint_eq(c.len, 4 * 200 + 9 * 16 + 8);
    ck_assert_uint_eq(c.bytes, 400);
    onic_layout_contig(&l, 0, 8);
    onic_layout_repeat(&l, 10, 16);
    onic_layout_repeat(&l, 100, -200);
    c = next_at(&l, 0, 1000, NICSTRIDE_SIEVE_GAP);
    ck_assert_int_eq(c.lo, -4 * 200);
    ck_assert_uint_eq(c.bytes, 400);
}
END_TEST

START_TEST(long_blocks_are_cut)
{
    onic_layout_t l;
    nicstride_cover_t c;

    onic_layout_contig(&l, 100, 10000);
    c = next_at(&l, 0, 4096, 0);
    ck_assert_int_eq(c.lo, 100);
    ck_assert_uint_eq(c.bytes, 4096);
    c = next_at(&l, 8192, 4096, 0);
    ck_assert_int_eq(c.lo, 8292);
    ck_assert_uint_eq(c.bytes, 10000 - 8192);
}
END_TEST

int main(void)
{
    return UNIT_RUN("sieve", UNIT_ONCE(covers_hold_their_bytes),
                    UNIT_ONCE(dense_vector_is_read_in_large_pieces),
                    UNIT_ONCE(large_gaps_are_not_read), UNIT_ONCE(rows_are_read_together),
                    UNIT_ONCE(long_blocks_are_cut));
}
