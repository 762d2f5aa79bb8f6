/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What a thread that waits concludes from its yields. */
#include "coll_nicbarrier/team/oversubscription.h"

#include "test/unit/unit.h"

/* Yields that let nobody run take 100 to 700 ns, by processor and kernel; others a time slice. */
START_TEST(spinning)
{
    ck_assert(!nicbarrier_is_shared(100 * 700, 100));
    ck_assert(!nicbarrier_is_shared(1, 8));
    ck_assert(nicbarrier_is_shared(8 * 1000000, 8));
    ck_assert(nicbarrier_is_shared(100 * 700 + 3000000, 100));
}
END_TEST

START_TEST(sleeping)
{
    /* A processor of one's own, where yields cost what they may. */
    ck_assert(!nicbarrier_is_wanted(0, 1));
    ck_assert(!nicbarrier_is_wanted(0, 1000));
    /* Now and then the kernel itself has something to do. */
    ck_assert(!nicbarrier_is_wanted(1, 25));
    ck_assert(!nicbarrier_is_wanted(1, 3));
    /* Somebody else computes, or waits like this: each yield lets him run, or preemption does. */
    ck_assert(nicbarrier_is_wanted(1, 1));
    ck_assert(nicbarrier_is_wanted(2, 1));
    ck_assert(nicbarrier_is_wanted(1, 2));
    ck_assert(nicbarrier_is_wanted(25, 25));
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {spinning, sleeping};

    return unit_run("nicbarrier_oversubscription", tests, sizeof(tests) / sizeof(tests[0]));
}
