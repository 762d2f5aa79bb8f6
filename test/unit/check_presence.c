/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file When a sign of life counts as recent. */
#include "common/node/presence.h"

#include "test/unit/unit.h"

/* A clock that may pass its end, processors whose clocks differ, and a naive reference that knows
 * how old the mark really is. */
START_TEST(recent)
{
    unit_random_t r = {unit_seed()};

    for (int i = 0; i < 1000000; i++) {
        const int64_t bound = (int64_t)unit_below(&r, 1000) + 1;
        const int64_t age = (int64_t)unit_below(&r, 3000) - 1000;
        const uint64_t now =
            unit_once_in(&r, 2) ? unit_below(&r, 4000) : UINT64_MAX - unit_below(&r, 4000);

        UNIT_CHECK(onic_presence_is_recent(now - (uint64_t)age, now, (uint64_t)bound) ==
                   (age < bound));
    }
}
END_TEST

/* A process that has never been in MPI has left its page all zero. */
START_TEST(never)
{
    onic_presence_t page = {.ticks = 0};
    const uint64_t now = onic_ticks();

    UNIT_CHECK(!onic_presence_is_fresh(&page, now, now / 2));
    atomic_store(&page.ticks, now - 10);
    UNIT_CHECK(onic_presence_is_fresh(&page, now, 11));
    UNIT_CHECK(!onic_presence_is_fresh(&page, now, 10));
    UNIT_CHECK(onic_presence_is_fresh(&page, now - 1000, 10)); /* another processor's clock */
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {recent, never};

    return unit_run("presence", tests, sizeof(tests) / sizeof(tests[0]));
}
