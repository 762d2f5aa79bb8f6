/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Loans, run by many origins and one target over a network that keeps no order and loses what is
 * said in windows that are gone: the target never keeps more than it has, both sides agree in the
 * end, and nobody waits for ever.
 */
#include "osc_nicstride/protocol/loan.h"

#include <inttypes.h>
#include <string.h>

#include "osc_nicstride/protocol/message.h"
#include "test/unit/unit.h"

enum { ORIGINS = 12, WAY = 4096 };

typedef enum kind { MESSAGE, FLUSH, ACK, KINDS } kind_t;

/** Something on its way, or put off at the target. */
typedef struct packet {
    kind_t kind;
    int origin;
    uint64_t kept; /* MESSAGE */
    uint64_t upto, wish, returned;
    uint64_t applied, freed, lent;
    bool back;
} packet_t;

typedef struct bag {
    packet_t packet[WAY];
    size_t n;
} bag_t;

static void put(bag_t *b, packet_t p)
{
    UNIT_CHECK(b->n < WAY);
    b->packet[b->n++] = p;
}

static packet_t take(bag_t *b, unit_random_t *r)
{
    const size_t i = (size_t)unit_below(r, b->n);
    const packet_t p = b->packet[i];

    b->packet[i] = b->packet[--b->n];
    return p;
}

typedef struct simulation {
    unit_random_t *r;
    uint64_t bytes;
    nicstride_bank_t bank;
    nicstride_loan_t loan[ORIGINS];
    nicstride_rx_t rx[ORIGINS];
    nicstride_quota_t quota[ORIGINS];
    nicstride_tx_t tx[ORIGINS];
    unsigned left[ORIGINS]; /* messages still to send */
    uint64_t next[ORIGINS];
    bool loses;     /* some of what is said of loans */
    bag_t way, off; /* what is put off while the lock is taken */
    uint64_t most;
    unsigned backs;
} simulation_t;

static void acknowledge(simulation_t *s, int o)
{
    packet_t p = {.kind = ACK, .origin = o, .freed = s->rx[o].freed};
    int error;

    nicstride_rx_ack(&s->rx[o], &p.applied, &error);
    p.lent = s->loan[o].lent;
    p.back = s->loan[o].back;
    put(&s->way, p);
}

static void ask(simulation_t *s, int o, uint64_t upto, uint64_t wish)
{
    put(&s->way, (packet_t){.kind = FLUSH,
                            .origin = o,
                            .upto = upto,
                            .wish = wish,
                            .returned = s->quota[o].returned});
}

/** What all origins may have under way, and what they have. */
static void check_bounds(simulation_t *s)
{
    uint64_t limits = 0, out = 0, lent = 0;

    for (int o = 0; o < ORIGINS; o++) {
        const nicstride_quota_t *q = &s->quota[o];

        limits += q->base + s->loan[o].lent - s->loan[o].returned;
        lent += s->loan[o].lent - s->loan[o].returned;
        out += q->out;
        UNIT_CHECK(q->out <= q->base + q->lent - q->returned);
        UNIT_CHECK(q->lent <= s->loan[o].lent && s->loan[o].returned <= q->returned);
        UNIT_CHECK(s->loan[o].lent == s->loan[o].returned || s->loan[o].link != NULL);
    }
    UNIT_CHECK(lent == s->bank.out && lent <= s->bank.limit);
    UNIT_CHECK(out <= limits && limits <= s->bytes);
    s->most = out > s->most ? out : s->most;
}

static void send(simulation_t *s, int o)
{
    uint64_t upto;

    if (s->left[o] == 0)
        return;
    if (nicstride_tx_can_send(&s->tx[o], &s->quota[o], s->next[o])) {
        nicstride_tx_send(&s->tx[o], &s->quota[o], s->next[o]);
        put(&s->way, (packet_t){.kind = MESSAGE, .origin = o, .kept = s->next[o]});
        s->left[o]--;
        s->next[o] = unit_once_in(s->r, 3) ? 0 : 1 + unit_below(s->r, s->quota[o].base);
    } else if (nicstride_tx_is_short(&s->tx[o], &s->quota[o], s->next[o]) &&
               nicstride_tx_ask(&s->tx[o], &upto)) {
        ask(s, o, upto, nicstride_quota_request(&s->quota[o], s->next[o]));
    }
}

static void apply(simulation_t *s, const packet_t *p)
{
    if (nicstride_rx_applied(&s->rx[p->origin], p->kept, 0))
        acknowledge(s, p->origin);
}

