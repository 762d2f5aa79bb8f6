/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Flow control, run over a network that loses nothing and keeps no order: the window holds, nobody
 * waits for ever, errors come through once.
 */
#include "osc_nicstride/protocol/credit.h"

#include <inttypes.h>
#include <string.h>

#include "osc_nicstride/protocol/message.h"
#include "test/unit/unit.h"

#define MAX_MESSAGES 400

/** Something on its way. */
typedef struct packet {
    uint64_t number; /* of a flush or an acknowledgement */
    int error;
    uint64_t kept; /* for a message; freed, of an acknowledgement */
} packet_t;

/** Packets of one kind on their way; the first is the oldest. */
typedef struct wire {
    packet_t packet[MAX_MESSAGES];
    size_t n;
} wire_t;

static void put(wire_t *w, uint64_t number, int error)
{
    UNIT_CHECK(w->n < MAX_MESSAGES);
    w->packet[w->n++] = (packet_t){number, error, 0};
}

static packet_t take(wire_t *w, size_t i)
{
    const packet_t p = w->packet[i];

    memmove(&w->packet[i], &w->packet[i + 1], (--w->n - i) * sizeof(p));
    return p;
}

typedef struct simulation {
    unit_random_t *r;
    nicstride_tx_t tx;
    nicstride_quota_t quota;
    nicstride_rx_t rx;
    uint64_t next; /* bytes to be kept for the next message */
    wire_t messages, flushes, acks;
    bool longs;
    bool acks_in_order;
    bool sends_while_flushing; /* as other threads of the origin would */
    bool settles;              /* counted epochs tell the origin now and then */
    unsigned left;             /* messages still to send */
    bool flushing;
    bool ack_due;                   /* the target has been told to acknowledge and has not yet */
    int last_error;                 /* each message that fails has an error of its own */
    bool pending[MAX_MESSAGES + 1]; /* the error occurred at the target since the last flush */
    bool told[MAX_MESSAGES + 1];    /* the origin took it */
    bool told_since;                /* it took one since the last flush */
    unsigned occurred, reported;    /* errors */
} simulation_t;

/* Most messages leave nothing behind; some more than there may be. */
static void choose_next(simulation_t *s)
{
    s->next = s->longs && unit_once_in(s->r, 2) ? 1 + unit_below(s->r, 12) : 0;
}

static void send_one(simulation_t *s)
{
    const uint64_t sent = s->tx.sent;
    int error = 0;

    if (unit_once_in(s->r, 8))
        error = ++s->last_error;
    UNIT_CHECK(nicstride_tx_send(&s->tx, &s->quota, s->next) == sent + 1);
    UNIT_CHECK(s->tx.sent - s->tx.acked <= s->tx.window);
    UNIT_CHECK(s->quota.out == s->tx.kept - s->tx.freed);
    /* What the target really has is never more. */
    UNIT_CHECK(s->tx.kept - s->rx.freed <= s->quota.out);
    UNIT_CHECK(s->next == 0 || s->quota.out <= s->quota.limit || s->quota.out == s->next);
    put(&s->messages, 0, error);
    s->messages.packet[s->messages.n - 1].kept = s->next;
    s->left--;
    choose_next(s);
}

static void acknowledge(simulation_t *s)
{
    uint64_t applied;
    int error;

    nicstride_rx_ack(&s->rx, &applied, &error);
    UNIT_CHECK(s->rx.error == 0);
    put(&s->acks, applied, error);
    /* Some acknowledgements have no place for it. */
    s->acks.packet[s->acks.n - 1].kept = unit_once_in(s->r, 3) ? 0 : s->rx.freed;
    s->ack_due = false;
}

static void arrive(simulation_t *s)
{
    const packet_t p = take(&s->messages, unit_below(s->r, s->messages.n));

    if (p.error != 0) {
        s->pending[p.error] = true;
        s->occurred++;
    }
    s->ack_due = nicstride_rx_applied(&s->rx, p.kept, p.error) || s->ack_due;
    UNIT_CHECK(s->rx.applied - s->rx.reported <= (s->settles ? 2 : 1) * (uint64_t)s->rx.window);
}

static void take_error(simulation_t *s)
{
    const int error = nicstride_tx_take_error(&s->tx);

    UNIT_CHECK(nicstride_tx_take_error(&s->tx) == 0);
    if (error == 0)
        return;
    UNIT_CHECK(!s->told[error]);
    UNIT_CHECK(!s->acks_in_order || s->pending[error]);
    s->told[error] = true;
    s->reported++;
    s->told_since = true;
}

