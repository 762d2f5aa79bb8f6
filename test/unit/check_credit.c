/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Credit, between processes whose limits may overtake one another: what each may have
 *  another one keep is bounded, all comes back, and operations go on though receives do not. */
#include "common/transport/row/credit.h"

#include <string.h>

#include "test/unit/unit.h"

enum { FLIGHTS = 4096, STORED = 4096 };

typedef struct message {
    uint64_t bytes;
    bool waits; /* for a receive */
} message_t;

/** One sender and its receiver. */
typedef struct world {
    unit_random_t r;
    uint64_t window;
    onic_account_t a; /* of the sender, and of the receiver */
    message_t flight[FLIGHTS], stored[STORED];
    size_t nflights, nstored;
    uint64_t limit[FLIGHTS]; /* limits under way */
    size_t nlimits;
    uint64_t told; /* limits, ever */
} world_t;

static world_t w;

static void begin(uint64_t seed, uint64_t window)
{
    memset(&w, 0, sizeof(w));
    w.r.state = seed;
    w.window = w.a.credit.limit = w.a.sender.window = w.a.sender.told = window;
}

/** False where it must wait. What waits for a receive leaves the floor. */
static bool send_one(uint64_t bytes, bool waits)
{
    const bool has = onic_credit_take(&w.a.credit, bytes, waits ? ONIC_CREDIT_FLOOR : 0);

    UNIT_CHECK(w.nflights < FLIGHTS);
    if (has)
        w.flight[w.nflights++] = (message_t){bytes, waits};
    return has;
}

static void arrive(void)
{
    UNIT_CHECK(w.nstored < STORED);
    w.stored[w.nstored++] = w.flight[0];
    w.a.sender.arrived += w.flight[0].bytes;
    memmove(&w.flight[0], &w.flight[1], --w.nflights * sizeof(w.flight[0]));
}

static void free_stored(size_t at)
{
    const uint64_t bytes = w.stored[at].bytes;

    w.stored[at] = w.stored[--w.nstored];
    if (!onic_credit_freed(&w.a.sender, bytes))
        return;
    UNIT_CHECK(w.nlimits < FLIGHTS);
    w.limit[w.nlimits++] = onic_credit_limit(&w.a.sender);
    w.told++;
}

static void tell(size_t at)
{
    onic_credit_raise(&w.a.credit, w.limit[at]);
    w.limit[at] = w.limit[--w.nlimits];
}

/** All that is under way arrives. */
static void settle(void)
{
    while (w.nflights > 0)
        arrive();
    while (w.nlimits > 0)
        tell(0);
}

static void free_operations(void)
{
    for (size_t i = 0; i < w.nstored;)
        if (w.stored[i].waits)
            i++;
        else
            free_stored(i);
}

static void check_bounds(void)
{
    uint64_t stored = 0;

    for (size_t i = 0; i < w.nstored; i++)
        stored += w.stored[i].bytes;
    UNIT_CHECK(stored == w.a.sender.arrived - w.a.sender.freed && stored <= w.window);
    UNIT_CHECK(w.a.sender.arrived <= w.a.sender.told && w.a.credit.sent <= w.a.credit.limit);
    UNIT_CHECK(w.a.credit.limit <= w.a.sender.told);
}

/** The least window, and longer ones. */
static uint64_t some_window(unit_random_t *r)
{
    return ONIC_CREDIT_LEAST + (unit_once_in(r, 3) ? 0 : unit_below(r, UINT64_C(1) << 20));
}

/* Together all processes of the job have a receiver keep what it wants to spend, or the least. */
START_TEST(windows)
{
    static const uint64_t processes[] = {1, 2, 64, 1000, 100000};
    const uint64_t n = processes[_i], bytes = 64 << 20, all = n * onic_credit_window(bytes, n);

    UNIT_CHECK(all <= bytes || all == n * ONIC_CREDIT_LEAST);
    UNIT_CHECK(all + n > bytes);
}
END_TEST

START_TEST(never_more_than_the_window)
{
    for (int round = 0; round < 20; round++) {
        unit_random_t r = {unit_seed() + (uint64_t)round};

        begin(unit_random64(&r), some_window(&r));
        for (int step = 0; step < 20000; step++) {
            if (w.nflights < FLIGHTS / 2)
                (void)send_one(unit_below(&w.r, w.window / 4), unit_once_in(&w.r, 2));
            if (w.nflights > 0 && unit_once_in(&w.r, 2))
                arrive();
            if (w.nlimits > 0 && unit_once_in(&w.r, 3))
                tell(unit_below(&w.r, w.nlimits));
            if (w.nstored > 0 && (unit_once_in(&w.r, 2) || w.nstored > STORED / 2))
                free_stored(unit_below(&w.r, w.nstored));
            check_bounds();
        }
    }
}
END_TEST

/* A limit that is older changes nothing. */
START_TEST(old_limits)
{
    onic_credit_t c = {0};

    onic_credit_raise(&c, 100);
    onic_credit_raise(&c, 50);
    UNIT_CHECK(onic_credit_take(&c, 100, 0) && !onic_credit_take(&c, 1, 0));
}
END_TEST

/* Limits are told when about half of the window has been used, not for each message; and who is
 * served keeps its credit. */
START_TEST(few_limits)
{
    const int n = 100000;

    begin(4, 4 * ONIC_CREDIT_LEAST);
    for (int i = 0; i < n; i++) {
        UNIT_CHECK(send_one(8, true));
        settle();
        free_stored(0);
        settle();
    }
    ck_assert_uint_le(w.told, 8 * (uint64_t)n / (w.window / 3));
}
END_TEST

/* What waits for receives takes all that it can get, and no receive comes. Operations go on: one at
 * a time has credit, whatever came before, and credit comes back without a question. */
START_TEST(operations_go_on)
{
    const uint64_t longest = ONIC_CREDIT_FLOOR / 2;

    for (int round = 0; round < 200; round++) {
        unit_random_t r = {unit_seed() + (uint64_t)round};

        begin(unit_random64(&r), some_window(&r));
        for (int n = 0; n < 3000; n++) {
            unsigned sent = 0;

            if (unit_once_in(&w.r, 2))
                (void)send_one(1 + unit_below(&w.r, w.window / 16), true);
            if (unit_once_in(&w.r, 100) && w.nstored > 0) {
                const size_t at = unit_below(&w.r, w.nstored);

                free_stored(at);
                settle();
            }
            while (send_one(1 + unit_below(&w.r, longest), false))
                sent++;
            UNIT_CHECK(sent > 0);
            settle();
            free_operations();
            settle();
            check_bounds();
        }
        while (w.nstored > 0)
            free_stored(0);
        settle();
        UNIT_CHECK(send_one((w.window - ONIC_CREDIT_FLOOR) / 2, true));
    }
}
END_TEST

int main(void)
{
    return UNIT_RUN("credit", UNIT_ONCE(operations_go_on), UNIT_LOOP(windows, 0, 5),
                    UNIT_ONCE(never_more_than_the_window), UNIT_ONCE(old_limits),
                    UNIT_ONCE(few_limits));
}
