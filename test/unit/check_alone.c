/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Which transfers count as alone, against a look back at all that happened. */
#include "osc_nicstride/protocol/alone.h"

#include "test/unit/unit.h"

/** Is the one that begins at the end of `log` alone? 'b': one began, 'w': a call waited. */
static bool naive(const char *log, int end)
{
    int at = end - 1, before = 0;

    if (at < 0 || log[at] == 'b')
        return false; /* it is not the first, or nothing is known */
    while (at >= 0 && log[at] == 'w')
        at--;
    for (; at >= 0 && log[at] == 'b'; at--)
        before++;
    return before == 1;
}

/** Programs that wait after one in `often` on average. */
START_TEST(as_before)
{
    enum { EVENTS = 2000 };
    static const unsigned often[] = {1, 2, 3, 10};
    unit_random_t r = {unit_seed() + (uint64_t)_i};
    nicstride_alone_t a = {.begun = 0};
    char log[EVENTS];
    int alone = 0, others = 0;

    for (int n = 0; n < EVENTS; n++) {
        const bool wait = unit_once_in(&r, 1 + often[_i]);

        log[n] = wait ? 'w' : 'b';
        if (wait) {
            nicstride_alone_wait(&a);
            continue;
        }
        const bool expected = naive(log, n);

        UNIT_CHECK(nicstride_alone_begin(&a) == expected);
        alone += expected;
        others += !expected;
    }
    ck_assert_int_gt(alone, 10);
    ck_assert_int_gt(others, 10);
}
END_TEST

START_TEST(by_hand)
{
    nicstride_alone_t a = {.begun = 0};

    nicstride_alone_wait(&a);
    ck_assert(!nicstride_alone_begin(&a)); /* nothing was before it */
    nicstride_alone_wait(&a);
    ck_assert(nicstride_alone_begin(&a));
    nicstride_alone_wait(&a);
    nicstride_alone_wait(&a); /* waits for nothing, and changes nothing */
    ck_assert(nicstride_alone_begin(&a));
    ck_assert(!nicstride_alone_begin(&a));
    nicstride_alone_wait(&a);
    ck_assert(!nicstride_alone_begin(&a)); /* two were before it */
    nicstride_alone_wait(&a);
    ck_assert(nicstride_alone_begin(&a));
}
END_TEST

int main(void)
{
    return UNIT_RUN("alone", UNIT_LOOP(as_before, 0, 4), UNIT_ONCE(by_hand));
}
