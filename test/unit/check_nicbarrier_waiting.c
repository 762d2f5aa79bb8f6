/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What a waiting thread does, one action after another. */
#include "coll_nicbarrier/team/waiting.h"

#include "test/unit/unit.h"

enum { POLLS = 1000, LONG = 100000 };

/** How often each action came in a wait of some length. */
typedef struct done {
    unsigned pauses, progress, yields, sleeps, checks;
} done_t;

static done_t wait(unsigned from, unsigned to, unsigned polls, nicbarrier_processors_t processors)
{
    done_t d = {0};
    for (unsigned n = from; n <= to; n++) {
        const unsigned actions = nicbarrier_waiting_action(n, polls, processors);
        ck_assert_uint_ne(actions, 0);
        d.pauses += (actions & NICBARRIER_WAIT_PAUSE) != 0;
        d.progress += (actions & NICBARRIER_WAIT_PROGRESS) != 0;
        d.yields += (actions & NICBARRIER_WAIT_YIELD) != 0;
        d.sleeps += (actions & NICBARRIER_WAIT_SLEEP) != 0;
        d.checks += (actions & NICBARRIER_WAIT_CHECK) != 0;
    }
    return d;
}

/* With a processor for each rank a thread polls first, and never sleeps. It yields where others may
 * have been put on its processor. */
START_TEST(not_crowded)
{
    const nicbarrier_processors_t how = _i == 0 ? NICBARRIER_OWN : NICBARRIER_SHARED;
    const done_t first = wait(1, POLLS, POLLS, how);
    const done_t then = wait(POLLS + 1, POLLS + LONG, POLLS, how);

    ck_assert_uint_eq(first.pauses, POLLS);
    ck_assert_uint_eq(first.progress + first.yields + first.sleeps + first.checks, 0);
    ck_assert_uint_eq(then.pauses + then.sleeps, 0);
    ck_assert_uint_eq(then.progress, LONG);
    ck_assert_uint_eq(then.yields,
                      how == NICBARRIER_OWN ? 0 : LONG / NICBARRIER_PROGRESS_PER_YIELD);
    ck_assert_uint_ge(then.checks, LONG / NICBARRIER_ACTIONS_PER_CHECK);
    ck_assert_uint_eq(wait(1, LONG, 0, how).progress, LONG);
}
END_TEST

/* With more ranks than processors it gives its own up from the first action on, whatever the number
 * of polls, calls Open MPI's progress now and then, and sleeps in the end. */
START_TEST(crowded)
{
    const done_t first = wait(1, NICBARRIER_YIELDS, POLLS, NICBARRIER_CROWDED);
    const done_t then = wait(NICBARRIER_YIELDS + 1, LONG, POLLS, NICBARRIER_CROWDED);

    ck_assert_uint_eq(first.yields, NICBARRIER_YIELDS);
    ck_assert_uint_eq(first.progress, NICBARRIER_YIELDS / NICBARRIER_YIELDS_PER_PROGRESS);
    ck_assert_uint_eq(first.pauses + first.sleeps, 0);
    ck_assert_uint_eq(then.sleeps, LONG - NICBARRIER_YIELDS);
    ck_assert_uint_eq(then.progress, then.sleeps);
    ck_assert_uint_eq(then.pauses + then.yields, 0);
    ck_assert_uint_gt(then.checks, 0);
}
END_TEST

int main(void)
{
    return UNIT_RUN("nicbarrier_waiting", UNIT_LOOP(not_crowded, 0, 2), UNIT_ONCE(crowded));
}
