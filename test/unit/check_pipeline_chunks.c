/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Chunk schedules against the series that they stand for. */
#include "common/pipeline/core/schedules.h"

#include <math.h>

#include "test/unit/unit.h"

/** What one chunk may differ from the series by: rounding down to a unit. */
static void check_chunk(uint32_t chunk, double exact, uint32_t unit, uint32_t buffer)
{
    const uint32_t top = buffer - buffer % unit;
    const double high = exact < top ? exact : top;
    const double want = high < unit ? unit : high;

    UNIT_CHECK(chunk % unit == 0 && chunk >= unit && chunk <= buffer);
    UNIT_CHECK(chunk <= want * (1 + 1e-9) && chunk > want * (1 - 1e-9) - unit);
}

START_TEST(follows_the_series)
{
    unit_random_t r = {unit_seed()};

    for (int round = 0; round < 3000; round++) {
        const uint32_t unit = 1 + (uint32_t)unit_below(&r, 100);
        const uint32_t buffer = unit + (uint32_t)unit_below(&r, 100000);
        const double c0 = 1 + (double)unit_below(&r, buffer);
        const double q = 1 + (double)unit_below(&r, 3000) / 1000;
        double exact = c0 < buffer - buffer % unit ? c0 : buffer - buffer % unit;
        onic_schedule_t s;

        onic_schedule_growing(&s, c0, q, unit, buffer);
        for (int i = 0; i < 60; i++) {
            check_chunk(onic_schedule_next(&s), exact, unit, buffer);
            exact *= q;
            exact = exact > buffer - buffer % unit ? buffer - buffer % unit : exact;
        }
    }
}
END_TEST

/* Eq. 7: so many chunks for so many bytes, as long as none fills a buffer. */
START_TEST(number_of_chunks)
{
    const double c0 = 12 << 10, q = 1.5;
    onic_schedule_t s;
    double sum = 0;

    onic_schedule_growing(&s, c0, q, 1, 1U << 28);
    for (int n = 1; n < 20; n++) {
        sum += onic_schedule_next(&s);
        ck_assert_double_eq_tol(log1p(sum / c0 * (q - 1)) / log(q), n, 1e-3);
    }
}
END_TEST

START_TEST(fixed)
{
    onic_schedule_t s;

    onic_schedule_growing(&s, 1000, 1, 64, 4096);
    for (int i = 0; i < 10; i++)
        ck_assert_uint_eq(onic_schedule_next(&s), 960);
    onic_schedule_growing(&s, 1e30, 1, 48, 4096);
    ck_assert_uint_eq(onic_schedule_next(&s), 4080);
}
END_TEST

START_TEST(looks_ahead)
{
    unit_random_t r = {unit_seed() + 1};

    for (int round = 0; round < 3000; round++) {
        const uint32_t buffer = 1 + (uint32_t)unit_below(&r, 5000);
        const unsigned n = (unsigned)unit_below(&r, 64);
        const uint32_t slack = (uint32_t)unit_below(&r, 10);
        onic_schedule_t s, copy;
        uint64_t sum = 0;

        onic_schedule_growing(&s, 1 + (double)unit_below(&r, buffer),
                              1 + (double)unit_below(&r, 3000) / 1000, 1, buffer);
        copy = s;
        for (unsigned i = 0; i < n; i++) {
            const uint32_t chunk = onic_schedule_next(&copy);
            sum += chunk > slack ? chunk - slack : 0;
        }
        UNIT_CHECK(onic_schedule_holds(&s, n, sum, slack));
        UNIT_CHECK(!onic_schedule_holds(&s, n, sum + 1, slack));
        UNIT_CHECK(onic_schedule_holds(&s, n, 0, slack));
    }
}
END_TEST

/* So that a buffer of 32 KiB is full with the fourth. */
START_TEST(of_the_paper)
{
    static const uint32_t chunks[] = {12288, 18432, 27648, 32768, 32768};
    onic_schedule_t s;

    onic_schedule_growing(&s, 12288, 1.5, 64, 32768);
    for (size_t i = 0; i < sizeof(chunks) / sizeof(chunks[0]); i++)
        ck_assert_uint_eq(onic_schedule_next(&s), chunks[i]);
}
END_TEST

/* Listed ones in their order, rounded down and bounded, and then as the last. */
START_TEST(listed)
{
    static const uint32_t size[] = {1000, 63, 9000, 2048},
                          chunks[] = {960, 64, 4096, 2048, 2048, 2048};
    onic_schedule_t s;

    onic_schedule_listed(&s, size, 4, 64, 4096);
    UNIT_CHECK(onic_schedule_holds(&s, 4, 960 + 64 + 4096 + 2048, 0));
    UNIT_CHECK(!onic_schedule_holds(&s, 4, 960 + 64 + 4096 + 2049, 0));
    for (size_t i = 0; i < sizeof(chunks) / sizeof(chunks[0]); i++)
        ck_assert_uint_eq(onic_schedule_next(&s), chunks[i]);
}
END_TEST

