/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The rules of a message under way: its two ends, run against each other over queues that deliver
 * when they like, with operations that end when they like, refusals, and losses at any time. And
 * what they take and give lies within the message, whatever a peer says of its bytes.
 */
#include "pml_superpipe/protocols/transfer.h"

#include <string.h>

#include "pml_superpipe/matching/header.h"

#include "test/unit/unit.h"

#define MOST    64 /* bytes of a message */
#define QUEUED  256
#define PENDING 64
#define STEPS   20000

/** Those that a CTS names. */
static const superpipe_protocol_t protocols[] = {SUPERPIPE_STREAM, SUPERPIPE_PIPELINE,
                                                 SUPERPIPE_RENDEZVOUS};

typedef struct message {
    superpipe_kind_t kind;
    superpipe_protocol_t protocol;
    uint64_t at, bytes;
} message_t;

typedef struct queue {
    message_t message[QUEUED];
    unsigned first, last;
    uint64_t early; /**< as the announcement has it */
} queue_t;

/** An end with what works on its memory. */
typedef struct end {
    superpipe_transfer_t t;
    unsigned operations; /**< of the transport */
    bool pipeline;
    bool queued;    /**< to be continued with fragments */
    unsigned overs; /**< times that it was told to be over */
    bool begun, lost;
} end_t;

typedef struct sim {
    unit_random_t r;
    end_t a, b; /**< sender, receiver */
    queue_t to_b, to_a;
    bool waits; /**< a synchronous send */
    bool self;  /**< one process: the receiver copies with the sender's request in hand */
    bool copies, one_piece, lossy;
    superpipe_protocol_t asked; /**< of the last CTS */
    bool packed;
    unsigned got[MOST];
    uint64_t fragment;
} sim_t;

static void say(queue_t *q, superpipe_kind_t kind, superpipe_protocol_t protocol, uint64_t at,
                uint64_t bytes)
{
    UNIT_CHECK(q->last < QUEUED);
    q->message[q->last++] = (message_t){kind, protocol, at, bytes};
}

/** After each change. */
static void settle(end_t *e)
{
    if (!e->begun || !superpipe_transfer_is_over(&e->t))
        return;
    e->overs++;
    UNIT_CHECK(e->overs == 1 && e->operations == 0 && !e->pipeline && !e->queued);
}

static void begin_operation(end_t *e)
{
    e->t.in_flight++;
    e->operations++;
}

static void received(sim_t *s, uint64_t at, uint64_t bytes)
{
    UNIT_CHECK(s->b.overs == 0 && at + bytes <= s->b.t.wanted);
    for (uint64_t i = at; i < at + bytes; i++)
        s->got[i]++;
}

/* ---- sender ---------------------------------------------------------------------------------- */

static void send_fragments(sim_t *s)
{
    superpipe_transfer_t *t = &s->a.t;
    uint64_t bytes;

    for (int n = 0; n < 4 && (bytes = superpipe_transfer_fragment(t, s->fragment)) > 0; n++) {
        const bool pending = unit_once_in(&s->r, 2);

        UNIT_CHECK(s->a.overs == 0 && t->moved + bytes <= t->wanted && t->wanted <= t->length);
        say(&s->to_b, SUPERPIPE_KIND_DATA, SUPERPIPE_STREAM, t->moved, bytes);
        superpipe_transfer_given(t, bytes, pending);
        s->a.operations += pending;
    }
    if (superpipe_transfer_is_idle(t)) {
        t->in_flight++;
        s->a.queued = true;
    }
    settle(&s->a);
}

/** At once, behind the announcement. */
static void send_early(sim_t *s, uint64_t left)
{
    const uint64_t bytes = left < s->fragment ? left : s->fragment;
    const bool pending = unit_once_in(&s->r, 2);

    say(&s->to_b, SUPERPIPE_KIND_EARLY, SUPERPIPE_STREAM, s->a.t.moved, bytes);
    superpipe_transfer_given(&s->a.t, bytes, pending);
    s->a.operations += pending;
}

