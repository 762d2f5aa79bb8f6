/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Notices of post and complete: each is used once, also those before a loss. */
#include "osc_nicstride/protocol/epoch.h"

#include "test/unit/unit.h"

/* A sender gives notices, now and then several before one is used, and is lost some time. What the
 * waiting side sees is compared with what there is. */
START_TEST(used_once)
{
    unit_random_t r = {unit_seed()};

    for (int round = 0; round < 20000; round++) {
        const uint32_t start = UINT32_MAX - (uint32_t)unit_below(&r, 4);
        uint32_t have = start, used = start;
        unsigned given = 0, taken = 0;
        bool lost = false;

        for (int step = 0; step < 30; step++) {
            if (!lost && unit_once_in(&r, 3)) {
                have++;
                given++;
            }
            lost = lost || unit_once_in(&r, 20);
            switch (nicstride_notice(have, used, lost)) {
            case NICSTRIDE_NOTICE_HERE:
                UNIT_CHECK(taken < given);
                if (unit_once_in(&r, 2)) {
                    used++;
                    taken++;
                }
                break;
            case NICSTRIDE_NOTICE_AWAITED:
                UNIT_CHECK(taken == given && !lost);
                break;
            default:
                UNIT_CHECK(taken == given && lost);
            }
        }
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {used_once};

    return unit_run("notice", tests, sizeof(tests) / sizeof(tests[0]));
}
