/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Tables of choices: the classes of shapes and sizes, what stands for them, and orders,
 *  against plain searches and sorts. */
#include "common/model/table.h"

#include <math.h>

#include "test/unit/unit.h"

/** Shortest blocks of the shapes but the contiguous one. */
static const uint64_t shortest[ONIC_SHAPES] = {0, 16384, 4096, 1024, 256, 64, 16, 1};

static unsigned naive_shape(uint64_t block, uint64_t bytes)
{
    unsigned shape = 0;

    if (block < bytes)
        do
            shape++;
        while (block < shortest[shape]);
    return shape;
}

static unsigned naive_size(uint64_t bytes)
{
    unsigned size = 0;

    for (uint64_t least = 128; size < 17 && bytes >= least; least *= 2)
        size++;
    return size;
}

/** Of any length in bits. */
static uint64_t any_number(unit_random_t *r)
{
    const uint64_t n = unit_random64(r) >> unit_below(r, 64);

    return n > 0 ? n : 1;
}

START_TEST(shapes)
{
    unit_random_t r = {unit_seed()};

    for (unsigned shape = 1; shape < ONIC_SHAPES; shape++) {
        const uint64_t least = shortest[shape];

        ck_assert_uint_eq(onic_shape(least, UINT64_MAX), shape);
        ck_assert_uint_eq(onic_shape(least, least + 1), shape);
        ck_assert_uint_eq(onic_shape(least, least), 0);
        ck_assert_uint_eq(onic_shape(least + 1, least), 0);
        if (least > 1)
            ck_assert_uint_eq(onic_shape(least - 1, UINT64_MAX), shape + 1);
    }
    for (int i = 0; i < 100000; i++) {
        const uint64_t block = any_number(&r), bytes = any_number(&r);

        UNIT_CHECK(onic_shape(block, bytes) == naive_shape(block, bytes));
    }
}
END_TEST

START_TEST(sizes)
{
    unit_random_t r = {unit_seed()};

    ck_assert_uint_eq(onic_size(0), 0);
    ck_assert_uint_eq(onic_size(UINT64_MAX), ONIC_SIZES - 1);
    for (unsigned bit = 0; bit < 64; bit++)
        for (int d = -1; d <= 1; d++) {
            const uint64_t bytes = (UINT64_C(1) << bit) + (uint64_t)(int64_t)d;

            ck_assert_uint_eq(onic_size(bytes), naive_size(bytes));
        }
    for (int i = 0; i < 100000; i++) {
        const uint64_t bytes = any_number(&r);

        UNIT_CHECK(onic_size(bytes) == naive_size(bytes));
    }
}
END_TEST

/* The smallest of its size, in the shortest blocks of its shape; where it is no longer than such a
 * block it is contiguous. */
START_TEST(examples)
{
    for (unsigned shape = 0; shape < ONIC_SHAPES; shape++)
        for (unsigned size = 0; size < ONIC_SIZES; size++) {
            const uint64_t bytes = size == 0 ? 64 : UINT64_C(128) << (size - 1);
            const uint64_t block = shape == ONIC_SHAPES - 1 ? 8 : shortest[shape];
            onic_layout_t l;

            onic_example(shape, size, &l);
            ck_assert_uint_eq(l.size, bytes);
            ck_assert_uint_eq(onic_size(bytes), size);
            if (size > 0)
                ck_assert_uint_eq(onic_size(bytes - 1), size - 1);
            if (shape == 0 || block >= bytes) {
                ck_assert(onic_layout_is_contig(&l));
                continue;
            }
            ck_assert_uint_eq(l.block, block);
            ck_assert_uint_eq(l.nlevels, 1);
            ck_assert_uint_eq(l.level[0].count, bytes / block);
            ck_assert_int_eq(l.level[0].stride, (int64_t)(2 * block));
            ck_assert_uint_eq(onic_shape(l.block, l.size), shape);
        }
}
END_TEST

/* ---- orders ---------------------------------------------------------------------------------- */

/** Few different ones, so that there are ties. */
static double any_cost(unit_random_t *r)
{
    const uint64_t n = unit_below(r, 6);

    return n == 0 ? INFINITY : (double)(n - 1) * 100;
}

/** All finite ones and `last`, by exchanging neighbours until they are in order; up to `last`. */
static unsigned naive_order(const double cost[], unsigned last, unsigned of[])
{
    unsigned n = 0, end = 0;

    for (unsigned c = 1; c <= ONIC_CHOICES; c++)
        if (!isinf(cost[c]) || c == last)
            of[n++] = c;
    for (unsigned pass = 0; pass < n; pass++)
        for (unsigned i = 0; i + 1 < n; i++)
            if (cost[of[i]] > cost[of[i + 1]]) {
                const unsigned c = of[i];

                of[i] = of[i + 1];
                of[i + 1] = c;
            }
    while (of[end] != last)
        end++;
    return end + 1;
}

START_TEST(orders)
{
    unit_random_t r = {unit_seed()};
    unsigned cut = 0, ties = 0;

    for (int i = 0; i < 100000; i++) {
        const unsigned last = 1 + (unsigned)unit_below(&r, ONIC_CHOICES);
        double cost[ONIC_CHOICES + 1] = {-1}; /* none is none, however cheap */
        unsigned of[ONIC_CHOICES + 1];

        for (unsigned c = 1; c <= ONIC_CHOICES; c++)
            cost[c] = any_cost(&r);
        const unsigned n = naive_order(cost, last, of);
        onic_order_t order = onic_order(cost, last);

        for (unsigned k = 0; k < n && k < ONIC_ORDERED; k++) {
            /* Where there is no room for all the last of them is the one that can always be taken.
             */
            UNIT_CHECK(onic_order_take(&order) == (k == ONIC_ORDERED - 1 ? last : of[k]));
            ties += k > 0 && cost[of[k]] == cost[of[k - 1]];
        }
        for (int more = 0; more < 3; more++)
            UNIT_CHECK(onic_order_take(&order) == 0);
        cut += n > ONIC_ORDERED;
    }
    ck_assert_uint_gt(cut, 10);
    ck_assert_uint_gt(ties, 1000);
}
END_TEST

START_TEST(take)
{
    onic_order_t order = 0x98000321;

    for (unsigned n = 1; n <= 3; n++)
        ck_assert_uint_eq(onic_order_take(&order), n);
    ck_assert_uint_eq(onic_order_take(&order), 0);
    ck_assert_uint_eq(order, 0x9800);
    ck_assert_uint_eq(onic_order((double[ONIC_CHOICES + 1]){0, 5, 4, 3, 2, 1, 9, 9, 9, 9}, 2),
                      0x2345);
}
END_TEST

int main(void)
{
    return UNIT_RUN("model_table", UNIT_ONCE(shapes), UNIT_ONCE(sizes), UNIT_ONCE(examples),
                    UNIT_ONCE(orders), UNIT_ONCE(take));
}