static void start_sender(sim_t *s, uint64_t length)
{
    const bool whole = !s->waits && unit_once_in(&s->r, 4);
    const uint64_t early = s->self || unit_once_in(&s->r, 2) ? 0 : unit_below(&s->r, length + 1);

    s->a.begun = true;
    superpipe_transfer_begin(&s->a.t, true, length);
    if (whole)
        superpipe_transfer_sent_whole(&s->a.t);
    s->to_b.early = whole ? 0 : early;
    say(&s->to_b, whole ? SUPERPIPE_KIND_SHORT : SUPERPIPE_KIND_RTS, 0, 0, length);
    if (unit_once_in(&s->r, 2))
        begin_operation(&s->a);
    if (!whole && early > 0) {
        superpipe_transfer_begins_early(&s->a.t, early, s->waits);
        while (s->a.t.moved < early)
            send_early(s, early - s->a.t.moved);
    }
    settle(&s->a);
}

/** All of it in one message, which the receiver meets. */
static void send_by_rendezvous(sim_t *s)
{
    superpipe_transfer_t *t = &s->a.t;
    const bool pending = unit_once_in(&s->r, 2);

    say(&s->to_b, SUPERPIPE_KIND_DATA, SUPERPIPE_RENDEZVOUS, t->moved, t->wanted - t->moved);
    superpipe_transfer_given(t, t->wanted - t->moved, pending);
    s->a.operations += pending;
    settle(&s->a);
}

/** What the row of a protocol does; false if it cannot. */
static bool answer(sim_t *s, superpipe_protocol_t protocol)
{
    superpipe_transfer_t *t = &s->a.t;

    if (protocol == SUPERPIPE_STREAM || (protocol == SUPERPIPE_RENDEZVOUS && !s->one_piece))
        return false;
    if (protocol == SUPERPIPE_RENDEZVOUS)
        send_by_rendezvous(s);
    else if (unit_once_in(&s->r, 3))
        return false;
    else
        t->moving = s->a.pipeline = true;
    return true;
}

static void deliver_to_sender(sim_t *s, const message_t *m)
{
    if (m->kind == SUPERPIPE_KIND_ACK) {
        superpipe_transfer_acknowledged(&s->a.t);
        settle(&s->a);
        return;
    }
    if (superpipe_transfer_requested(&s->a.t, m->bytes) && !answer(s, m->protocol)) {
        s->a.t.fragments = true;
        send_fragments(s);
    }
}

/* ---- receiver -------------------------------------------------------------------------------- */

static void ask(sim_t *s, superpipe_protocol_t protocol)
{
    s->asked = protocol;
    s->b.t.moving = s->b.pipeline = protocol == SUPERPIPE_PIPELINE;
    say(&s->to_a, SUPERPIPE_KIND_CTS, protocol, 0, s->b.t.wanted);
}

static void fetch(sim_t *s)
{
    if (superpipe_transfer_remaining(&s->b.t) == 0) {
        if (s->waits || s->b.t.early == 0 || s->b.t.early < s->a.t.length)
            say(&s->to_a, SUPERPIPE_KIND_ACK, 0, 0, 0);
    } else if (s->copies || s->self) {
        begin_operation(&s->b);
    } else {
        ask(s, protocols[unit_below(&s->r, 3)]);
    }
}

static void take_data(sim_t *s, const message_t *m)
{
    const bool meets = m->protocol == SUPERPIPE_RENDEZVOUS;

    if (!superpipe_transfer_takes(&s->b.t, m->at, m->bytes))
        return;
    /* The sender could not use the buffers. */
    s->b.t.moving = s->b.pipeline = false;
    if (meets && unit_once_in(&s->r, 2))
        begin_operation(&s->b);
    received(s, m->at, m->bytes);
    s->b.t.moved += m->bytes;
}