static void flushed(simulation_t *s, const packet_t *p)
{
    const int o = p->origin;
    nicstride_loan_t *other;

    if (!s->loses || !unit_once_in(s->r, 4)) {
        UNIT_CHECK(nicstride_loan_returned(&s->bank, &s->loan[o], p->returned));
        UNIT_CHECK(!nicstride_loan_returned(&s->bank, &s->loan[o], s->loan[o].lent + 1));
        if (p->wish > 0) {
            const uint64_t got = nicstride_lend(&s->bank, &s->loan[o], p->wish);

            UNIT_CHECK(got <= p->wish);
            if (got > 0)
                acknowledge(s, o);
            other = got < p->wish ? nicstride_lend_back(&s->bank, &s->loan[o]) : NULL;
            if (other != NULL) {
                UNIT_CHECK(other != &s->loan[o] && other->lent > other->returned);
                s->backs++;
                acknowledge(s, (int)(other - s->loan));
            }
        }
    }
    if (nicstride_rx_flush(&s->rx[o], p->upto))
        acknowledge(s, o);
}

static void give_back(simulation_t *s, int o)
{
    if (nicstride_quota_gives_back(&s->quota[o]))
        ask(s, o, 0, 0);
}

static void acknowledged(simulation_t *s, const packet_t *p)
{
    const int o = p->origin;

    if (!s->loses || !unit_once_in(s->r, 4))
        nicstride_quota_lent(&s->quota[o], p->lent, p->back);
    UNIT_CHECK(nicstride_tx_ack(&s->tx[o], &s->quota[o], p->applied, p->freed, 0));
    give_back(s, o);
}

/** A synchronisation shows what is applied: nobody acknowledges it. */
static void synchronised(simulation_t *s, int o)
{
    nicstride_tx_known(&s->tx[o], &s->quota[o], s->rx[o].applied);
    give_back(s, o);
}

/** One thing that can happen; false where nothing is under way. `busy`: the lock is taken. */
static bool step(simulation_t *s, bool busy)
{
    const int o = (int)unit_below(s->r, ORIGINS);
    packet_t p;

    check_bounds(s);
    if (unit_once_in(s->r, 3))
        send(s, o);
    if (unit_once_in(s->r, 50))
        synchronised(s, o);
    if (!busy && s->off.n > 0) {
        p = take(&s->off, s->r);
        apply(s, &p);
        return true;
    }
    if (s->way.n == 0)
        return false;
    p = take(&s->way, s->r);
    if (p.kind == MESSAGE && p.kept > 0 && busy)
        put(&s->off, p);
    else if (p.kind == MESSAGE)
        apply(s, &p);
    else if (p.kind == FLUSH)
        flushed(s, &p);
    else
        acknowledged(s, &p);
    return true;
}

static void init(simulation_t *s, unit_random_t *r, uint64_t bytes)
{
    memset(s, 0, sizeof(*s));
    s->r = r;
    s->bytes = bytes;
    s->loses = unit_once_in(r, 2);
    nicstride_bank_open(&s->bank, bytes, ORIGINS);
    for (int o = 0; o < ORIGINS; o++) {
        s->tx[o].window = s->rx[o].window = 64;
        nicstride_quota_part(&s->quota[o], nicstride_loan_part(bytes, ORIGINS));
        s->left[o] = (unsigned)unit_below(r, 200);
        s->next[o] = 1;
    }
}

START_TEST(random_runs)
{
    static simulation_t s;
    unit_random_t r = {unit_seed()};
    unsigned backs = 0;
    bool near = false;

    for (int round = 0; round < 300; round++) {
        bool busy = false;
        unsigned idle = 0;

        init(&s, &r, (uint64_t)ORIGINS * NICSTRIDE_KEPT_MIN * (1 + unit_below(&r, 5)));
        while (idle < 2000) {
            busy = unit_once_in(&r, 100) ? !busy : busy && idle < 100;
            idle = step(&s, busy) ? 0 : idle + 1;
        }
        for (int o = 0; o < ORIGINS; o++) {
            UNIT_CHECK(s.left[o] == 0);
            UNIT_CHECK(!s.quota[o].back);
            if (!nicstride_tx_idle(&s.tx[o]))
                UNIT_CHECK(s.rx[o].applied == s.tx[o].sent);
            UNIT_CHECK(s.loses || (s.quota[o].lent == s.loan[o].lent &&
                                   s.quota[o].returned == s.loan[o].returned));
        }
        near = near || s.most > s.bytes / 2;
        backs += s.backs;
    }
    /* It has been near, and loans went from one to another, or nothing was shown. */
    ck_assert(near);
    ck_assert_uint_gt(backs, 100);
}
END_TEST

/* Who alone uses a target gets what a full window takes, wherever that fits; what others had goes
 * back to it. */
