/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Credit, over a network that keeps no order: what all senders have a receiver keep is
 * bounded, they get fair shares, all comes back, and operations go on though receives do not. */
#include "common/transport/row/credit.h"

#include <string.h>

#include "test/unit/unit.h"

enum { SENDERS = 20, FLIGHTS = 4096, STORED = 4096 };

/** What one process tells another. Headers and limits may overtake all others. */
typedef enum kind { OPERATION, PAYLOAD, HEADER, LIMIT } kind_t;

typedef struct flight {
    kind_t kind;
    unsigned sender;
    uint64_t value;
} flight_t;

typedef struct stored {
    unsigned sender;
    uint64_t bytes;
    bool waits; /* for a receive */
} stored_t;

typedef struct world {
    unit_random_t r;
    onic_credit_pool_t pool;
    onic_credit_user_t sender[SENDERS];
    onic_credit_t credit[SENDERS];
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
    onic_credit_pool_init(&w.pool, bytes, processes);
    w.processes = processes;
}

/** The receiver meets a sender, which knows without a word what it may send. */
static void meet(unsigned i)
{
    if (w.pool.first == 0 || w.met[i])
        return;
    w.met[i] = true;
    onic_credit_pool_meet(&w.pool, &w.sender[i], i < w.processes);
}

static void tell(kind_t kind, unsigned sender, uint64_t value)
{
    UNIT_CHECK(w.nflights < FLIGHTS);
    w.flight[w.nflights++] = (flight_t){kind, sender, value};
}

static void grant(unsigned i)
{
    tell(LIMIT, i, onic_credit_pool_grant(&w.pool, &w.sender[i], true));
    w.limits++;
}

/** True where the payload went along. */
static bool send_one(unsigned i, uint64_t bytes)
{
    const bool has =
        onic_credit_take(&w.credit[i], bytes, w.pool.first > 0 ? ONIC_CREDIT_FLOOR : 0);

    tell(has ? PAYLOAD : HEADER, i, bytes);
    return has;
}

/** An operation, which may take all credit. False where it must wait. */
static bool operate(unsigned i, uint64_t bytes)
{
    const bool has = onic_credit_take(&w.credit[i], bytes, 0);

    if (has)
        tell(OPERATION, i, bytes);
    return has;
}

static void asked(unsigned i, uint64_t bytes)
{
    if (onic_credit_pool_lacks(&w.pool, &w.sender[i], bytes))
        grant(i);
}

static void free_stored(size_t at)
{
    const stored_t s = w.stored[at];

    w.stored[at] = w.stored[--w.nstored];
    if (onic_credit_pool_freed(&w.pool, &w.sender[s.sender], s.bytes, s.waits))
        grant(s.sender);
}

/** No more comes than its limit allows. */
static void arrived(onic_credit_user_t *s, uint64_t bytes, bool waits)
{
    UNIT_CHECK(bytes <= s->limit - s->arrived);
    onic_credit_pool_arrived(&w.pool, s, bytes, waits);
}

static void handle(const flight_t *f)
{
    const unsigned i = f->sender;

    meet(i);
    switch (f->kind) {
    case OPERATION:
    case PAYLOAD:
        arrived(&w.sender[i], f->value, f->kind == PAYLOAD);
        UNIT_CHECK(w.nstored < STORED);
        w.stored[w.nstored++] = (stored_t){i, f->value, f->kind == PAYLOAD};
        break;
    case HEADER:
        asked(i, f->value);
        break;
    case LIMIT:
        onic_credit_raise(&w.credit[i], f->value);
        break;
    }
}

/** A message arrives, unless it is for one that is stopped. */
static bool deliver(size_t at)
{
    flight_t f = w.flight[at];

    if (w.stopped[f.sender] && f.kind >= LIMIT)
        return false;
    /* What takes credit keeps its order. */
    for (size_t i = 0; i < at && f.kind <= PAYLOAD; i++)
        if (w.flight[i].sender == f.sender && w.flight[i].kind <= PAYLOAD)
            at = i;
    f = w.flight[at];
    memmove(&w.flight[at], &w.flight[at + 1], (--w.nflights - at) * sizeof(f));
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
    uint64_t held = 0, stored = 0, holders = 0, waits[SENDERS] = {0};

    for (size_t i = 0; i < w.nstored; i++)
        waits[w.stored[i].sender] += w.stored[i].waits ? w.stored[i].bytes : 0;
    for (unsigned i = 0; i < SENDERS; i++) {
        const uint64_t holds = onic_credit_pool_holds(&w.sender[i]);
        const uint64_t first = w.sender[i].lost || !w.met[i] ? 0 : w.pool.first;
        const uint64_t least = first == 0 ? 0 : waits[i] + ONIC_CREDIT_FLOOR;

        held += holds > first && holds > least ? holds : first > least ? first : least;
        holders += holds != 0;
        UNIT_CHECK(waits[i] == w.sender[i].waits);
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
    onic_credit_pool_forget(&w.pool, &w.sender[i]);
    UNIT_CHECK(w.sender[i].arrived == w.sender[i].limit);
    UNIT_CHECK(!onic_credit_pool_lacks(&w.pool, &w.sender[i], 1));
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

            if (w.nflights < FLIGHTS / 2 && !w.stopped[i]) {
                if (unit_once_in(&w.r, 2))
                    (void)send_one(i, unit_below(&w.r, most));
                else
                    (void)operate(i, unit_below(&w.r, most));
            }
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
            UNIT_CHECK(!w.sender[i].lost || onic_credit_pool_holds(&w.sender[i]) == 0);
    }
}
END_TEST

