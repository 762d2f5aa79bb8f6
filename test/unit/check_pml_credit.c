/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Credit for payload: bounded, fair, never a reason to wait. */
#include "pml_superpipe/matching/credit.h"

#include <string.h>

#include "test/unit/unit.h"

enum { SENDERS = 20, FLIGHTS = 4096, STORED = 4096 };

/** What one process tells another. Any message may overtake any other. */
typedef enum kind { PAYLOAD, HEADER, LIMIT } kind_t;

typedef struct flight {
    kind_t kind;
    unsigned sender;
    uint64_t value;
} flight_t;

typedef struct stored {
    unsigned sender;
    uint64_t bytes;
} stored_t;

typedef struct world {
    unit_random_t r;
    superpipe_pool_t pool;
    superpipe_sender_t sender[SENDERS];
    superpipe_credit_t credit[SENDERS];
    bool stopped[SENDERS];
    bool met[SENDERS];  /* by the receiver */
    unsigned processes; /* of the job: the first so many senders */
    flight_t flight[FLIGHTS];
    size_t nflights;
    stored_t stored[STORED];
    size_t nstored;
    uint64_t limits; /* messages that told one */
} world_t;

static world_t w;

static void begin(uint64_t seed, uint64_t bytes)
{
    memset(&w, 0, sizeof(w));
    w.r.state = seed;
    w.pool.bytes = bytes;
}

/** The same where each has a first credit, and a part of them is of the job. */
static void begin_job(uint64_t seed, uint64_t bytes, unsigned processes)
{
    begin(seed, 0);
    superpipe_pool_init(&w.pool, bytes, processes);
    w.processes = processes;
}

/** The receiver meets a sender, which knows without a word what it may send. */
static void meet(unsigned i)
{
    if (w.pool.first == 0 || w.met[i])
        return;
    w.met[i] = true;
    superpipe_pool_meet(&w.pool, &w.sender[i], i < w.processes);
}

static void tell(kind_t kind, unsigned sender, uint64_t value)
{
    UNIT_CHECK(w.nflights < FLIGHTS);
    w.flight[w.nflights++] = (flight_t){kind, sender, value};
}

static void grant(unsigned i)
{
    tell(LIMIT, i, superpipe_pool_grant(&w.pool, &w.sender[i], true));
    w.limits++;
}

/** True where the payload went along. */
static bool send_one(unsigned i, uint64_t bytes)
{
    const bool has = superpipe_credit_take(&w.credit[i], bytes);

    tell(has ? PAYLOAD : HEADER, i, bytes);
    return has;
}

static void asked(unsigned i, uint64_t bytes)
{
    if (superpipe_pool_lacks(&w.pool, &w.sender[i], bytes))
        grant(i);
}

static void free_stored(size_t at)
{
    const stored_t s = w.stored[at];

    w.stored[at] = w.stored[--w.nstored];
    if (superpipe_pool_freed(&w.pool, &w.sender[s.sender], s.bytes))
        grant(s.sender);
}

/** No more comes than its limit allows. */
static void arrived(superpipe_sender_t *s, uint64_t bytes)
{
    UNIT_CHECK(bytes <= s->limit - s->arrived);
    superpipe_pool_arrived(s, bytes);
}

static void handle(const flight_t *f)
{
    const unsigned i = f->sender;

    meet(i);
    switch (f->kind) {
    case PAYLOAD:
        arrived(&w.sender[i], f->value);
        UNIT_CHECK(w.nstored < STORED);
        w.stored[w.nstored++] = (stored_t){i, f->value};
        break;
    case HEADER:
        asked(i, f->value);
        break;
    case LIMIT:
        superpipe_credit_raise(&w.credit[i], f->value);
        break;
    }
}

/** A message arrives, unless it is for one that is stopped. */
static bool deliver(size_t at)
{
    const flight_t f = w.flight[at];

    if (w.stopped[f.sender] && f.kind >= LIMIT)
        return false;
    w.flight[at] = w.flight[--w.nflights];
    handle(&f);
    return true;
}

/** Everything that can arrive does. */
static void settle(void)
{
    for (size_t i = 0; i < w.nflights;)
        i = deliver(i) ? 0 : i + 1;
}

static void check_bounds(void)
{
    uint64_t held = 0, stored = 0, holders = 0;

    for (unsigned i = 0; i < SENDERS; i++) {
        const uint64_t holds = superpipe_pool_holds(&w.sender[i]);
        held += holds > w.pool.first || w.sender[i].lost || !w.met[i] ? holds : w.pool.first;
        holders += holds != 0;
        UNIT_CHECK(w.sender[i].freed <= w.sender[i].arrived);
        UNIT_CHECK(w.sender[i].arrived <= w.sender[i].limit);
        UNIT_CHECK(w.sender[i].lost || !w.met[i] || w.credit[i].limit <= w.sender[i].limit);
        UNIT_CHECK(w.credit[i].sent <= w.credit[i].limit);
    }
    for (size_t i = 0; i < w.nstored; i++)
        stored += w.stored[i].bytes;
    UNIT_CHECK(held == w.pool.held && holders == w.pool.holders);
    UNIT_CHECK(stored <= held && held + w.pool.set_aside <= w.pool.bytes);
}

