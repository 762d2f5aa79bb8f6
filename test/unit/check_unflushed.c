/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Operations between flushes: one, several, none. */
#include "osc_nicstride/protocol/unflushed.h"

#include "test/unit/unit.h"

START_TEST(one_or_several)
{
    nicstride_unflushed_t u = {.alone = false};

    ck_assert(!nicstride_unflushed_alone(&u));
    nicstride_unflushed_end(&u);
    ck_assert(!nicstride_unflushed_alone(&u));
    for (int i = 0; i < 3; i++) {
        nicstride_unflushed_add(&u);
        ck_assert(!nicstride_unflushed_alone(&u)); /* another one would not be */
        nicstride_unflushed_end(&u);
        ck_assert(nicstride_unflushed_alone(&u));
        nicstride_unflushed_end(&u);
        ck_assert(nicstride_unflushed_alone(&u));
    }
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < 2 + i; k++) {
            nicstride_unflushed_add(&u);
            ck_assert(!nicstride_unflushed_alone(&u));
        }
        nicstride_unflushed_end(&u);
        ck_assert(!nicstride_unflushed_alone(&u));
    }
    nicstride_unflushed_add(&u);
    nicstride_unflushed_end(&u);
    ck_assert(nicstride_unflushed_alone(&u));
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {one_or_several};

    return unit_run("unflushed", tests, sizeof(tests) / sizeof(tests[0]));
}