/* A flush is over: everything sent is applied, and if something failed since the last one the
 * origin has been told, at the latest now. Acknowledgements that overtook each other may still
 * carry an error. */
static void end_flush(simulation_t *s)
{
    bool any = false;

    take_error(s);
    UNIT_CHECK(s->messages.n == 0);
    UNIT_CHECK(s->rx.applied == s->tx.sent);
    for (int i = 1; i <= s->last_error; i++)
        any = any || s->pending[i];
    UNIT_CHECK(!s->acks_in_order || s->told_since == any);
    memset(s->pending, 0, sizeof(s->pending));
    s->told_since = false;
    s->flushing = false;
}

/* Where the origin learns of messages by other ways, too, errors may still be under way. */
static bool is_over(const simulation_t *s)
{
    return s->settles ? s->tx.confirmed == s->tx.sent : nicstride_tx_idle(&s->tx);
}

static void acknowledged(simulation_t *s)
{
    const packet_t p = take(&s->acks, s->acks_in_order ? 0 : (size_t)unit_below(s->r, s->acks.n));
    const uint64_t before = s->tx.acked;

    nicstride_tx_ack(&s->tx, &s->quota, p.number, p.kept, p.error);
    UNIT_CHECK(s->tx.acked == (p.number > before ? p.number : before));
    if (s->flushing && is_over(s))
        end_flush(s);
}

/* The origin learns from something else that what the target has applied by now is applied. */
static void settle(simulation_t *s)
{
    const uint64_t confirmed = s->tx.confirmed;

    /* By then the target has sent what was due. */
    if (s->ack_due)
        acknowledge(s);
    if (s->messages.n == 0)
        nicstride_tx_known(&s->tx, &s->quota, s->rx.applied);
    nicstride_tx_known(&s->tx, &s->quota, unit_below(s->r, s->tx.acked + 1));
    UNIT_CHECK(s->tx.confirmed == confirmed);
    UNIT_CHECK(s->tx.confirmed <= s->tx.acked && s->tx.acked <= s->rx.applied);
}

/* Old acknowledgements and requests change nothing. */
static void repeat(simulation_t *s)
{
    const nicstride_tx_t tx = s->tx;
    const nicstride_rx_t rx = s->rx;

    nicstride_tx_ack(&s->tx, &s->quota, unit_below(s->r, s->tx.confirmed + 1),
                     unit_below(s->r, s->tx.freed + 1), 0);
    UNIT_CHECK(memcmp(&tx, &s->tx, sizeof(tx)) == 0);
    UNIT_CHECK(!nicstride_rx_flush(&s->rx, unit_below(s->r, s->rx.reported + 1)));
    UNIT_CHECK(memcmp(&rx, &s->rx, sizeof(rx)) == 0);
}

static bool may_send(const simulation_t *s)
{
    return s->left > 0 && nicstride_tx_can_send(&s->tx, &s->quota, s->next) &&
           (!s->flushing || s->sends_while_flushing);
}

/* Is something held up that nobody comes to acknowledge by himself? */
static bool is_short(const simulation_t *s)
{
    return s->left > 0 && nicstride_tx_is_short(&s->tx, &s->quota, s->next);
}

/* Does one of the things that can happen now. False where nothing can. */
static bool step(simulation_t *s)
{
    const unsigned first = (unsigned)unit_below(s->r, 5);
    uint64_t upto;

    for (unsigned i = 0; i < 5; i++) {
        switch ((first + i) % 5) {
        case 0:
            if (!may_send(s))
                break;
            send_one(s);
            return true;
        case 1:
            if (!(s->flushing || is_short(s)) ||
                (!nicstride_tx_ask(&s->tx, &upto) &&
                 (!s->settles || !nicstride_tx_ask_again(&s->tx, &upto))))
                break;
            UNIT_CHECK(!nicstride_tx_ask(&s->tx, &upto) && upto == s->tx.sent);
            UNIT_CHECK(!nicstride_tx_ask_again(&s->tx, &upto));
            put(&s->flushes, upto, 0);
            return true;
        case 2:
            if (s->messages.n == 0)
                break;
            arrive(s);
            return true;
        case 3:
            if (s->flushes.n == 0)
                break;
            upto = take(&s->flushes, unit_below(s->r, s->flushes.n)).number;
            s->ack_due = nicstride_rx_flush(&s->rx, upto) || s->ack_due;
            return true;
        default:
            if (s->acks.n == 0)
                break;
            acknowledged(s);
            return true;
        }
        /* The target may put an acknowledgement off, but not for ever. */
        if (s->ack_due && (i == 4 || unit_once_in(s->r, 2))) {
            acknowledge(s);
            return true;
        }
    }
    return false;
}