/* All processes of the job send what they may before the receiver has said a word. */
START_TEST(first_credit_of_a_large_job)
{
    static const unsigned processes[] = {1, 2, 64, 1000, 10000, 100000};
    static onic_credit_user_t sender[100000 + 500];
    const unsigned n = processes[_i];
    onic_credit_pool_t *p = &w.pool;
    uint64_t bytes;

    memset(sender, 0, sizeof(sender));
    begin_job(7, _i % 2 ? 64 << 20 : 1 << 20, n);
    bytes = p->bytes;
    UNIT_CHECK(p->first >= ONIC_CREDIT_FLOOR + 1024 && p->first * n <= bytes / 5 * 4);
    UNIT_CHECK(bytes <= 64 << 20 || bytes <= (uint64_t)n * 20480);
    for (unsigned i = 0; i < n; i++) {
        onic_credit_pool_meet(p, &sender[i], true);
        arrived(&sender[i], p->first, false);
        UNIT_CHECK(i % 7 > 0 || onic_credit_pool_grant(p, &sender[i], true) >= p->first);
        UNIT_CHECK(p->held + p->set_aside <= p->bytes);
    }
    UNIT_CHECK(p->bytes == bytes && p->set_aside == 0);
    /* Those of other jobs come on top only where nothing is free. */
    for (unsigned i = n; i < n + 500; i++) {
        onic_credit_pool_meet(p, &sender[i], false);
        arrived(&sender[i], p->first, false);
        UNIT_CHECK(p->held <= p->bytes && p->bytes <= bytes + 500 * p->first);
    }
}
END_TEST

/* A limit that is older, or that nobody can have, changes nothing. */
START_TEST(odd_limits)
{
    onic_credit_pool_t *p = &w.pool;

    begin(1, 1000);
    UNIT_CHECK(onic_credit_pool_grant(p, &w.sender[0], true) == 500);
    UNIT_CHECK(onic_credit_pool_lacks(p, &w.sender[1], UINT64_MAX));
    (void)onic_credit_pool_grant(p, &w.sender[1], true);
    check_bounds();
    onic_credit_raise(&w.credit[0], 100);
    onic_credit_raise(&w.credit[0], 50);
    UNIT_CHECK(onic_credit_take(&w.credit[0], 100, 0) && !onic_credit_take(&w.credit[0], 1, 0));
}
END_TEST

/* ---- shares ---------------------------------------------------------------------------------- */

/* No message for a limit that would not help, nor for one that is on its way. */
START_TEST(only_what_helps)
{
    onic_credit_pool_t *p = &w.pool;
    onic_credit_user_t *a = &w.sender[0], *b = &w.sender[1];

    begin(6, 1000);
    UNIT_CHECK(onic_credit_pool_grant(p, a, true) == 500);
    arrived(a, 400, false);
    UNIT_CHECK(onic_credit_pool_grant(p, b, true) == 166);
    arrived(b, 146, false);
    onic_credit_pool_forget(p, a);
    /* Of the 600 that a leaves b may hold a third. */
    UNIT_CHECK(!onic_credit_pool_lacks(p, b, 20) && !onic_credit_pool_lacks(p, b, 20 + 35));
    UNIT_CHECK(onic_credit_pool_lacks(p, b, 21) && onic_credit_pool_lacks(p, b, 20 + 34));
    UNIT_CHECK(onic_credit_pool_grant(p, b, true) == 200 && !onic_credit_pool_lacks(p, b, 55));
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
        const uint64_t got = onic_credit_pool_holds(&w.sender[i]);
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
    onic_credit_user_t *last = &w.sender[SENDERS - 1];

    begin_job(3, 1 << 20, SENDERS);
    for (unsigned i = 0; i < SENDERS; i++) {
        meet(i);
        if (i < SENDERS - 1)
            (void)onic_credit_pool_grant(&w.pool, &w.sender[i], true);
    }
    for (int n = 0; n < 10; n++) {
        arrived(last, w.pool.first, false);
        UNIT_CHECK(onic_credit_pool_freed(&w.pool, last, w.pool.first, false));
        (void)onic_credit_pool_grant(&w.pool, last, true);
        UNIT_CHECK(onic_credit_pool_holds(last) >= w.pool.first);
    }
}
END_TEST

