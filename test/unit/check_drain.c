/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file When nothing more comes from a process that is lost: when its queue has been gone through.
 */
#include "common/wire/drain.h"

#include "test/unit/unit.h"

/** Progresses until it is over, where the dead have left `left` entries and others send on. */
static unsigned drain(unsigned left, unsigned others)
{
    onic_drain_t d;
    unsigned n = 0;
    bool over = false;

    onic_drain_begin(&d);
    while (!over) {
        const unsigned found = (left > 0) + others;

        ck_assert(onic_drain_goes_on(&d));
        over = onic_drain_ends(&d, found);
        left -= left > 0;
        n++;
    }
    ck_assert(!onic_drain_goes_on(&d));
    ck_assert_uint_eq(left, 0);
    return n;
}

START_TEST(nothing_is_left)
{
    ck_assert_uint_eq(drain(0, 0), 1);
}
END_TEST

START_TEST(all_that_is_left_comes_first)
{
    ck_assert_uint_eq(drain(1, 0), 2);
    ck_assert_uint_eq(drain(100, 0), 101);
    ck_assert_uint_eq(drain(ONIC_DRAIN_MOST - 1, 0), ONIC_DRAIN_MOST);
}
END_TEST

START_TEST(others_do_not_hold_it_up)
{
    ck_assert_uint_eq(drain(0, 1), ONIC_DRAIN_MOST);
    ck_assert_uint_eq(drain(64, 3), ONIC_DRAIN_MOST);
}
END_TEST

START_TEST(one_more_is_lost)
{
    onic_drain_t d;

    onic_drain_begin(&d);
    for (unsigned i = 1; i < ONIC_DRAIN_MOST; i++)
        ck_assert(!onic_drain_ends(&d, 1));
    /* What it has left may be all still there. */
    onic_drain_begin(&d);
    for (unsigned i = 1; i < ONIC_DRAIN_MOST; i++)
        ck_assert(!onic_drain_ends(&d, 1));
    ck_assert(onic_drain_ends(&d, 1));
}
END_TEST

START_TEST(not_before_one_is_lost)
{
    const onic_drain_t d = {0};

    ck_assert(!onic_drain_goes_on(&d));
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {nothing_is_left, all_that_is_left_comes_first,
                                  others_do_not_hold_it_up, one_more_is_lost,
                                  not_before_one_is_lost};

    return unit_run("drain", tests, sizeof(tests) / sizeof(tests[0]));
}
