/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Remote completion, over a network that loses nothing and keeps no order: no flush ends early or
 * never, errors come through once.
 */
#include "osc_nicstride/protocol/completion.h"

#include <string.h>

#include "common/transport/row/credit.h"
#include "osc_nicstride/protocol/message.h"
#include "test/unit/unit.h"

#define MAX_MESSAGES 400

/** Something on its way. */
typedef struct packet {
    uint64_t number; /* of a flush or an acknowledgement */
    int error;
} packet_t;

/** Packets of one kind on their way; the first is the oldest. */
typedef struct wire {
    packet_t packet[MAX_MESSAGES];
    size_t n;
} wire_t;

static void put(wire_t *w, uint64_t number, int error)
{
    UNIT_CHECK(w->n < MAX_MESSAGES);
    w->packet[w->n++] = (packet_t){number, error};
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
    nicstride_rx_t rx;
    wire_t messages, flushes, acks;
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

static void send_one(simulation_t *s)
{
    const uint64_t sent = s->tx.sent;
    int error = 0;

    if (unit_once_in(s->r, 8))
        error = ++s->last_error;
    UNIT_CHECK(nicstride_tx_send(&s->tx) == sent + 1);
    put(&s->messages, 0, error);
    s->left--;
}

static void acknowledge(simulation_t *s)
{
    uint64_t applied;
    int error;

    nicstride_rx_ack(&s->rx, &applied, &error);
    UNIT_CHECK(s->rx.error == 0);
    put(&s->acks, applied, error);
    s->ack_due = false;
}

static void arrive(simulation_t *s)
{
    const packet_t p = take(&s->messages, unit_below(s->r, s->messages.n));

    if (p.error != 0) {
        s->pending[p.error] = true;
        s->occurred++;
    }
    s->ack_due = nicstride_rx_applied(&s->rx, p.error) || s->ack_due;
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
    s->flushing = false;
    /* Where the origin learns of messages by other ways, too, errors may still be under way. */
    if (s->settles)
        return;
    for (int i = 1; i <= s->last_error; i++)
        any = any || s->pending[i];
    UNIT_CHECK(!s->acks_in_order || s->told_since == any);
    memset(s->pending, 0, sizeof(s->pending));
    s->told_since = false;
}

static void acknowledged(simulation_t *s)
{
    const packet_t p = take(&s->acks, s->acks_in_order ? 0 : (size_t)unit_below(s->r, s->acks.n));
    const uint64_t before = s->tx.acked;

    nicstride_tx_ack(&s->tx, p.number, p.error);
    UNIT_CHECK(s->tx.acked == (p.number > before ? p.number : before));
    if (s->flushing && nicstride_tx_idle(&s->tx))
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
        nicstride_tx_known(&s->tx, s->rx.applied);
    nicstride_tx_known(&s->tx, unit_below(s->r, s->tx.acked + 1));
    UNIT_CHECK(s->tx.confirmed == confirmed);
    UNIT_CHECK(s->tx.confirmed <= s->tx.acked && s->tx.acked <= s->rx.applied);
    if (s->flushing && nicstride_tx_idle(&s->tx))
        end_flush(s);
}

/* Old acknowledgements and requests change nothing. */
static void repeat(simulation_t *s)
{
    const nicstride_tx_t tx = s->tx;
    const nicstride_rx_t rx = s->rx;

    nicstride_tx_ack(&s->tx, unit_below(s->r, s->tx.confirmed + 1), 0);
    UNIT_CHECK(memcmp(&tx, &s->tx, sizeof(tx)) == 0);
    UNIT_CHECK(!nicstride_rx_flush(&s->rx, unit_below(s->r, s->rx.reported + 1)));
    UNIT_CHECK(memcmp(&rx, &s->rx, sizeof(rx)) == 0);
}

static bool may_send(const simulation_t *s)
{
    return s->left > 0 && (!s->flushing || s->sends_while_flushing);
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
            if (!s->flushing || !nicstride_tx_ask(&s->tx, &upto))
                break;
            UNIT_CHECK(!nicstride_tx_ask(&s->tx, &upto) && upto == s->tx.sent);
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
    if (nicstride_tx_idle(&s->tx))
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
    const uint64_t from = begin[unit_below(r, 4)];

    *s = (simulation_t){.r = r};
    s->tx = (nicstride_tx_t){.sent = from, .acked = from, .confirmed = from, .asked = from};
    s->rx = (nicstride_rx_t){.applied = from, .reported = from, .wanted = from};
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

START_TEST(first_error_wins)
{
    nicstride_tx_t tx = {.sent = 0};
    nicstride_rx_t rx = {.applied = 0};
    uint64_t applied, upto;
    int error;

    for (int i = 0; i < 3; i++)
        nicstride_tx_send(&tx);
    ck_assert(!nicstride_rx_applied(&rx, 0));
    /* An error is told at once: where epochs are counted nobody asks. */
    ck_assert(nicstride_rx_applied(&rx, 7));
    ck_assert(nicstride_rx_applied(&rx, 8));
    ck_assert(nicstride_tx_ask(&tx, &upto));
    ck_assert(nicstride_rx_flush(&rx, upto));
    nicstride_rx_ack(&rx, &applied, &error);
    ck_assert_uint_eq(applied, 3);
    ck_assert_int_eq(error, 7);
    nicstride_tx_ack(&tx, applied, error);
    nicstride_tx_ack(&tx, applied, 9);
    ck_assert_int_eq(nicstride_tx_take_error(&tx), 7);
    ck_assert_int_eq(nicstride_tx_take_error(&tx), 0);
    ck_assert(!nicstride_tx_ask(&tx, &upto));
}
END_TEST

/* What is applied as it comes costs nothing; all that goes in one piece has credit in the end. */
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
    ck_assert_uint_eq(nicstride_msg_kept(&m), 0);
    m.type = NICSTRIDE_MSG_GET;
    m.flags = 0;
    ck_assert_uint_eq(nicstride_msg_kept(&m), NICSTRIDE_KEPT_RECORD + NICSTRIDE_INLINE_MAX);
    m.len = UINT64_C(1) << 30;
    ck_assert_uint_eq(nicstride_msg_kept(&m), NICSTRIDE_KEPT_USE + NICSTRIDE_KEPT_ANSWER);
    ck_assert_uint_le(nicstride_msg_kept(&m), NICSTRIDE_KEPT_MAX);
    m.len = 8;
    ck_assert_uint_eq(nicstride_msg_kept(&m), NICSTRIDE_KEPT_RECORD + 8);
    ck_assert_uint_le(NICSTRIDE_KEPT_MAX, ONIC_CREDIT_FLOOR / 2);
    m.type = NICSTRIDE_MSG_FLUSH;
    ck_assert_uint_eq(nicstride_msg_kept(&m), 0);
}
END_TEST

int main(void)
{
    return UNIT_RUN("completion", UNIT_ONCE(random_runs), UNIT_ONCE(first_error_wins),
                    UNIT_ONCE(what_is_kept));
}