/** A sender dies: what it has sent may still be on its way, but is not taken. */
static void lose(unsigned i)
{
    size_t n = 0;

    for (size_t k = 0; k < w.nflights; k++)
        if (w.flight[k].sender != i)
            w.flight[n++] = w.flight[k];
    w.nflights = n;
    w.stopped[i] = true;
    meet(i);
    superpipe_pool_forget(&w.pool, &w.sender[i]);
    UNIT_CHECK(w.sender[i].arrived == w.sender[i].limit);
    UNIT_CHECK(!superpipe_pool_lacks(&w.pool, &w.sender[i], 1));
}

/* ---- bounds ---------------------------------------------------------------------------------- */

START_TEST(never_more_than_the_pool)
{
    for (int round = 0; round < 20; round++) {
        unit_random_t r = {unit_seed() + (uint64_t)round};
        const uint64_t bytes = unit_random64(&r);

        begin(unit_random64(&r), bytes >> (30 + unit_below(&r, 34)));
        if (round % 2 == 1)
            begin_job(w.r.state, w.pool.bytes, 1 + (unsigned)unit_below(&w.r, 2 * SENDERS));
        for (unsigned i = 0; i < SENDERS; i++)
            w.credit[i].limit = w.pool.first;
        const uint64_t most = 1 + unit_below(&w.r, w.pool.bytes / 4 + 2);

        for (int step = 0; step < 20000; step++) {
            const unsigned i = (unsigned)unit_below(&w.r, SENDERS);

            if (w.nflights < FLIGHTS / 2 && !w.stopped[i])
                (void)send_one(i, unit_below(&w.r, most));
            if (w.nflights > 0)
                (void)deliver(unit_below(&w.r, w.nflights));
            if (w.nstored > 0 && (unit_once_in(&w.r, 3) || w.nstored > STORED / 2))
                free_stored(unit_below(&w.r, w.nstored));
            if (unit_once_in(&w.r, 1000))
                w.stopped[i] = !w.stopped[i] || w.sender[i].lost;
            if (unit_once_in(&w.r, 4000))
                lose(i);
            check_bounds();
        }
        /* When all is over, nothing but unused credit is held, by those that live. */
        while (w.nstored > 0)
            free_stored(0);
        for (unsigned i = 0; i < SENDERS; i++)
            UNIT_CHECK(!w.sender[i].lost || superpipe_pool_holds(&w.sender[i]) == 0);
    }
}
END_TEST

/* All processes of the job send what they may before the receiver has said a word. */
START_TEST(first_credit_of_a_large_job)
{
    static const unsigned processes[] = {1, 2, 64, 1000, 10000, 100000};
    static superpipe_sender_t sender[100000 + 500];
    const unsigned n = processes[_i];
    superpipe_pool_t *p = &w.pool;
    uint64_t bytes;

    memset(sender, 0, sizeof(sender));
    begin_job(7, _i % 2 ? 64 << 20 : 1 << 20, n);
    bytes = p->bytes;
    UNIT_CHECK(p->first >= 3 * SUPERPIPE_RECORD && p->first * n <= bytes / 4);
    UNIT_CHECK(bytes <= 64 << 20 || bytes <= (uint64_t)n * 4096);
    for (unsigned i = 0; i < n; i++) {
        superpipe_pool_meet(p, &sender[i], true);
        arrived(&sender[i], p->first);
        UNIT_CHECK(i % 7 > 0 || superpipe_pool_grant(p, &sender[i], true) >= p->first);
        UNIT_CHECK(p->held + p->set_aside <= p->bytes);
    }
    UNIT_CHECK(p->bytes == bytes && p->set_aside == 0);
    /* Those of other jobs come on top only where nothing is free. */
    for (unsigned i = n; i < n + 500; i++) {
        superpipe_pool_meet(p, &sender[i], false);
        arrived(&sender[i], p->first);
        UNIT_CHECK(p->held <= p->bytes && p->bytes <= bytes + 500 * p->first);
    }
}
END_TEST

/* A limit that is older, or that nobody can have, changes nothing. */
START_TEST(odd_limits)
{
    superpipe_pool_t *p = &w.pool;

    begin(1, 1000);
    UNIT_CHECK(superpipe_pool_grant(p, &w.sender[0], true) == 500);
    UNIT_CHECK(superpipe_pool_lacks(p, &w.sender[1], UINT64_MAX));
    (void)superpipe_pool_grant(p, &w.sender[1], true);
    check_bounds();
    superpipe_credit_raise(&w.credit[0], 100);
    superpipe_credit_raise(&w.credit[0], 50);
    UNIT_CHECK(superpipe_credit_take(&w.credit[0], 100) && !superpipe_credit_take(&w.credit[0], 1));
}
END_TEST

/* ---- shares ---------------------------------------------------------------------------------- */

