/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Helper threads: their naps, and the signals that they leave to others. */
#define _GNU_SOURCE
#include "common/support/helper_thread.h"
#include "test/unit/unit.h"

START_TEST(naps)
{
    for (unsigned most = 1; most < 3000; most++) {
        for (unsigned least = 1; least <= most && least < 40; least++) {
            onic_naps_t n = ONIC_NAPS(least, most);
            unsigned before = n.now, steps = 0;
            UNIT_CHECK(before == least);
            for (; n.now < most; steps++) {
                onic_naps_lengthen(&n);
                UNIT_CHECK(n.now > before && n.now <= most);
                UNIT_CHECK(n.now == most || n.now == 2 * before);
                before = n.now;
            }
            UNIT_CHECK(steps <= 12);
            onic_naps_lengthen(&n);
            UNIT_CHECK(n.now == most);
            onic_naps_shorten(&n);
            UNIT_CHECK(n.now == least);
        }
    }
}
END_TEST

static void *see_mask(void *arg)
{
    pthread_sigmask(SIG_BLOCK, NULL, arg);
    return NULL;
}

START_TEST(signals)
{
    sigset_t theirs, before, after;
    pthread_t thread;

    pthread_sigmask(SIG_BLOCK, NULL, &before);
    ck_assert_int_eq(onic_helper_start(&thread, "onic-check", see_mask, &theirs), 0);
    pthread_join(thread, NULL);
    pthread_sigmask(SIG_BLOCK, NULL, &after);
    ck_assert_int_eq(sigismember(&theirs, SIGTERM), 1);
    ck_assert_int_eq(sigismember(&theirs, SIGALRM), 1);
    ck_assert_int_eq(sigismember(&theirs, SIGUSR1), 1);
    ck_assert_int_eq(sigismember(&theirs, SIGSEGV), 0);
    ck_assert_int_eq(sigismember(&theirs, SIGBUS), 0);
    for (int s = 1; s < 32; s++)
        ck_assert_int_eq(sigismember(&before, s), sigismember(&after, s));
}
END_TEST

int main(void)
{
    return UNIT_RUN("helper_thread", UNIT_ONCE(naps), UNIT_ONCE(signals));
}