static void deliver_to_receiver(sim_t *s, const message_t *m)
{
    uint64_t bytes;

    switch (m->kind) {
    case SUPERPIPE_KIND_SHORT:
        (void)superpipe_transfer_fit(&s->b.t, m->bytes, 0);
        received(s, 0, s->b.t.wanted);
        s->b.t.moved += s->b.t.wanted;
        break;
    case SUPERPIPE_KIND_RTS:
        UNIT_CHECK(superpipe_transfer_fit(&s->b.t, m->bytes, s->to_b.early) ==
                   (m->bytes > s->b.t.length));
        fetch(s);
        break;
    case SUPERPIPE_KIND_DATA:
        take_data(s, m);
        break;
    case SUPERPIPE_KIND_EARLY:
        bytes = superpipe_transfer_takes_early(&s->b.t, m->at, m->bytes);
        received(s, m->at, bytes);
        s->b.t.moved += bytes;
        break;
    default:
        UNIT_CHECK(false);
    }
    settle(&s->b);
}

/** The copy of a message of this process, or by the kernel from another one. */
static void end_copy(sim_t *s)
{
    const bool lent = s->self && superpipe_transfer_lend(&s->a.t);
    const bool copied = s->self ? lent : !s->b.t.broken && !unit_once_in(&s->r, 3);

    superpipe_transfer_ended(&s->b.t, true);
    s->b.operations--;
    if (lent) {
        superpipe_transfer_copied(&s->a.t);
        settle(&s->a);
    }
    if (copied) {
        received(s, s->b.t.early, superpipe_transfer_remaining(&s->b.t));
        s->b.t.moved += superpipe_transfer_remaining(&s->b.t);
        if (!s->self)
            say(&s->to_a, SUPERPIPE_KIND_ACK, 0, 0, 0);
    } else if (s->self || s->b.t.broken) {
        s->b.t.broken = true;
    } else {
        s->copies = false;
        ask(s, SUPERPIPE_STREAM);
    }
    settle(&s->b);
}

/* ---- what happens by itself ------------------------------------------------------------------ */

static void end_operation(sim_t *s, end_t *e)
{
    if (e->operations == 0)
        return;
    if (e == &s->b && (s->copies || s->self) && s->asked == SUPERPIPE_AUTO) {
        end_copy(s);
        return;
    }
    e->operations--;
    superpipe_transfer_ended(&e->t, !e->lost);
    settle(e);
    if (e == &s->a && e->overs == 0)
        send_fragments(s);
}

/** The pipeline: the receiver has all some time after the sender has packed it. */
static void end_move(sim_t *s)
{
    end_t *e = s->a.pipeline ? &s->a : &s->b;

    if (!e->pipeline || (e == &s->b && !s->packed && !e->lost))
        return;
    e->pipeline = false;
    s->packed = s->packed || e == &s->a;
    if (e == &s->b && !e->lost)
        received(s, e->t.early, superpipe_transfer_remaining(&e->t));
    superpipe_transfer_moved(&e->t, !e->lost);
    settle(e);
}

/** The connection is seen to be lost at one end. */
static void lose(end_t *e)
{
    if (e->lost || !e->begun)
        return;
    e->lost = true;
    if (e->pipeline) {
        e->pipeline = false;
        superpipe_transfer_moved(&e->t, false);
    }
    e->t.broken = true;
    settle(e);
}

static void deliver(sim_t *s, queue_t *q, end_t *to)
{
    const message_t m = q->message[q->first];

    if (q->first == q->last)
        return;
    q->first++;
    /* A handle of what is over finds nothing. */
    if (to->lost || to->overs > 0)
        return;
    if (to == &s->a)
        deliver_to_sender(s, &m);
    else
        deliver_to_receiver(s, &m);
}