/** A link by hand: copies of 2 GB/s, a network of 1. */
static const onic_link_t link_by_hand = {
    .latency = 2000, .gap = 100, .bcopy = 2, .bnet = 1, .chunk = 5000, .growth = 3};

/* Each kind: its first chunks by hand. */
START_TEST(kinds)
{
    static const uint32_t superpipe[] = {16384, 32768, 65536, 65536},
                          measured[] = {4992, 14976, 44992, 65536},
                          constant[] = {65536, 65536, 65536, 65536};
    static const struct {
        onic_schedule_kind_t kind;
        const uint32_t *chunks;
    } rows[] = {{ONIC_SCHEDULE_SUPERPIPE, superpipe},
                {ONIC_SCHEDULE_MEASURED, measured},
                {ONIC_SCHEDULE_CONSTANT, constant},
                /* Without memory for it. */
                {ONIC_SCHEDULE_OPTIMAL, superpipe}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const onic_schedule_choice_t choice = {rows[i].kind, link_by_hand};
        onic_schedule_t s;

        onic_schedule_make(&s, &choice, 1 << 20, 64, 65536, 0, true, NULL);
        for (int k = 0; k < 4; k++)
            ck_assert_uint_eq(onic_schedule_next(&s), rows[i].chunks[k]);
    }
    ck_assert_int_eq(onic_schedule_best(ONIC_SCHEDULE_BEST, true), ONIC_SCHEDULE_CONSTANT);
    ck_assert_int_eq(onic_schedule_best(ONIC_SCHEDULE_BEST, false), ONIC_SCHEDULE_MEASURED);
    ck_assert_int_eq(onic_schedule_best(ONIC_SCHEDULE_OPTIMAL, true), ONIC_SCHEDULE_OPTIMAL);
    for (int k = 0; k < ONIC_SCHEDULES; k++)
        ck_assert_ptr_nonnull(onic_schedule_words[k]);
}
END_TEST

/* Sub-blocks between hosts: never shorter than on a node, and as long as what is lost by their
 * gaps. */
START_TEST(blocks)
{
    const onic_link_t link = {.gap = 400, .bnet = 10};

    ck_assert_uint_eq(onic_schedule_block(&link, 1), ONIC_PIPELINE_BLOCK);
    ck_assert_uint_eq(onic_schedule_block(&link, 1 << 16), ONIC_PIPELINE_BLOCK);
    ck_assert_uint_eq(onic_schedule_block(&link, 1 << 20), 64704);
    ck_assert_uint_eq(onic_schedule_block(&link, UINT64_MAX), INT32_MAX / 64 * 64);
}
END_TEST

/* Whatever the kind, all bytes are in chunks of no more than a buffer, and what copying hides in a
 * handshake is the first one. */
START_TEST(all_bytes)
{
    unit_random_t r = {unit_seed()};
    static uint32_t size[ONIC_OPTIMAL_MAX];

    for (int i = 0; i < 2000; i++) {
        const onic_schedule_choice_t choice = {
            (onic_schedule_kind_t)(1 + unit_below(&r, ONIC_SCHEDULES - 1)), link_by_hand};
        const uint32_t unit = 1 + (uint32_t)unit_below(&r, 64);
        const uint32_t buffer = 4096 + (uint32_t)unit_below(&r, 100000);
        const uint64_t len = 1 + unit_below(&r, 1 << (unit_below(&r, 22)));
        const bool handshake = unit_once_in(&r, 2);
        uint64_t left = len;
        onic_schedule_t s;

        onic_schedule_make(&s, &choice, len, unit, buffer, 4096, handshake, size);
        for (unsigned chunks = 0; left > 0; chunks++) {
            const uint32_t chunk = onic_schedule_next(&s);

            UNIT_CHECK(chunk > 0 && chunk <= buffer && chunk % unit == 0 && chunks < 10000);
            if (chunks == 0 && handshake && choice.kind == ONIC_SCHEDULE_OPTIMAL && len > 8000 &&
                buffer > 8000)
                UNIT_CHECK(chunk == 8000 - 8000 % unit);
            left -= chunk < left ? chunk : left;
        }
    }
}
END_TEST

int main(void)
{
    return UNIT_RUN("pipeline schedule", UNIT_ONCE(follows_the_series), UNIT_ONCE(number_of_chunks),
                    UNIT_ONCE(fixed), UNIT_ONCE(looks_ahead), UNIT_ONCE(of_the_paper),
                    UNIT_ONCE(listed), UNIT_ONCE(kinds), UNIT_ONCE(blocks), UNIT_ONCE(all_bytes));
}