static void begin_flush(simulation_t *s)
{
    s->flushing = true;
    if (is_over(s))
        end_flush(s);
}

/* Until all is sent and nothing moves; then a flush, until nothing moves. */
static void run(simulation_t *s)
{
    while (step(s)) {
        if (unit_once_in(s->r, 30))
            repeat(s);
        if (unit_once_in(s->r, 30))
            take_error(s);
        if (s->settles && unit_once_in(s->r, 10))
            settle(s);
        /* Another window divides the target's memory among more. */
        if (s->longs && unit_once_in(s->r, 100))
            nicstride_quota_told(&s->quota, 1 + unit_below(s->r, 40));
        if (!s->flushing && unit_once_in(s->r, 25))
            begin_flush(s);
    }
    UNIT_CHECK(s->left == 0);
    UNIT_CHECK(!s->flushing);
    begin_flush(s);
    while (step(s))
        ;
    UNIT_CHECK(!s->flushing);
    UNIT_CHECK(nicstride_tx_idle(&s->tx));
    take_error(s);
    UNIT_CHECK((s->occurred > 0) == (s->reported > 0));
}

/* Counters begin where 32 bits or signed 64 bits would fail. */
static void init(simulation_t *s, unit_random_t *r)
{
    static const uint64_t begin[] = {0, UINT32_MAX - 20, INT64_MAX - 20, UINT64_MAX - 8000};
    static const uint32_t window[] = {1, 2, 3, 4, 5, 8, 17, 64, 1u << 31};
    const uint64_t from = begin[unit_below(r, 4)];

    *s = (simulation_t){.r = r};
    s->tx = (nicstride_tx_t){.sent = from, .acked = from, .confirmed = from, .asked = from};
    s->rx = (nicstride_rx_t){.applied = from, .reported = from, .wanted = from};
    s->tx.window = s->rx.window = window[unit_below(r, 9)];
    s->quota.limit = unit_once_in(r, 2) ? UINT64_MAX : 1 + unit_below(r, 40);
    s->longs = unit_once_in(r, 2);
    choose_next(s);
    s->acks_in_order = unit_once_in(r, 2);
    s->sends_while_flushing = unit_once_in(r, 2);
    s->settles = unit_once_in(r, 2);
    s->left = (unsigned)unit_below(r, MAX_MESSAGES);
}

START_TEST(random_runs)
{
    unit_random_t r = {unit_seed()};
    simulation_t s;

    for (int i = 0; i < 1500; i++) {
        init(&s, &r);
        run(&s);
    }
}
END_TEST

/* A blocked origin gets its acknowledgement from the window alone, with no flush. */
START_TEST(full_window_is_always_reported)
{
    for (uint32_t window = 1; window <= 40; window++) {
        nicstride_tx_t tx = {.window = window};
        nicstride_rx_t rx = {.window = window};
        nicstride_quota_t q = {.limit = UINT64_MAX};
        for (int round = 0; round < 20; round++) {
            uint64_t applied, before = tx.acked;
            int error;
            while (nicstride_tx_can_send(&tx, &q, 0))
                nicstride_tx_send(&tx, &q, 0);
            ck_assert_uint_eq(tx.sent - tx.acked, window);
            while (rx.applied < tx.sent)
                if (nicstride_rx_applied(&rx, 0, 0)) {
                    nicstride_rx_ack(&rx, &applied, &error);
                    nicstride_tx_ack(&tx, &q, applied, 0, error);
                }
            ck_assert_uint_gt(tx.acked, before);
            ck_assert(nicstride_tx_can_send(&tx, &q, 0));
        }
    }
}
END_TEST

/* Acknowledgements are not wasted: about two for a window. */
START_TEST(few_acknowledgements)
{
    nicstride_rx_t rx = {.window = 64};
    uint64_t applied;
    unsigned acks = 0;
    int error;

    for (int i = 0; i < 6400; i++)
        if (nicstride_rx_applied(&rx, 0, 0)) {
            nicstride_rx_ack(&rx, &applied, &error);
            acks++;
        }
    ck_assert_uint_eq(acks, 200);
}
END_TEST

