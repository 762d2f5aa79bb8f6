/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file When a process that waits wakes a peer: at once, then ever more seldom, and at once again
 * in the next wait.
 */
#include "osc_nicstride/protocol/patience.h"

#include "test/unit/unit.h"

/** Ticks of a microsecond. */
#define USEC        2.5
#define TICKS(usec) ((uint64_t)((usec)*USEC))

/** Knocks of one wait for a peer that stays away so long, looked for in each microsecond. */
static unsigned wakes_in(nicstride_patience_t *w, uint64_t start, unsigned usec)
{
    unsigned n = 0;

    for (unsigned i = 0; i <= usec; i++) {
        const uint64_t now = start + TICKS(i);

        if (!nicstride_patience_ends(w, now))
            continue;
        nicstride_patience_wake(w, now, USEC);
        n++;
    }
    return n;
}

START_TEST(at_once)
{
    nicstride_patience_t w;

    nicstride_patience_begin(&w);
    ck_assert(nicstride_patience_ends(&w, 0));
    ck_assert(nicstride_patience_ends(&w, UINT64_MAX));
    ck_assert_uint_eq(wakes_in(&w, 1000, NICSTRIDE_PATIENCE_FIRST - 1), 1);
    ck_assert(!nicstride_patience_ends(&w, 1000 + TICKS(NICSTRIDE_PATIENCE_FIRST) - 1));
    ck_assert(nicstride_patience_ends(&w, 1000 + TICKS(NICSTRIDE_PATIENCE_FIRST)));
}
END_TEST

START_TEST(more_and_more_seldom)
{
    nicstride_patience_t w;
    uint64_t now = 7, last = 0;

    nicstride_patience_begin(&w);
    for (int i = 0; i < 20; i++) {
        nicstride_patience_wake(&w, now, USEC);
        ck_assert_uint_ge(w.pause, last);
        ck_assert_uint_le(w.pause, TICKS(NICSTRIDE_PATIENCE_LAST));
        last = w.pause;
        now += w.pause;
    }
    ck_assert_uint_eq(last, TICKS(NICSTRIDE_PATIENCE_LAST));
    /* A peer that is stuck for a second is disturbed a thousand times, not a million. */
    nicstride_patience_begin(&w);
    ck_assert_uint_le(wakes_in(&w, now, 1000000), 1000 + 8);
}
END_TEST

START_TEST(each_wait_anew)
{
    nicstride_patience_t w;

    nicstride_patience_begin(&w);
    ck_assert_uint_gt(wakes_in(&w, 0, 10000), 5);
    nicstride_patience_begin(&w);
    ck_assert(nicstride_patience_ends(&w, TICKS(10001)));
    ck_assert_uint_eq(wakes_in(&w, TICKS(10001), 1), 1);
}
END_TEST

START_TEST(over_the_end_of_the_clock)
{
    nicstride_patience_t w;

    nicstride_patience_begin(&w);
    ck_assert_uint_eq(wakes_in(&w, UINT64_MAX - TICKS(10), NICSTRIDE_PATIENCE_FIRST - 1), 1);
    ck_assert_uint_eq(wakes_in(&w, UINT64_MAX - TICKS(10) + TICKS(NICSTRIDE_PATIENCE_FIRST), 1), 1);
}
END_TEST

int main(void)
{
    return UNIT_RUN("patience", UNIT_ONCE(at_once), UNIT_ONCE(more_and_more_seldom),
                    UNIT_ONCE(each_wait_anew), UNIT_ONCE(over_the_end_of_the_clock));
}
