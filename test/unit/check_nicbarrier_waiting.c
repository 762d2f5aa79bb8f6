/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What a waiting thread does by turns, and what it concludes from its yields. */
#include "coll_nicbarrier/team/waiting.h"

#include "test/unit/unit.h"

enum { USEC = 1000 };

/** What a thread has done that waited for a simulated time. */
typedef struct done {
    int progress, yields, sleeps, times, turns;
    uint64_t now;
} done_t;

/** Waits for `nsec`. A yield takes `yield` nanoseconds, in which another thread runs in its place
 *  where `shared`; a call of progress takes one microsecond, a nap 500. */
static done_t wait(nicbarrier_waiting_t *w, uint64_t nsec, uint64_t yield, bool shared)
{
    done_t d = {.now = 1000000};
    const uint64_t end = d.now + nsec;
    long displaced = 100;

    while (d.now < end) {
        const unsigned actions = nicbarrier_waiting_next(w);
        UNIT_CHECK(actions != 0);
        if ((actions & NICBARRIER_WAIT_PROGRESS) != 0) {
            d.progress++;
            d.now += USEC;
        }
        if ((actions & NICBARRIER_WAIT_YIELD) != 0) {
            d.yields++;
            d.now += yield;
            displaced += shared;
        }
        if ((actions & NICBARRIER_WAIT_SLEEP) != 0) {
            d.sleeps++;
            d.now += 500 * USEC;
        }
        if ((actions & NICBARRIER_WAIT_TIME) != 0) {
            d.times++;
            if (nicbarrier_waiting_is_due(w, d.now)) {
                d.turns++;
                nicbarrier_waiting_turn(w, d.now, displaced);
            }
        }
    }
    return d;
}

/* Mostly yields at first, and few readings of the clock. */
START_TEST(short_waits)
{
    nicbarrier_waiting_t w = {.start = 0};
    const done_t d = wait(&w, 50 * USEC, 500, false);

    ck_assert_int_eq(w.phase, NICBARRIER_SHORT);
    ck_assert_int_ge(d.yields, 64);
    ck_assert_int_eq(d.progress, d.yields / NICBARRIER_YIELDS_PER_PROGRESS);
    ck_assert_int_eq(d.times, d.progress);
    ck_assert_int_eq(d.sleeps, 0);
}
END_TEST

/* On a processor of its own a thread goes on with progress for ever, whatever a yield takes. */
START_TEST(alone)
{
    for (uint64_t yield = 100; yield <= 5 * USEC; yield *= 2) {
        nicbarrier_waiting_t w = {.start = 0};
        const done_t d = wait(&w, 50000 * USEC, yield, false);
        ck_assert_int_eq(d.sleeps, 0);
        ck_assert_int_eq(w.phase, NICBARRIER_AWAKE);
        ck_assert_int_gt(d.progress, 3 * (d.yields - 2000 / (int)(1 + yield / 100)));
        ck_assert_int_gt(d.turns, 100);
    }
}
END_TEST

/* Where others want the processor it sleeps by turns, and is awake for a while between. */
START_TEST(displaced)
{
    nicbarrier_waiting_t w = {.start = 0};
    const done_t d = wait(&w, 1000000 * USEC, 3 * USEC, true);

    ck_assert_int_gt(d.sleeps, 1000);
    ck_assert_int_gt(d.progress, d.sleeps);
    ck_assert_int_ge(d.turns, d.sleeps / (int)NICBARRIER_NAPS);
}
END_TEST

/* Of a phase: so many yields, and how often another thread ran. */
START_TEST(conclusions)
{
    static const struct {
        long displaced, yields;
        bool sleeps;
    } cases[] = {
        /* A processor of its own; now and then the kernel itself has something to do. */
        {0, 1, false},
        {0, 1000, false},
        {1, 25, false},
        {1, 3, false},
        /* Others compute, or wait like this: each yield lets them run, or preemption does. */
        {1, 1, true},
        {2, 1, true},
        {1, 2, true},
        {25, 25, true},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        nicbarrier_waiting_t w = {.phase = NICBARRIER_AWAKE, .displaced = 7};
        w.count = (unsigned)cases[i].yields * NICBARRIER_PROGRESS_PER_YIELD;
        nicbarrier_waiting_turn(&w, 1, 7 + cases[i].displaced);
        ck_assert_int_eq(w.phase, cases[i].sleeps ? NICBARRIER_ASLEEP : NICBARRIER_AWAKE);
        /* After naps it is awake again, whatever was counted. */
        nicbarrier_waiting_turn(&w, 2, 1000);
        ck_assert(!cases[i].sleeps || w.phase == NICBARRIER_AWAKE);
    }
}
END_TEST

/* Yields that let nobody run take 100 to 700 ns, by processor and kernel; others a time slice. */
START_TEST(yields)
{
    nicbarrier_waiting_t w = {.start = 1000};

    ck_assert_int_eq(nicbarrier_waiting_yielded(&w, 2000), NICBARRIER_YIELDED_UNKNOWN);
    w.count = 100;
    ck_assert_int_eq(nicbarrier_waiting_yielded(&w, 1000 + 100 * 700), NICBARRIER_YIELDED_ALONE);
    ck_assert_int_eq(nicbarrier_waiting_yielded(&w, 1000 + 100 * 700 + 3000000),
                     NICBARRIER_YIELDED_BRIEFLY);
    w.count = 8;
    ck_assert_int_eq(nicbarrier_waiting_yielded(&w, 1001), NICBARRIER_YIELDED_ALONE);
    ck_assert_int_eq(nicbarrier_waiting_yielded(&w, 1000 + 8 * 1000000), NICBARRIER_YIELDED_LONG);
    /* A long wait says nothing of it. */
    w.phase = NICBARRIER_AWAKE;
    ck_assert_int_eq(nicbarrier_waiting_yielded(&w, 1000 + 8 * 1000000),
                     NICBARRIER_YIELDED_UNKNOWN);
}
END_TEST