START_TEST(first_error_wins)
{
    nicstride_tx_t tx = {.window = 8};
    nicstride_rx_t rx = {.window = 8};
    nicstride_quota_t q = {.limit = UINT64_MAX};
    uint64_t applied, upto;
    int error;

    for (int i = 0; i < 3; i++)
        nicstride_tx_send(&tx, &q, 0);
    ck_assert(!nicstride_rx_applied(&rx, 0, 0));
    /* An error is told at once: where epochs are counted nobody asks. */
    ck_assert(nicstride_rx_applied(&rx, 0, 7));
    ck_assert(nicstride_rx_applied(&rx, 0, 8));
    ck_assert(nicstride_tx_ask(&tx, &upto));
    ck_assert(nicstride_rx_flush(&rx, upto));
    nicstride_rx_ack(&rx, &applied, &error);
    ck_assert_uint_eq(applied, 3);
    ck_assert_int_eq(error, 7);
    nicstride_tx_ack(&tx, &q, applied, 0, error);
    nicstride_tx_ack(&tx, &q, applied, 0, 9);
    ck_assert_int_eq(nicstride_tx_take_error(&tx), 7);
    ck_assert_int_eq(nicstride_tx_take_error(&tx), 0);
    ck_assert(!nicstride_tx_ask(&tx, &upto));
}
END_TEST

/* Several windows share what a target grants: together they never have more under way, and each
 * gets through, since whoever is held up asks in all of them. */
START_TEST(windows_share_a_quota)
{
    enum { WINDOWS = 5, MESSAGES = 300 };
    unit_random_t r = {unit_seed()};

    for (int round = 0; round < 200; round++) {
        nicstride_quota_t q = {.limit = 2 + unit_below(&r, 30)};
        nicstride_tx_t tx[WINDOWS] = {{.sent = 0}};
        nicstride_rx_t rx[WINDOWS] = {{.applied = 0}};
        unsigned left[WINDOWS], all = 0;

        for (int w = 0; w < WINDOWS; w++) {
            tx[w].window = rx[w].window = 2 + (uint32_t)unit_below(&r, 60);
            all += left[w] = MESSAGES;
        }
        while (all > 0) {
            const int w = (int)unit_below(&r, WINDOWS);
            const uint64_t kept = unit_once_in(&r, 3) ? 1 + unit_below(&r, 16) : 0;
            uint64_t count;
            int error;

            if (left[w] > 0 && nicstride_tx_can_send(&tx[w], &q, kept)) {
                nicstride_tx_send(&tx[w], &q, kept);
                UNIT_CHECK(kept == 0 || q.out <= q.limit || q.out == kept);
                left[w]--;
                all--;
                if (nicstride_rx_applied(&rx[w], kept, 0)) {
                    nicstride_rx_ack(&rx[w], &count, &error);
                    nicstride_tx_ack(&tx[w], &q, count, rx[w].freed, error);
                }
                continue;
            }
            /* Blocked before the window is full: then every window's target is asked. */
            if (left[w] == 0 || !nicstride_tx_is_short(&tx[w], &q, kept))
                continue;
            for (int i = 0; i < WINDOWS; i++) {
                if (nicstride_tx_ask(&tx[i], &count) && nicstride_rx_flush(&rx[i], count)) {
                    nicstride_rx_ack(&rx[i], &count, &error);
                    nicstride_tx_ack(&tx[i], &q, count, rx[i].freed, error);
                }
            }
            UNIT_CHECK(nicstride_tx_can_send(&tx[w], &q, kept));
        }
        for (int w = 0; w < WINDOWS; w++)
            nicstride_tx_forget(&tx[w], &q);
        ck_assert_uint_eq(q.out, 0);
    }
}
END_TEST

/* What a window had under way when it was given up is room for the others of the same process, and
 * acknowledgements that come late change nothing. */