static void step(sim_t *s)
{
    switch (unit_below(&s->r, 7)) {
    case 0:
        deliver(s, &s->to_b, &s->b);
        break;
    case 1:
        deliver(s, &s->to_a, &s->a);
        break;
    case 2:
        end_operation(s, &s->a);
        break;
    case 3:
        end_operation(s, &s->b);
        break;
    case 4:
        end_move(s);
        break;
    case 5:
        if (s->a.queued) {
            s->a.queued = false;
            s->a.t.in_flight--;
            send_fragments(s);
        }
        break;
    default:
        if (s->lossy && unit_once_in(&s->r, 20)) {
            lose(&s->a);
            lose(&s->b);
        }
    }
}

static void run(sim_t *s)
{
    const uint64_t length = unit_below(&s->r, MOST + 1);
    const uint64_t room = unit_once_in(&s->r, 4) ? unit_below(&s->r, MOST + 1) : length;

    s->b.begun = true;
    superpipe_transfer_begin(&s->b.t, false, room);
    settle(&s->b);
    start_sender(s, length);
    for (int n = 0; n < STEPS && (s->a.overs == 0 || s->b.overs == 0); n++)
        step(s);
    UNIT_CHECK(s->a.overs == 1 && s->b.overs == 1);
    if (s->lossy)
        return;
    UNIT_CHECK(!s->a.t.broken && !s->b.t.broken);
    UNIT_CHECK(s->b.t.wanted == (length < room ? length : room));
    for (uint64_t i = 0; i < MOST; i++)
        UNIT_CHECK(s->got[i] == (i < s->b.t.wanted));
}

/** Both ends are over once, with all bytes there once, whatever protocol, order and refusals; with
 *  losses they are over all the same, and never while something works on their memory. */
START_TEST(both_ends)
{
    unit_random_t r = {unit_seed() + (uint64_t)_i};

    for (int n = 0; n < 5000; n++) {
        sim_t s = {.r = {unit_random64(&r)}};

        s.waits = unit_once_in(&r, 2);
        s.self = unit_once_in(&r, 5);
        s.copies = unit_once_in(&r, 3);
        s.one_piece = unit_once_in(&r, 2);
        s.lossy = _i % 2 != 0;
        s.fragment = 1 + unit_below(&r, 16);
        run(&s);
    }
}
END_TEST

/** No byte outside of what is wanted is taken, and no fragment reaches beyond the message. */
START_TEST(bounds)
{
    unit_random_t r = {unit_seed() + (uint64_t)_i};

    for (int n = 0; n < 100000; n++) {
        const uint64_t at = unit_random64(&r) >> unit_below(&r, 64);
        const uint64_t bytes = unit_random64(&r) >> unit_below(&r, 64);
        superpipe_transfer_t t;

        superpipe_transfer_begin(&t, false, unit_below(&r, MOST));
        (void)superpipe_transfer_fit(&t, 1 + unit_below(&r, MOST), unit_below(&r, MOST));
        if (superpipe_transfer_takes(&t, at, bytes))
            UNIT_CHECK(bytes <= t.wanted && at <= t.wanted - bytes && t.wanted <= t.length);
        const uint64_t first = superpipe_transfer_takes_early(&t, at, bytes);
        UNIT_CHECK(first == 0 || (first <= bytes && at + first <= t.early));

        superpipe_transfer_begin(&t, true, unit_below(&r, MOST));
        if (superpipe_transfer_requested(&t, bytes))
            UNIT_CHECK(t.wanted == bytes);
        UNIT_CHECK(t.wanted <= t.length && superpipe_transfer_fragment(&t, 8) <= t.wanted);
    }
}
END_TEST

static superpipe_transfer_t begun(bool sends, uint64_t length)
{
    superpipe_transfer_t t;

    superpipe_transfer_begin(&t, sends, length);
    return t;
}

