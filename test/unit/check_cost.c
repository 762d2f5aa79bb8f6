/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The model's constants: from samples, within bounds; by hand; of blocks far and near. */
#include "osc_nicstride/cost.h"

#include <math.h>
#include <string.h>

#include "test/unit/unit.h"

static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-9 * fabs(b);
}

static bool same(const nicstride_cost_t *a, const nicstride_cost_t *b)
{
    return memcmp(a, b, sizeof(*a)) == 0;
}

/* Times of a machine with given constants give these constants. */
START_TEST(fits)
{
    unit_random_t r = {unit_seed()};

    for (int i = 0; i < 1000; i++) {
        const double by = 0.2 + (double)unit_below(&r, 1000) / 200; /* faster or slower */
        const nicstride_cost_t d = nicstride_cost_node;
        const nicstride_samples_t s = {.npieces = 32,
                                       .nbytes = 65536,
                                       .ndense = 256,
                                       .nlines = 128,
                                       .npages = 64,
                                       .call = by * d.call,
                                       .pieces = by * (d.call + 31 * d.piece),
                                       .bytes = by * (d.call + 65536 * d.copy),
                                       .dense = by * 2 * 256 * d.block,
                                       .lines = by * 2 * 128 * d.line,
                                       .pages = by * 2 * 64 * d.page};
        nicstride_cost_t cost = d;

        nicstride_cost_fit(&cost, &s);
        UNIT_CHECK(near(cost.call, by * d.call) && near(cost.piece, by * d.piece));
        UNIT_CHECK(near(cost.copy, by * d.copy) && near(cost.block, by * d.block));
        UNIT_CHECK(near(cost.line, by * d.line) && near(cost.page, by * d.page));
        UNIT_CHECK(cost.message == d.message && cost.wake == d.wake);
    }
}
END_TEST

static double any_time(unit_random_t *r)
{
    switch (unit_below(r, 8)) {
    case 0:
        return 0;
    case 1:
        return -1e6;
    case 2:
        return NAN;
    case 3:
        return INFINITY;
    default:
        return pow(10, (double)unit_below(r, 12));
    }
}

/* Whatever was measured, nothing leaves its bounds, and what is farther does not cost less. */
START_TEST(bounded)
{
    unit_random_t r = {unit_seed()};
    nicstride_cost_t cost = nicstride_cost_node;
    const nicstride_cost_t d = nicstride_cost_node;
    const nicstride_samples_t nothing = {.npieces = 32};

    nicstride_cost_fit(&cost, &nothing);
    ck_assert(same(&cost, &d));
    for (int i = 0; i < 20000; i++) {
        const nicstride_samples_t s = {.npieces = (unsigned)unit_below(&r, 3),
                                       .nbytes = unit_below(&r, 3) << 16,
                                       .ndense = (unsigned)unit_below(&r, 3),
                                       .nlines = (unsigned)unit_below(&r, 3),
                                       .npages = (unsigned)unit_below(&r, 3),
                                       .call = any_time(&r),
                                       .pieces = any_time(&r),
                                       .bytes = any_time(&r),
                                       .dense = any_time(&r),
                                       .lines = any_time(&r),
                                       .pages = any_time(&r)};
        const double *was = (const double *)&d, *is = (const double *)&cost;

        cost = d;
        nicstride_cost_fit(&cost, &s);
        for (size_t k = 0; k < offsetof(nicstride_cost_t, sieve_piece) / sizeof(double); k++)
            UNIT_CHECK(is[k] >= was[k] / NICSTRIDE_COST_FACTOR &&
                       is[k] <= was[k] * NICSTRIDE_COST_FACTOR);
        UNIT_CHECK(cost.block <= cost.line && cost.line <= cost.page);
    }
}
END_TEST

/* By hand: all or nothing. */
START_TEST(by_hand)
{
    static const char *const bad[] = {"",
                                      "call",
                                      "call=",
                                      "call=x",
                                      "call=1,",
                                      "call=1;",
                                      "call=1,piece",
                                      ",call=1",
                                      "Call=1",
                                      "cal=1",
                                      "calls=1",
                                      "call=-1",
                                      "call=0",
                                      "call=inf",
                                      "call=nan",
                                      "call=1,x=2",
                                      "call=1e4,piece=1,piece=",
                                      "sieve_piece=3",
                                      "call = 1",
                                      "measure"};
    const nicstride_cost_t d = nicstride_cost_node;
    nicstride_cost_t cost = d, again = d;
    char text[512], part[512];

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        ck_assert_msg(!nicstride_cost_read(&cost, bad[i]), "%s", bad[i]);
        ck_assert(same(&cost, &d));
    }
    ck_assert(nicstride_cost_read(&cost, "call=12,piece=0.5,page=1e2"));
    ck_assert(cost.call == 12 && cost.piece == 0.5 && cost.page == 100);
    ck_assert(cost.message == d.message && cost.sieve_piece == d.sieve_piece);
    nicstride_cost_write(&cost, text, sizeof(text));
    ck_assert_uint_lt(strlen(text), sizeof(text) - 1);
    ck_assert(nicstride_cost_read(&again, text));
    ck_assert(again.call == 12 && again.piece == 0.5 && again.rndv_byte == d.rndv_byte);
    for (size_t cap = 1; cap < strlen(text) + 2; cap++) {
        memset(part, 'x', sizeof(part));
        nicstride_cost_write(&cost, part, cap);
        UNIT_CHECK(part[cap] == 'x' && strlen(part) < cap);
        UNIT_CHECK(memcmp(part, text, strlen(part)) == 0);
    }
}
END_TEST

/* Blocks cost more the farther they are from each other, on either side of 0, in lists too. */
START_TEST(distances)
{
    const nicstride_cost_t *c = &nicstride_cost_node;
    onic_runs_t runs = {0};
    onic_layout_t l;
    double before = 0;

    ck_assert_int_eq(onic_layout_contig(&l, 0, 4096), ONIC_LAYOUT_OK);
    ck_assert(nicstride_gather_cost(&l, c) == 0);
    for (int64_t stride = 16; stride <= 1 << 20; stride += 8) {
        onic_layout_t back;
        double cost;

        onic_layout_contig(&l, 0, 8);
        onic_layout_contig(&back, 0, 8);
        ck_assert_int_eq(onic_layout_repeat(&l, 100, stride), ONIC_LAYOUT_OK);
        ck_assert_int_eq(onic_layout_repeat(&back, 100, -stride), ONIC_LAYOUT_OK);
        cost = nicstride_gather_cost(&l, c);
        UNIT_CHECK(cost >= before && cost >= 100 * c->block && cost <= 100 * c->page);
        UNIT_CHECK(near(nicstride_gather_cost(&back, c), cost));
        if (stride == NICSTRIDE_COST_LINE)
            UNIT_CHECK(near(cost, 100 * c->line));
        if (stride >= NICSTRIDE_COST_PAGE)
            UNIT_CHECK(near(cost, 100 * c->page));
        before = cost;
    }
    for (int64_t i = 0; i < 50; i++)
        ck_assert_int_eq(onic_runs_add(&runs, (onic_run_t){i * (i + 1) * 4096, 8, 1, 0}),
                         ONIC_LAYOUT_OK);
    ck_assert_int_eq(onic_layout_from_runs(&l, &runs), ONIC_LAYOUT_OK);
    ck_assert_uint_gt(l.nruns, 0);
    ck_assert(near(nicstride_gather_cost(&l, c), 50 * c->page));
    onic_layout_fini(&l);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {fits, bounded, by_hand, distances};

    return unit_run("cost", tests, sizeof(tests) / sizeof(tests[0]));
}