/* Those that are met and send nothing leave half of the pool, whoever is met first; one that lacks
 * credit gets its share of that. */
START_TEST(idle_ones_leave_half)
{
    onic_credit_user_t *one = &w.sender[0];
    const uint64_t bytes = 16 << 20, fair = bytes / 2 / SENDERS;

    begin_job(3, bytes, SENDERS);
    for (unsigned i = 0; i < SENDERS / 2; i++) {
        meet(i);
        UNIT_CHECK(onic_credit_pool_grant(&w.pool, &w.sender[i], false) == fair);
    }
    arrived(one, fair, false);
    UNIT_CHECK(onic_credit_pool_lacks(&w.pool, one, 1000));
    UNIT_CHECK(onic_credit_pool_grant(&w.pool, one, true) > 2 * fair);
    for (unsigned i = SENDERS / 2; i < SENDERS; i++) {
        meet(i);
        UNIT_CHECK(onic_credit_pool_grant(&w.pool, &w.sender[i], false) > fair * 2 / 3);
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

/* Payload takes all that it can get, and no receive comes. Each sender's operations go on: one at a
 * time has credit, whatever else has come of it, and credit comes back without a question. */
START_TEST(operations_go_on)
{
    const uint64_t longest = ONIC_CREDIT_FLOOR / 2;

    for (int round = 0; round < 50; round++) {
        const uint64_t bytes = UINT64_C(1) << (20 + round % 4);

        begin_job(unit_seed() + (uint64_t)round, bytes, SENDERS);
        for (unsigned i = 0; i < SENDERS; i++)
            w.credit[i].limit = w.pool.first;
        for (int n = 0; n < 2000; n++) {
            const unsigned i = (unsigned)unit_below(&w.r, SENDERS);

            (void)send_one(i, 1 + unit_below(&w.r, n < 1500 ? bytes / 40 : bytes / 2000));
            settle();
        }
        settle();
        for (int n = 0; n < 3000; n++) {
            const unsigned i = (unsigned)unit_below(&w.r, SENDERS);
            unsigned sent = 0;

            while (operate(i, 1 + unit_below(&w.r, longest)))
                sent++;
            UNIT_CHECK(sent > 0);
            settle();
            for (size_t k = 0; k < w.nstored;)
                if (w.stored[k].waits)
                    k++;
                else
                    free_stored(k);
            settle();
            check_bounds();
        }
        while (w.nstored > 0)
            free_stored(0);
        settle();
        for (unsigned i = 0; i < SENDERS; i++) {
            UNIT_CHECK(w.sender[i].waits == 0 && w.sender[i].freed == w.credit[i].sent);
            const bool at_once = send_one(i, 1000);

            settle(); /* else it has asked */
            UNIT_CHECK(at_once || send_one(i, 1000));
        }
    }
}
END_TEST

/* What a lost sender had sent still comes, and goes. */
START_TEST(late_ones_are_freed)
{
    onic_credit_user_t *s = &w.sender[0];

    begin_job(8, 1 << 20, 2);
    meet(0);
    arrived(s, 1000, true);
    onic_credit_pool_forget(&w.pool, s);
    onic_credit_pool_arrived(&w.pool, s, 300, false);
    ck_assert_uint_eq(w.pool.held, 1300);
    UNIT_CHECK(!onic_credit_pool_freed(&w.pool, s, 300, false));
    UNIT_CHECK(!onic_credit_pool_freed(&w.pool, s, 1000, true));
    ck_assert_uint_eq(w.pool.held, 0);
    ck_assert_uint_eq(w.pool.holders, 0);
}
END_TEST

int main(void)
{
    return UNIT_RUN("credit", UNIT_ONCE(operations_go_on), UNIT_ONCE(late_ones_are_freed),
                    UNIT_LOOP(first_credit_of_a_large_job, 0, 6),
                    UNIT_ONCE(never_more_than_the_pool), UNIT_ONCE(odd_limits),
                    UNIT_ONCE(stopped_ones_starve_nobody), UNIT_ONCE(few_messages),
                    UNIT_ONCE(first_credit_stays), UNIT_ONCE(only_what_helps),
                    UNIT_ONCE(comes_back_by_itself), UNIT_ONCE(idle_ones_leave_half));
}