/* Which way waits begin after what yields have shown, from each way. */
START_TEST(beginnings)
{
    enum { LATER = 1000 * NICBARRIER_PHASE_NSEC };
    static const struct {
        int yielded;
        bool crowded;
        int of_free, of_contended, of_shared;
    } cases[] = {
        {NICBARRIER_YIELDED_UNKNOWN, false, NICBARRIER_FREE, NICBARRIER_CONTENDED,
         NICBARRIER_SHARED},
        {NICBARRIER_YIELDED_UNKNOWN, true, NICBARRIER_FREE, NICBARRIER_CONTENDED,
         NICBARRIER_SHARED},
        {NICBARRIER_YIELDED_ALONE, false, NICBARRIER_FREE, NICBARRIER_FREE, NICBARRIER_FREE},
        {NICBARRIER_YIELDED_ALONE, true, NICBARRIER_FREE, NICBARRIER_FREE, NICBARRIER_FREE},
        {NICBARRIER_YIELDED_BRIEFLY, false, NICBARRIER_SHARED, NICBARRIER_SHARED,
         NICBARRIER_SHARED},
        {NICBARRIER_YIELDED_LONG, false, NICBARRIER_CONTENDED, NICBARRIER_CONTENDED,
         NICBARRIER_CONTENDED},
        {NICBARRIER_YIELDED_LONG, true, NICBARRIER_SHARED, NICBARRIER_SHARED, NICBARRIER_SHARED},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const int wanted[] = {[NICBARRIER_FREE] = cases[i].of_free,
                              [NICBARRIER_CONTENDED] = cases[i].of_contended,
                              [NICBARRIER_SHARED] = cases[i].of_shared};
        for (int from = NICBARRIER_FREE; from <= NICBARRIER_SHARED; from++) {
            nicbarrier_spinning_t s = {.mode = from};
            nicbarrier_spinning_yielded(&s, cases[i].yielded, cases[i].crowded, LATER);
            ck_assert_int_eq(s.mode, wanted[from]);
        }
    }
}
END_TEST

/* Spins in which others have had the processor end that way, for a while, unless one in between was
 * quick. */
START_TEST(in_vain)
{
    nicbarrier_spinning_t s = {.mode = NICBARRIER_CONTENDED};
    const uint64_t now = 1000ULL * NICBARRIER_LONG_REST_NSEC;

    for (unsigned i = 1; i < 2 * NICBARRIER_SPINS_IN_VAIN; i++) {
        nicbarrier_spinning_spun(&s, i != NICBARRIER_SPINS_IN_VAIN, now);
        ck_assert_int_eq(s.mode, NICBARRIER_CONTENDED);
    }
    nicbarrier_spinning_spun(&s, true, now);
    ck_assert_int_eq(s.mode, NICBARRIER_SHARED);
    nicbarrier_spinning_yielded(&s, NICBARRIER_YIELDED_LONG, false, now + NICBARRIER_REST_NSEC - 1);
    ck_assert_int_eq(s.mode, NICBARRIER_SHARED);
    nicbarrier_spinning_yielded(&s, NICBARRIER_YIELDED_LONG, false, now + NICBARRIER_REST_NSEC);
    ck_assert_int_eq(s.mode, NICBARRIER_CONTENDED);
    /* Some of them once more, and then it stays for longer, up to a bound. */
    uint64_t rest = NICBARRIER_REST_NSEC;
    for (int round = 0; round < 20; round++) {
        rest = 2 * rest < NICBARRIER_LONG_REST_NSEC ? 2 * rest : NICBARRIER_LONG_REST_NSEC;
        for (unsigned i = 1; i <= NICBARRIER_TRIES; i++) {
            ck_assert_int_eq(s.mode, NICBARRIER_CONTENDED);
            nicbarrier_spinning_spun(&s, true, now);
        }
        nicbarrier_spinning_yielded(&s, NICBARRIER_YIELDED_LONG, false, now + rest - 1);
        ck_assert_int_eq(s.mode, NICBARRIER_SHARED);
        nicbarrier_spinning_yielded(&s, NICBARRIER_YIELDED_LONG, false, now + rest);
    }
    nicbarrier_spinning_helped(&s);
    for (unsigned i = 0; i < NICBARRIER_SPINS_IN_VAIN; i++)
        nicbarrier_spinning_spun(&s, true, now);
    nicbarrier_spinning_yielded(&s, NICBARRIER_YIELDED_LONG, false, now + NICBARRIER_REST_NSEC);
    ck_assert_int_eq(s.mode, NICBARRIER_CONTENDED);
}
END_TEST

int main(void)
{
    return UNIT_RUN("nicbarrier_waiting", UNIT_ONCE(short_waits), UNIT_ONCE(alone),
                    UNIT_ONCE(displaced), UNIT_ONCE(conclusions), UNIT_ONCE(yields),
                    UNIT_ONCE(beginnings), UNIT_ONCE(in_vain));
}
