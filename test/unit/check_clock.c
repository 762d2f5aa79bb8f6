/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Whose ticks are counted, and what they are worth. */
#include "common/support/clock.h"

#include "test/unit/unit.h"

/* An inode of a time namespace, as the kernel gives them. */
#define NAMESPACE UINT64_C(4026531834)

START_TEST(counter_only_where_the_kernel_says_so)
{
    static const char *const others[] = {
        "",        "\n",    "hpet\n",      "acpi_pm\n", "kvm-clock\n",
        "jiffies", "xen\n", "tsc-early\n", "ts\n",      "tscx"};

    ck_assert_uint_eq(onic_clock_pick("tsc\n", true, NAMESPACE), ONIC_CLOCK_COUNTER);
    ck_assert_uint_eq(onic_clock_pick("tsc", true, NAMESPACE), ONIC_CLOCK_COUNTER);
    ck_assert_uint_eq(onic_clock_pick("tsc\n", false, NAMESPACE), NAMESPACE);
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        ck_assert_msg(onic_clock_pick(others[i], true, NAMESPACE) == NAMESPACE, "%s", others[i]);
}
END_TEST

/* Who counts in another clock must not be compared with. */
START_TEST(comparable)
{
    ck_assert_uint_ne(onic_clock_pick("tsc\n", true, NAMESPACE),
                      onic_clock_pick("hpet\n", true, NAMESPACE));
    ck_assert_uint_ne(onic_clock_pick("hpet\n", true, NAMESPACE),
                      onic_clock_pick("hpet\n", true, NAMESPACE + 1));
    ck_assert_uint_eq(onic_clock_pick("tsc\n", true, NAMESPACE),
                      onic_clock_pick("tsc\n", true, NAMESPACE + 1));
    ck_assert_uint_ne(onic_clock_pick("tsc\n", true, 0), onic_clock_pick("hpet\n", true, 0));
}
END_TEST

/* Before the start ticks are the kernel's, and after it they are what the start has picked. */
START_TEST(ticks_are_of_the_clock)
{
    const uint64_t before = onic_now_nsec();
    uint64_t now = onic_ticks();

    ck_assert(now >= before && now <= onic_now_nsec());
    onic_ticks_start();
    now = onic_ticks();
    ck_assert(onic_ticks() >= now);
    if (onic_ticks_clock() == ONIC_CLOCK_COUNTER) {
        const uint64_t began = onic_now_nsec(), ticks = onic_ticks();

        double passed, usec;
        /* Between two readings this process may lose its processor: the longer the time the less
         * that is. */
        do {
            passed = (double)(onic_ticks() - ticks) / onic_ticks_per_usec();
            usec = (double)(onic_now_nsec() - began) / 1000;
        } while (usec < 50000 || ((passed <= 0.8 * usec || passed >= 1.25 * usec) && usec < 1e7));
        ck_assert_msg(usec < 1e7, "%g us, not %g", passed, usec);
        return;
    }
    const uint64_t again = onic_now_nsec();
    now = onic_ticks();
    ck_assert(now >= again && now <= onic_now_nsec());
    ck_assert(onic_ticks_per_usec() == 1000);
}
END_TEST

int main(void)
{
    return UNIT_RUN("clock", UNIT_ONCE(counter_only_where_the_kernel_says_so),
                    UNIT_ONCE(comparable), UNIT_ONCE(ticks_are_of_the_clock));
}