START_TEST(grows_with_use)
{
    static const uint64_t jobs[] = {2, 64, 1000, 10000, 100000};
    const uint64_t bytes = UINT64_C(48) << 20;
    const nicstride_msg_t add = {.type = NICSTRIDE_MSG_ACC, .len = 8};
    const nicstride_msg_t put = {.type = NICSTRIDE_MSG_PUT, .len = 8};
    const uint64_t kept = nicstride_msg_kept(&add);

    ck_assert_uint_eq(nicstride_msg_kept(&put), 0);
    for (size_t i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++) {
        const uint64_t part = nicstride_loan_part(bytes, jobs[i]);
        nicstride_bank_t bank = {0};
        nicstride_loan_t first = {0}, second = {0};
        nicstride_quota_t q = {0};
        unsigned asked = 0;

        nicstride_bank_open(&bank, bytes, jobs[i]);
        ck_assert_uint_le(part * jobs[i] + bank.limit, bytes > jobs[i] * NICSTRIDE_KEPT_MIN
                                                           ? bytes
                                                           : jobs[i] * NICSTRIDE_KEPT_MIN);
        nicstride_quota_part(&q, part);
        while (q.limit < 1024 * kept && asked < 20) {
            q.out = q.limit;
            (void)nicstride_lend(&bank, &first, nicstride_quota_request(&q, kept));
            nicstride_quota_lent(&q, first.lent, false);
            asked++;
        }
        printf("%" PRIu64 " processes: of %" PRIu64 " KiB %" PRIu64 " bytes for each and %" PRIu64
               " KiB to lend; of 8 bytes at first 1024 puts or %" PRIu64
               " accumulates under way, %" PRIu64 " after asking %u times\n",
               jobs[i], bytes >> 10, part, bank.limit >> 10, part / kept,
               q.limit / kept < 1024 ? q.limit / kept : 1024, asked);
        if (jobs[i] <= 10000)
            ck_assert_uint_ge(q.limit, 1024 * kept);
        /* Another one wants more than is left. */
        if (bank.limit == 0)
            continue;
        const uint64_t got = nicstride_lend(&bank, &second, bytes);
        ck_assert_uint_lt(got, bytes);
        if (q.lent == 0)
            continue;
        ck_assert_ptr_eq(nicstride_lend_back(&bank, &second), &first);
        ck_assert_ptr_null(nicstride_lend_back(&bank, &second));
        ck_assert_uint_eq(nicstride_lend(&bank, &first, 1), 0);
        nicstride_quota_lent(&q, first.lent, first.back);
        ck_assert(!nicstride_quota_gives_back(&q));
        ck_assert_uint_eq(q.limit, part);
        q.out = part;
        ck_assert(nicstride_quota_gives_back(&q));
        ck_assert(nicstride_loan_returned(&bank, &first, q.returned));
        ck_assert_uint_eq(bank.out, got);
        ck_assert_uint_gt(nicstride_lend(&bank, &first, 1000), 0);
    }
    fflush(stdout);
}
END_TEST

/* What is applied as it comes costs nothing; all that goes in one piece has room in any part. */
START_TEST(what_is_kept)
{
    nicstride_msg_t m = {.type = NICSTRIDE_MSG_PUT, .len = NICSTRIDE_INLINE_MAX};

    m.layout_len = NICSTRIDE_INLINE_LAYOUT;
    ck_assert_uint_eq(nicstride_msg_kept(&m), 0);
    m.flags = NICSTRIDE_MSG_SLICE;
    ck_assert_uint_eq(nicstride_msg_kept(&m), 0);
    m.flags = NICSTRIDE_MSG_RNDV;
    ck_assert_uint_eq(nicstride_msg_kept(&m), NICSTRIDE_KEPT_USE);
    m.flags = NICSTRIDE_MSG_INLINE;
    m.type = NICSTRIDE_MSG_ACC;
    ck_assert_uint_eq(nicstride_msg_kept(&m), NICSTRIDE_KEPT_MIN);
    m.type = NICSTRIDE_MSG_GET;
    m.flags = 0;
    ck_assert_uint_eq(nicstride_msg_kept(&m), NICSTRIDE_KEPT_RECORD + NICSTRIDE_INLINE_MAX);
    m.len = UINT64_C(1) << 30;
    ck_assert_uint_eq(nicstride_msg_kept(&m), NICSTRIDE_KEPT_USE);
    m.len = 8;
    ck_assert_uint_eq(nicstride_msg_kept(&m), NICSTRIDE_KEPT_RECORD + 8);
    m.type = NICSTRIDE_MSG_FLUSH;
    ck_assert_uint_eq(nicstride_msg_kept(&m), 0);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {random_runs, grows_with_use, what_is_kept};

    return unit_run("loan", tests, sizeof(tests) / sizeof(tests[0]));
}