/** What is over or broken gives nothing. */
START_TEST(given_in_time)
{
    superpipe_transfer_t t = begun(true, 10);

    ck_assert(superpipe_transfer_requested(&t, 10));
    superpipe_transfer_given(&t, 10, false);
    ck_assert(superpipe_transfer_is_over(&t));
    ck_assert(!superpipe_transfer_lend(&t));
    ck_assert(!superpipe_transfer_requested(&t, 10));

    t = begun(true, 10);
    t.broken = true;
    ck_assert(!superpipe_transfer_lend(&t));
    ck_assert(!superpipe_transfer_requested(&t, 1));
}
END_TEST

/** What comes early needs no asking: it is all of a message of middle length, and is given away
 *  even where the receiver has enough before. */
START_TEST(early)
{
    superpipe_transfer_t t = begun(true, 10), b = begun(false, 8);

    superpipe_transfer_begins_early(&t, 10, false);
    superpipe_transfer_given(&t, 10, false);
    ck_assert(superpipe_transfer_is_over(&t));

    t = begun(true, 10);
    superpipe_transfer_begins_early(&t, 6, false);
    superpipe_transfer_given(&t, 6, false);
    ck_assert(!superpipe_transfer_is_over(&t));
    superpipe_transfer_acknowledged(&t);
    ck_assert(superpipe_transfer_is_over(&t));

    t = begun(true, 10);
    superpipe_transfer_begins_early(&t, 6, false);
    superpipe_transfer_given(&t, 6, false);
    ck_assert_uint_eq(superpipe_transfer_fragment(&t, 16), 0);
    ck_assert(!superpipe_transfer_requested(&t, 6));
    ck_assert(superpipe_transfer_requested(&t, 10));
    ck_assert_uint_eq(superpipe_transfer_fragment(&t, 16), 0);
    t.fragments = true;
    ck_assert_uint_eq(superpipe_transfer_fragment(&t, 16), 4);

    ck_assert(superpipe_transfer_fit(&b, 10, 6));
    ck_assert_uint_eq(superpipe_transfer_remaining(&b), 2);
    ck_assert_uint_eq(superpipe_transfer_takes_early(&b, 4, 4), 2);
    ck_assert_uint_eq(superpipe_transfer_takes_early(&b, 6, 4), 0);
}
END_TEST

/** No more than some fragments are with the transport, and who waits for one of them to come back
 *  is not queued. */
START_TEST(few_fragments)
{
    superpipe_transfer_t t = begun(true, 100);

    (void)superpipe_transfer_requested(&t, 100);
    t.fragments = true;
    ck_assert(superpipe_transfer_is_idle(&t));
    for (int n = 0; n < SUPERPIPE_FRAGMENTS; n++) {
        ck_assert_uint_eq(superpipe_transfer_fragment(&t, 3), 3);
        superpipe_transfer_given(&t, 3, true);
        ck_assert(!superpipe_transfer_is_idle(&t));
    }
    ck_assert_uint_eq(superpipe_transfer_fragment(&t, 3), 0);
    superpipe_transfer_ended(&t, true);
    ck_assert_uint_eq(superpipe_transfer_fragment(&t, 3), 3);
}
END_TEST

/** One that is broken takes nothing any more. */
START_TEST(broken)
{
    superpipe_transfer_t t = begun(false, 10);

    ck_assert(!superpipe_transfer_fit(&t, 10, 0));
    ck_assert(superpipe_transfer_takes(&t, 4, 6) && !superpipe_transfer_takes(&t, 5, 6));
    t.broken = true;
    ck_assert(!superpipe_transfer_takes(&t, 0, 1));
}
END_TEST

int main(void)
{
    return UNIT_RUN("pml transfer", UNIT_LOOP(both_ends, 0, 8), UNIT_LOOP(bounds, 0, 4),
                    UNIT_ONCE(given_in_time), UNIT_ONCE(early), UNIT_ONCE(few_fragments),
                    UNIT_ONCE(broken));
}
