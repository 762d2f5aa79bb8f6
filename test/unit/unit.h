/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What the unit tests with random cases share: a reproducible generator and the runner. */
#pragma once

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <check.h>
#include <unistd.h>

/* Check's old name for ck_abort_msg; what is tested has functions of that name. */
#undef fail

/* What passes is not written to a file each time, which takes longer than all else of a test of
 * random cases. A test that crashes is not told the line before that: a debugger or a sanitizer is.
 */
#define _mark_point(file, line) ((void)0)

/** As ck_assert, with nothing to be printed but the condition. */
#define UNIT_CHECK(condition)                                                                      \
    do {                                                                                           \
        if (!(condition))                                                                          \
            ck_abort_msg("%s", #condition);                                                        \
    } while (0)

/** Tells why the rest of a test is not done; the caller returns. Check has no word for it. The
 *  reason must be one of test/skips.txt. */
static inline void unit_skip(const char *reason)
{
    printf("skip: %s\n", reason);
    fflush(stdout);
}

/** The seed of this run: ONIC_TEST_SEED, or a fixed one. */
static inline uint64_t unit_seed(void)
{
    const char *text = getenv("ONIC_TEST_SEED");

    return text != NULL ? strtoull(text, NULL, 0) : 20260101;
}

/** State of a generator (splitmix64). Each test begins its own with unit_seed. */
typedef struct unit_random {
    uint64_t state;
} unit_random_t;

static inline uint64_t unit_random64(unit_random_t *r)
{
    uint64_t z = r->state += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/** A number in [0, n), n > 0. */
static inline uint64_t unit_below(unit_random_t *r, uint64_t n)
{
    return unit_random64(r) % n;
}

/** True once in n times. */
static inline bool unit_once_in(unit_random_t *r, uint64_t n)
{
    return unit_below(r, n) == 0;
}

/** Seconds after which a test, or a process of it, counts as hung. Far more than any takes, however
 *  many others want the processors. */
#define UNIT_SECONDS 900

/** A test, run once for each _i in first .. end - 1. */
typedef struct unit_test {
    const TTest *test;
    int first, end;
} unit_test_t;

/** A suite of one case with these tests: UNIT_ONCE(test) or UNIT_LOOP(test, first, end). */
#define UNIT_SUITE(name, ...)                                                                      \
    unit_suite(name, (const unit_test_t[]){__VA_ARGS__},                                           \
               sizeof((const unit_test_t[]){__VA_ARGS__}) / sizeof(unit_test_t))
#define UNIT_ONCE(test) UNIT_LOOP(test, 0, 1)
#define UNIT_LOOP(test, first, end)                                                                \
    {                                                                                              \
        test, first, end                                                                           \
    }

static inline Suite *unit_suite(const char *name, const unit_test_t *tests, size_t ntests)
{
    Suite *suite = suite_create(name);
    TCase *tcase = tcase_create(name);

    tcase_set_timeout(tcase, UNIT_SECONDS);
    for (size_t i = 0; i < ntests; i++)
        tcase_add_loop_test(tcase, tests[i].test, tests[i].first, tests[i].end);
    suite_add_tcase(suite, tcase);
    return suite;
}

/** Runs and frees a suite; the value for main to return. */
static inline int unit_run_suite(Suite *suite)
{
    SRunner *runner = srunner_create(suite);

    printf("seed %" PRIu64 "\n", unit_seed());
    fflush(stdout);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/** To be called before that in a program with very many tests, none of which leaves anything behind
 * for the next: they run in this process. To make one for each takes longer than all else of such a
 * test. */
static inline void unit_in_one_process(void)
{
    setenv("CK_FORK", "no", 0);
    alarm(UNIT_SECONDS);
}

#define UNIT_RUN(...) unit_run_suite(UNIT_SUITE(__VA_ARGS__))
