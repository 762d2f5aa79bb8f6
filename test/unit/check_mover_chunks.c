/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Chunk schedules against the series that they stand for. */
#include "common/mover/pipe/chunks.h"

#include <float.h>
#include <math.h>

#include "test/unit/pipeline_paper.h"
#include "test/unit/unit.h"

/** What one chunk may differ from the series by: rounding down to a unit. */
static void check_chunk(uint32_t chunk, double exact, uint32_t unit, uint32_t slot)
{
    const uint32_t top = slot - slot % unit;
    const double high = exact < top ? exact : top;
    const double want = high < unit ? unit : high;

    UNIT_CHECK(chunk % unit == 0 && chunk >= unit && chunk <= slot);
    UNIT_CHECK(chunk <= want * (1 + 1e-9) && chunk > want * (1 - 1e-9) - unit);
}

START_TEST(follows_the_series)
{
    unit_random_t r = {unit_seed()};

    for (int round = 0; round < 3000; round++) {
        const uint32_t unit = 1 + (uint32_t)unit_below(&r, 100);
        const uint32_t slot = unit + (uint32_t)unit_below(&r, 100000);
        const double c0 = 1 + (double)unit_below(&r, slot);
        const double q = (double)unit_below(&r, 4000) / 1000 + 0.001;
        double exact = c0 < slot - slot % unit ? c0 : slot - slot % unit;
        onic_schedule_t s;

        onic_schedule_growing(&s, c0, q, unit, slot);
        for (int i = 0; i < 60; i++) {
            check_chunk(onic_schedule_next(&s), exact, unit, slot);
            exact *= q;
            exact = exact < unit ? unit : exact > slot - slot % unit ? slot - slot % unit : exact;
        }
    }
}
END_TEST

/* Eq. 7: so many chunks for so many bytes, as long as none fills a slot. */
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

/* A model that could not be measured may give anything. */
START_TEST(no_numbers)
{
    const double bad[] = {0, -1, NAN, -INFINITY, INFINITY, 1e300, 1e-300};

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        for (size_t k = 0; k < sizeof(bad) / sizeof(bad[0]); k++) {
            onic_schedule_t s;
            onic_schedule_growing(&s, bad[i], bad[k], 8, 1000);
            for (int n = 0; n < 5; n++) {
                const uint32_t chunk = onic_schedule_next(&s);
                UNIT_CHECK(chunk >= 8 && chunk <= 1000 && chunk % 8 == 0);
            }
        }
    }
}
END_TEST