/* No message for a limit that would not help, nor for one that is on its way. */
START_TEST(only_what_helps)
{
    superpipe_pool_t *p = &w.pool;
    superpipe_sender_t *a = &w.sender[0], *b = &w.sender[1];

    begin(6, 1000);
    UNIT_CHECK(superpipe_pool_grant(p, a, true) == 500);
    arrived(a, 400);
    UNIT_CHECK(superpipe_pool_grant(p, b, true) == 166);
    arrived(b, 146);
    superpipe_pool_forget(p, a);
    /* Of the 600 that a leaves b may hold a third. */
    UNIT_CHECK(!superpipe_pool_lacks(p, b, 20) && !superpipe_pool_lacks(p, b, 20 + 35));
    UNIT_CHECK(superpipe_pool_lacks(p, b, 21) && superpipe_pool_lacks(p, b, 20 + 34));
    UNIT_CHECK(superpipe_pool_grant(p, b, true) == 200 && !superpipe_pool_lacks(p, b, 55));
    check_bounds();
}
END_TEST

/* One after another takes what it gets and stops for good, its payload under way or here. */
START_TEST(stopped_ones_starve_nobody)
{
    const uint64_t bytes = 8 << 20;

    begin(2, bytes);
    for (unsigned i = 0; i < SENDERS; i++) {
        UNIT_CHECK(!send_one(i, 64));
        settle();
        const uint64_t got = superpipe_pool_holds(&w.sender[i]);
        UNIT_CHECK(got >= bytes / ((i + 1) * (i + 2)) - 1);
        UNIT_CHECK(i % 2 == 0 || send_one(i, got));
        w.stopped[i] = true;
        check_bounds();
    }
}
END_TEST

/* Whatever those that were here first hold, without using it, the others keep their first credit.
 */
START_TEST(first_credit_stays)
{
    superpipe_sender_t *last = &w.sender[SENDERS - 1];

    begin_job(3, 1 << 20, SENDERS);
    for (unsigned i = 0; i < SENDERS; i++) {
        meet(i);
        if (i < SENDERS - 1)
            (void)superpipe_pool_grant(&w.pool, &w.sender[i], true);
    }
    for (int n = 0; n < 10; n++) {
        arrived(last, w.pool.first);
        UNIT_CHECK(superpipe_pool_freed(&w.pool, last, w.pool.first));
        (void)superpipe_pool_grant(&w.pool, last, true);
        UNIT_CHECK(superpipe_pool_holds(last) >= w.pool.first);
    }
}
END_TEST

/* Those that are met and send nothing leave half of the pool, whoever is met first; one that lacks
 * credit gets its share of that. */
START_TEST(idle_ones_leave_half)
{
    superpipe_sender_t *one = &w.sender[0];
    const uint64_t bytes = 16 << 20, fair = bytes / 2 / SENDERS;

    begin_job(3, bytes, SENDERS);
    for (unsigned i = 0; i < SENDERS / 2; i++) {
        meet(i);
        UNIT_CHECK(superpipe_pool_grant(&w.pool, &w.sender[i], false) == fair);
    }
    arrived(one, fair);
    UNIT_CHECK(superpipe_pool_lacks(&w.pool, one, 1000));
    UNIT_CHECK(superpipe_pool_grant(&w.pool, one, true) > 2 * fair);
    for (unsigned i = SENDERS / 2; i < SENDERS; i++) {
        meet(i);
        UNIT_CHECK(superpipe_pool_grant(&w.pool, &w.sender[i], false) > fair * 2 / 3);
    }
    check_bounds();
}
END_TEST

/* Limits are told when about half has been used, not for each message; and who is served keeps its
 * credit. */
START_TEST(few_messages)
{
    const uint64_t bytes = 1 << 16;
    const int n = 100000;

    begin(4, bytes);
    for (int i = 0; i < n; i++) {
        UNIT_CHECK(send_one(0, 8) || i == 0);
        settle();
        if (w.nstored > 0)
            free_stored(0);
        settle();
    }
    ck_assert_uint_le(w.limits, 2 + 8 * (uint64_t)n / (bytes / 4));
}
END_TEST

/* Payload that waited is received: its sender, which is silent, has credit again. */
START_TEST(comes_back_by_itself)
{
    begin(5, 1000);
    UNIT_CHECK(!send_one(0, 100));
    settle();
    while (send_one(0, 100))
        settle();
    settle();
    ck_assert_uint_eq(w.nstored, 5);
    UNIT_CHECK(!send_one(0, 100));
    settle();
    while (w.nstored > 0)
        free_stored(0);
    settle();
    UNIT_CHECK(send_one(0, 100));
}
END_TEST

int main(void)
{
    return UNIT_RUN("pml credit", UNIT_LOOP(first_credit_of_a_large_job, 0, 6),
                    UNIT_ONCE(never_more_than_the_pool), UNIT_ONCE(odd_limits),
                    UNIT_ONCE(stopped_ones_starve_nobody), UNIT_ONCE(few_messages),
                    UNIT_ONCE(first_credit_stays), UNIT_ONCE(only_what_helps),
                    UNIT_ONCE(comes_back_by_itself), UNIT_ONCE(idle_ones_leave_half));
}
