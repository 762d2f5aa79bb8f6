/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Chunk schedules against the series that they stand for. */
#include "common/pipeline/core/schedules.h"

#include <math.h>

#include "perf/sim/optimal.h"
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
        const double q = unit_once_in(&r, 4) ? 1 : 1 + (double)unit_below(&r, 3000) / 1000;
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

    sim_schedule_listed(&s, size, 4, 64, 4096);
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
                {ONIC_SCHEDULE_CONSTANT, constant}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const onic_schedule_choice_t choice = {rows[i].kind, link_by_hand};
        onic_schedule_t s;

        onic_schedule_make(&s, &choice, 64, 65536);
        for (int k = 0; k < 4; k++)
            ck_assert_uint_eq(onic_schedule_next(&s), rows[i].chunks[k]);
    }
    ck_assert_int_eq(onic_schedule_best(ONIC_SCHEDULE_BEST, true), ONIC_SCHEDULE_CONSTANT);
    ck_assert_int_eq(onic_schedule_best(ONIC_SCHEDULE_BEST, false), ONIC_SCHEDULE_MEASURED);
    ck_assert_int_eq(onic_schedule_best(ONIC_SCHEDULE_SUPERPIPE, true), ONIC_SCHEDULE_SUPERPIPE);
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

int main(void)
{
    return UNIT_RUN("pipeline schedule", UNIT_ONCE(follows_the_series), UNIT_ONCE(looks_ahead),
                    UNIT_ONCE(of_the_paper), UNIT_ONCE(listed), UNIT_ONCE(kinds),
                    UNIT_ONCE(blocks));
}
