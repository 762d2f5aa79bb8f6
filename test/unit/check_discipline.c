/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * How accumulates exclude each other: which locks bytes have, against a loop over single bytes; and
 * what part of memory a piece of a layout reaches.
 */
#include "osc_nicstride/protocol/discipline.h"

#include "test/unit/unit.h"

/* ---- stripes --------------------------------------------------------------------------------- */

START_TEST(lengths)
{
    const uint8_t stripe = nicstride_stripe(1 << 20, 0);

    /* Without a wish the window has all locks. */
    UNIT_CHECK(stripe <= 15 && (UINT64_C(64) << stripe) >= 1 << 20);
    /* Small ones have no lock for less than a line, very large ones several stripes for a lock. */
    UNIT_CHECK(nicstride_stripe(8, 0) == 6 && nicstride_stripe(0, 0) == 6);
    UNIT_CHECK(nicstride_stripe(UINT64_C(1) << 40, 0) == 20);
    /* A wish for single elements, and for many at once. */
    UNIT_CHECK(nicstride_stripe(1 << 20, 1) == 6 && nicstride_stripe(1 << 20, 64) == 6);
    UNIT_CHECK(nicstride_stripe(1 << 20, 4096) == 12 && nicstride_stripe(1 << 20, 4097) == 13);
    UNIT_CHECK(nicstride_stripe(1 << 20, NICSTRIDE_GRANULARITY_MAX) == 30);
    /* Own memory has one lock, whatever its addresses are. */
    UNIT_CHECK(nicstride_stripes(NICSTRIDE_STRIPE_OF_ONE, 5, INT64_MAX) == 1);
}
END_TEST

START_TEST(stripes_of_bytes)
{
    unit_random_t r = {unit_seed()};

    for (int round = 0; round < 3000; round++) {
        const uint8_t stripe = (uint8_t)(6 + unit_below(&r, 4));
        const uint64_t from = unit_below(&r, 1 << 16);
        const uint64_t to = from + 1 + unit_below(&r, unit_once_in(&r, 3) ? 100 : 1 << 15);
        nicstride_stripes_t expected = 0;

        for (uint64_t i = from; i < to; i++)
            expected |= UINT64_C(1) << (i >> stripe) % NICSTRIDE_STRIPES;
        UNIT_CHECK(nicstride_stripes(stripe, from, to) == expected);
    }
}
END_TEST

/* ---- what a piece reaches -------------------------------------------------------------------- */

static void random_layout(unit_random_t *r, onic_layout_t *l)
{
    const uint64_t levels = unit_below(r, 4);

    if (unit_once_in(r, 4)) {
        onic_runs_t runs = {0};
        int64_t at = 0;

        for (uint64_t left = 1 + unit_below(r, 20); left > 0; left--) {
            at += (int64_t)unit_below(r, 90) - 30;
            UNIT_CHECK(onic_runs_add(&runs, (onic_run_t){at, 1 + unit_below(r, 20), 1, 0}) ==
                       ONIC_LAYOUT_OK);
        }
        UNIT_CHECK(onic_layout_from_runs(l, &runs, 3) == ONIC_LAYOUT_OK);
    } else {
        UNIT_CHECK(onic_layout_contig(l, (int64_t)unit_below(r, 50) - 20, 1 + unit_below(r, 40)) ==
                   ONIC_LAYOUT_OK);
    }
    for (uint64_t i = 0; i < levels; i++)
        UNIT_CHECK(onic_layout_repeat(l, 1 + unit_below(r, 6), (int64_t)unit_below(r, 800) - 400) ==
                   ONIC_LAYOUT_OK);
}

START_TEST(reach_of_pieces)
{
    unit_random_t r = {unit_seed()};
    unsigned exact = 0, regular = 0;

    for (int round = 0; round < 3000; round++) {
        int64_t from, to, low = INT64_MAX, high = INT64_MIN, at;
        onic_layout_t l;
        onic_cursor_t c;
        uint64_t n;

        random_layout(&r, &l);
        const uint64_t pos = unit_below(&r, l.size), len = 1 + unit_below(&r, l.size - pos);
        nicstride_reach_of(&l, pos, len, &from, &to);
        onic_cursor_init(&c, &l, pos);
        for (uint64_t left = len; left > 0; left -= n) {
            UNIT_CHECK(onic_cursor_next(&c, left, &at, &n));
            low = at < low ? at : low;
            high = at + (int64_t)n > high ? at + (int64_t)n : high;
        }
        UNIT_CHECK(from <= low && high <= to && from >= l.lb && to <= l.ub);
        if (l.nruns == 0) {
            regular++;
            exact += from == low && to == high;
            UNIT_CHECK(l.nlevels > 0 || (from == low && to == high));
        }
        onic_layout_fini(&l);
    }
    /* What is not exact begins or ends inside a level. */
    ck_assert_uint_gt(exact, regular / 3);
}
END_TEST

START_TEST(alignment)
{
    unit_random_t r = {unit_seed()};
    unsigned aligned = 0;

    for (int round = 0; round < 6000; round++) {
        const uint64_t size = UINT64_C(1) << unit_below(&r, 4), base = unit_below(&r, 4) * 4;
        bool all = true;
        onic_layout_t l;
        onic_cursor_t c;
        int64_t at;
        uint64_t n;

        random_layout(&r, &l);
        onic_cursor_init(&c, &l, 0);
        while (onic_cursor_next(&c, l.size, &at, &n))
            all = all && (base + (uint64_t)at) % size == 0 && n % size == 0;
        const bool said = onic_is_aligned(&l, base, size);
        UNIT_CHECK(all || !said);
        aligned += said && size > 1;
        onic_layout_fini(&l);
    }
    ck_assert_uint_gt(aligned, 10);
}
END_TEST

int main(void)
{
    return UNIT_RUN("discipline", UNIT_ONCE(lengths), UNIT_ONCE(stripes_of_bytes),
                    UNIT_ONCE(reach_of_pieces), UNIT_ONCE(alignment));
}