START_TEST(given_up_windows_give_back)
{
    enum { WINDOWS = 6, TURNS = 3000 };
    unit_random_t r = {unit_seed()};

    for (int round = 0; round < 100; round++) {
        nicstride_quota_t q = {.limit = 2 + unit_below(&r, 30)};
        nicstride_tx_t tx[WINDOWS];
        bool given_up[WINDOWS] = {false};

        for (int w = 0; w < WINDOWS; w++)
            tx[w] = (nicstride_tx_t){.window = 2 + (uint32_t)unit_below(&r, 60)};
        for (int turn = 0; turn < TURNS; turn++) {
            const int w = (int)unit_below(&r, WINDOWS);
            const uint64_t kept = unit_below(&r, 5);
            uint64_t out = 0;

            if (w > 0 && unit_once_in(&r, TURNS / WINDOWS)) {
                given_up[w] = true;
                nicstride_tx_forget(&tx[w], &q);
            } else if (unit_once_in(&r, 3)) {
                nicstride_tx_ack(&tx[w], &q, unit_below(&r, tx[w].sent + 1),
                                 unit_below(&r, tx[w].kept + 1), 0);
            } else if (!given_up[w] && nicstride_tx_can_send(&tx[w], &q, kept)) {
                nicstride_tx_send(&tx[w], &q, kept);
            }
            for (int i = 0; i < WINDOWS; i++)
                out += given_up[i] ? 0 : tx[i].kept - tx[i].freed;
            UNIT_CHECK(q.out == out);
        }
        /* The one that is left has it all. */
        for (int w = 1; w < WINDOWS; w++)
            nicstride_tx_forget(&tx[w], &q);
        nicstride_tx_ack(&tx[0], &q, tx[0].sent, 0, 0);
        tx[0].window = UINT32_MAX;
        UNIT_CHECK(nicstride_tx_can_send(&tx[0], &q, q.limit));
    }
}
END_TEST

/* The parts of all are no more than there is, unless each has the least; and no more than helps. */
START_TEST(each_has_its_part)
{
    static const uint64_t jobs[] = {1, 2, 64, 1000, 10000, 100000};
    const uint64_t bytes = UINT64_C(48) << 20;
    const nicstride_msg_t add = {.type = NICSTRIDE_MSG_ACC, .len = 8};
    nicstride_quota_t q = {0};
    uint64_t before = NICSTRIDE_KEPT_MAX;

    for (size_t i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++) {
        const uint64_t part = nicstride_quota_part(bytes, jobs[i]);

        printf("%" PRIu64 " processes: of %" PRIu64 " KiB %" PRIu64 " bytes for each, %" PRIu64
               " accumulates of 8 bytes under way\n",
               jobs[i], bytes >> 10, part, part / nicstride_msg_kept(&add));
        ck_assert(part == NICSTRIDE_KEPT_MIN || part * jobs[i] <= bytes);
        ck_assert(part == NICSTRIDE_KEPT_MAX || part + 1 > bytes / jobs[i]);
        ck_assert(part >= NICSTRIDE_KEPT_MIN && part <= before);
        before = part;
        nicstride_quota_told(&q, part);
        nicstride_quota_told(&q, part + 1);
        ck_assert_uint_eq(q.limit, part);
    }
    ck_assert_uint_eq(nicstride_quota_part(UINT64_MAX, 1), NICSTRIDE_KEPT_MAX);
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
    m.flags = 0;
    m.type = NICSTRIDE_MSG_PIPE_PUT;
    ck_assert_uint_eq(nicstride_msg_kept(&m), NICSTRIDE_KEPT_USE);
    m.flags = NICSTRIDE_MSG_INLINE;
    m.type = NICSTRIDE_MSG_ACC;
    ck_assert_uint_le(nicstride_msg_kept(&m), NICSTRIDE_KEPT_MIN);
    m.type = NICSTRIDE_MSG_GET;
    m.flags = 0;
    ck_assert_uint_eq(nicstride_msg_kept(&m), NICSTRIDE_KEPT_RECORD + NICSTRIDE_INLINE_MAX);
    m.len = UINT64_C(1) << 30;
    ck_assert_uint_eq(nicstride_msg_kept(&m), NICSTRIDE_KEPT_USE + NICSTRIDE_KEPT_ANSWER);
    ck_assert_uint_le(nicstride_msg_kept(&m), NICSTRIDE_KEPT_MIN);
    m.len = 8;
    ck_assert_uint_eq(nicstride_msg_kept(&m),
                      NICSTRIDE_KEPT_RECORD + 8 + NICSTRIDE_INLINE_LAYOUT); /* it may be put off */
    m.type = NICSTRIDE_MSG_FLUSH;
    ck_assert_uint_eq(nicstride_msg_kept(&m), 0);
}
END_TEST

int main(void)
{
    return UNIT_RUN("credit", UNIT_ONCE(random_runs), UNIT_ONCE(full_window_is_always_reported),
                    UNIT_ONCE(few_acknowledgements), UNIT_ONCE(first_error_wins),
                    UNIT_ONCE(windows_share_a_quota), UNIT_ONCE(given_up_windows_give_back),
                    UNIT_ONCE(each_has_its_part), UNIT_ONCE(what_is_kept));
}