START_TEST(looks_ahead)
{
    unit_random_t r = {unit_seed() + 1};

    for (int round = 0; round < 3000; round++) {
        const uint32_t slot = 1 + (uint32_t)unit_below(&r, 5000);
        const unsigned n = (unsigned)unit_below(&r, 64);
        const uint32_t slack = (uint32_t)unit_below(&r, 10);
        onic_schedule_t s, copy;
        uint64_t sum = 0;

        onic_schedule_growing(&s, 1 + (double)unit_below(&r, slot),
                              (double)(1 + unit_below(&r, 3000)) / 1000, 1, slot);
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

/* ---- those of the paper ---------------------------------------------------------------------- */

#define UNIT 64
#define SLOT 32768
#define LEN  (UINT64_C(1) << 20)

/** Bytes and nanoseconds that make round chunks. */
static onic_link_t link_of(double bcopy, double bnet)
{
    onic_link_t link = onic_links_default.net;

    link.latency = 500;
    link.gap = 150;
    link.bcopy = bcopy;
    link.bnet = bnet;
    return link;
}

/** The first chunks are these, up to a 0; then all are as long as the last. */
static void check_chunks(onic_schedule_t s, const uint32_t *chunks)
{
    for (int i = 0, at = 0; i < 20; i++) {
        ck_assert_uint_eq(onic_schedule_next(&s), chunks[at]);
        at += chunks[at + 1] != 0;
    }
}

/** Section 4: C0 = Bcopy 2 lambda, q = Bcopy / Bnet (equation 5). Where copying is slower than the
 *  network, q is 1: chunks do not shrink. */
static void by_model(onic_schedule_t *s, const onic_link_t *link, uint32_t unit, uint32_t slot)
{
    const onic_chunks_t c = onic_superpipeline_chunks(link, unit, slot);

    onic_schedule_growing(s, c.first, fmax(1, c.ratio), unit, slot);
}

/** Section 3: chunks of one size, C_opt, for a transfer of `len` > 0 bytes. */
static void by_optimum(onic_schedule_t *s, const onic_link_t *link, uint64_t len, uint32_t unit,
                       uint32_t slot)
{
    onic_schedule_growing(s, pipeline_paper_chunk(link, (double)len), 1, unit, slot);
}

static onic_schedule_t model(const onic_link_t *link)
{
    onic_schedule_t s;

    by_model(&s, link, UNIT, SLOT);
    return s;
}

static onic_schedule_t optimal(const onic_link_t *link, uint64_t len)
{
    onic_schedule_t s;

    by_optimum(&s, link, len, UNIT, SLOT);
    return s;
}

START_TEST(of_the_paper)
{
    const onic_link_t link = link_of(10, 5), slow = link_of(5, 10);
    onic_schedule_t s;

    onic_schedule_paper(&s, UNIT, SLOT);
    check_chunks(s, (const uint32_t[]){12288, 18432, 27648, SLOT, 0});
    /* 10 bytes in each of 1000 ns, in whole units; twice as many each time. */
    check_chunks(model(&link), (const uint32_t[]){9984, 19968, SLOT, 0});
    check_chunks(model(&slow), (const uint32_t[]){4992, 0});
    /* sqrt(2^20 * 150 * 10 / 2) = 28043; a quarter of the bytes: half of that. */
    check_chunks(optimal(&link, LEN), (const uint32_t[]){28032, 0});
    check_chunks(optimal(&link, LEN / 4), (const uint32_t[]){14016, 0});
    check_chunks(optimal(&link, LEN * 1000), (const uint32_t[]){SLOT, 0});
    check_chunks(optimal(&link, 1), (const uint32_t[]){UNIT, 0});
    /* 150 ns over 0.1 ns: moving a longer chunk is hidden. */
    check_chunks(optimal(&slow, LEN), (const uint32_t[]){1472, 0});
}
END_TEST

/* Whatever the numbers are, chunks are whole units that fit into a slot. */
START_TEST(of_anything)
{
    static const double odd[] = {0,       -1,   NAN, INFINITY, -INFINITY, DBL_MAX,
                                 DBL_MIN, 1e-9, 1,   1.5,      12288,     1e30};
    static const uint64_t lengths[] = {1, 100, LEN, UINT64_MAX};
    unit_random_t r = {unit_seed() + 2};

    for (int i = 0; i < 50000; i++) {
        const uint32_t unit = 1 + (uint32_t)unit_below(&r, 100);
        const uint32_t slot = unit + (uint32_t)unit_below(&r, 100000);
        const size_t n = sizeof(odd) / sizeof(odd[0]);
        const onic_link_t link = {.latency = odd[unit_below(&r, n)],
                                  .gap = odd[unit_below(&r, n)],
                                  .bcopy = odd[unit_below(&r, n)],
                                  .bnet = odd[unit_below(&r, n)]};
        onic_schedule_t s;

        if (i % 2 == 0)
            by_model(&s, &link, unit, slot);
        else
            by_optimum(&s, &link, lengths[unit_below(&r, 4)], unit, slot);
        for (int k = 0; k < 5; k++) {
            const uint32_t chunk = onic_schedule_next(&s);

            UNIT_CHECK(chunk >= unit && chunk <= slot && chunk % unit == 0);
        }
    }
}
END_TEST

int main(void)
{
    return UNIT_RUN("mover schedule", UNIT_ONCE(follows_the_series), UNIT_ONCE(number_of_chunks),
                    UNIT_ONCE(fixed), UNIT_ONCE(no_numbers), UNIT_ONCE(looks_ahead),
                    UNIT_ONCE(of_the_paper), UNIT_ONCE(of_anything));
}
