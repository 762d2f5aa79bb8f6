/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Locks that are held back: origins that lock, do one or more operations and unlock, a target that
 * does what it can at once and drops the rest, messages that take any time but keep the order
 * between two. Whatever is applied is applied once, in its order, and under the lock; a free lock
 * takes one exchange; everybody ends.
 */
#include "osc_nicstride/protocol/lockq.h"

#include <stdlib.h>
#include <string.h>

#include "test/unit/unit.h"

enum { ORIGINS = 5, EPOCHS = 30, QUEUE = 16 };

typedef enum kind { LOCK, OPERATION, UNLOCK, GRANT, ACK } kind_t;

/** A message: of the kinds in `what`, with the number of an operation or of what is applied. */
typedef struct message {
    unsigned what; /* NICSTRIDE_LAZY_SEND_..., to the target */
    kind_t kind;   /* from it */
    uint64_t number;
    unsigned type;
    bool company;
} message_t;

typedef struct queue {
    message_t at[QUEUE];
    unsigned n;
} queue_t;

typedef struct origin {
    nicstride_lazy_t held;
    uint64_t sent, acked, applied;
    unsigned epochs;   /* still to come */
    bool inside;       /* between lock and unlock */
    bool leaving;      /* in unlock */
    unsigned left;     /* operations of the epoch */
    unsigned type;     /* of the lock */
    unsigned sendings; /* messages of the epoch */
    queue_t to, from;
} origin_t;

typedef struct world {
    nicstride_lockq_t *q;
    origin_t origin[ORIGINS];
    unsigned n;
} world_t;

static void push(queue_t *q, message_t m)
{
    UNIT_CHECK(q->n < QUEUE);
    q->at[q->n++] = m;
}

static message_t pop(queue_t *q)
{
    const message_t m = q->at[0];

    memmove(q->at, q->at + 1, --q->n * sizeof(q->at[0]));
    return m;
}

/* ---- target ---------------------------------------------------------------------------------- */

static void hand_on(world_t *w)
{
    uint32_t to;

    while (nicstride_lockq_next_grant(w->q, &to))
        push(&w->origin[to].from, (message_t){.kind = GRANT});
}

static void target_takes(world_t *w, uint32_t i)
{
    origin_t *o = &w->origin[i];
    const message_t m = pop(&o->to);

    if ((m.what & NICSTRIDE_LAZY_SEND_LOCK) != 0) {
        const bool had = m.company && nicstride_lockq_try(w->q, i, m.type, false);

        if (!had) {
            if (nicstride_lockq_request(w->q, i, m.type, false))
                push(&o->from, (message_t){.kind = GRANT});
            return; /* the rest is dropped */
        }
    }
    if ((m.what & NICSTRIDE_LAZY_SEND_OPERATION) != 0) {
        UNIT_CHECK(nicstride_lockq_holds(w->q, i));
        UNIT_CHECK(m.number == o->applied + 1);
        push(&o->from, (message_t){.kind = ACK, .number = ++o->applied});
    }
    if ((m.what & NICSTRIDE_LAZY_SEND_RELEASE) != 0) {
        UNIT_CHECK(nicstride_lockq_release(w->q, i));
        hand_on(w);
    }
}

/* ---- origin ---------------------------------------------------------------------------------- */

/** Sends in one message, or, if it does not fit, the request alone. */
static void send(origin_t *o, unsigned what, bool fits)
{
    const bool lock = (what & NICSTRIDE_LAZY_SEND_LOCK) != 0;
    uint64_t number = 0;

    if (what == 0)
        return;
    if (lock && !fits)
        what = NICSTRIDE_LAZY_SEND_LOCK;
    if ((what & NICSTRIDE_LAZY_SEND_OPERATION) != 0) {
        UNIT_CHECK(o->held.len == sizeof(number));
        memcpy(&number, o->held.operation, sizeof(number));
        UNIT_CHECK(number == o->held.number);
    }
    o->sendings++;
    push(&o->to, (message_t){.what = what,
                             .number = number,
                             .type = o->held.type,
                             .company = lock && (what & NICSTRIDE_LAZY_SEND_OPERATION) != 0});
}

static void origin_takes(origin_t *o)
{
    const message_t m = pop(&o->from);

    if (m.kind == ACK) {
        UNIT_CHECK(m.number == o->acked + 1 && m.number <= o->sent);
        o->acked = m.number;
        nicstride_lazy_acknowledged(&o->held, o->acked);
    } else {
        UNIT_CHECK(o->held.state == NICSTRIDE_LAZY_ASKED);
        send(o, nicstride_lazy_granted(&o->held), true);
        UNIT_CHECK(o->held.state == NICSTRIDE_LAZY_NOT);
    }
}

static void begin(unit_random_t *r, origin_t *o)
{
    o->inside = true;
    o->sendings = 0;
    o->epochs--;
    o->left = (unsigned)unit_below(r, 4);
    o->type = unit_once_in(r, 2) ? NICSTRIDE_LOCK_SHARED : NICSTRIDE_LOCK_EXCLUSIVE;
    nicstride_lazy_begin(&o->held, o->type, false);
}

/** One operation; true where it is started. */
static bool operate(unit_random_t *r, origin_t *o)
{
    const uint64_t number = o->sent + 1;

    if (nicstride_lazy_has_room(&o->held) && o->sent == o->acked && !unit_once_in(r, 4)) {
        UNIT_CHECK(nicstride_lazy_keep(&o->held, &number, sizeof(number), number));
        UNIT_CHECK(!nicstride_lazy_keep(&o->held, &number, sizeof(number), number));
    } else if (o->held.state != NICSTRIDE_LAZY_NOT) {
        send(o, nicstride_lazy_ask(&o->held, false), !unit_once_in(r, 8));
        return false;
    } else {
        push(&o->to, (message_t){.what = NICSTRIDE_LAZY_SEND_OPERATION, .number = number});
    }
    o->sent++;
    return true;
}

/** True where the epoch is over. */
static bool leave(unit_random_t *r, origin_t *o)
{
    if (!o->leaving) {
        o->leaving = true;
        send(o, nicstride_lazy_ask(&o->held, true), !unit_once_in(r, 8));
    }
    /* No operation: it is asked for all the same. */
    send(o, nicstride_lazy_ask(&o->held, false), true);
    if (o->sent != o->acked || o->held.state != NICSTRIDE_LAZY_NOT)
        return false;
    if (!o->held.release)
        push(&o->to, (message_t){.what = NICSTRIDE_LAZY_SEND_RELEASE});
    o->inside = o->leaving = false;
    return true;
}

/** True where it has done something. */
static bool origin_acts(unit_random_t *r, origin_t *o)
{
    if (!o->inside && o->epochs == 0)
        return false;
    if (!o->inside)
        begin(r, o);
    else if (o->left > 0)
        o->left -= operate(r, o);
    else if (unit_once_in(r, 3) && !o->leaving)
        send(o, nicstride_lazy_ask(&o->held, false), true); /* a flush */
    else
        leave(r, o);
    return true;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static bool at_rest(const world_t *w)
{
    for (unsigned i = 0; i < w->n; i++) {
        const origin_t *o = &w->origin[i];
        if (o->inside || o->epochs > 0 || o->to.n > 0 || o->from.n > 0)
            return false;
    }
    return true;
}

START_TEST(random_epochs)
{
    unit_random_t r = {unit_seed()};

    for (int round = 0; round < 500; round++) {
        world_t w = {.n = 1 + (unsigned)unit_below(&r, ORIGINS)};
        unsigned long turns = 0;

        w.q = malloc(nicstride_lockq_size(w.n));
        UNIT_CHECK(w.q != NULL);
        nicstride_lockq_init(w.q, w.n);
        for (unsigned i = 0; i < w.n; i++)
            w.origin[i].epochs = EPOCHS;
        for (; !at_rest(&w); turns++) {
            const uint32_t i = (uint32_t)unit_below(&r, w.n);
            origin_t *o = &w.origin[i];

            UNIT_CHECK(turns < 1000000);
            switch (unit_below(&r, 3)) {
            case 0:
                origin_acts(&r, o);
                break;
            case 1:
                if (o->to.n > 0)
                    target_takes(&w, i);
                break;
            default:
                if (o->from.n > 0)
                    origin_takes(o);
            }
        }
        for (unsigned i = 0; i < w.n; i++)
            UNIT_CHECK(w.origin[i].applied == w.origin[i].sent);
        UNIT_CHECK(w.q->holders == 0 && w.q->head == 0);
        free(w.q);
    }
}
END_TEST

START_TEST(one_operation)
{
    const uint64_t number = 7;
    nicstride_lazy_t h = {0};

    nicstride_lazy_begin(&h, NICSTRIDE_LOCK_EXCLUSIVE, false);
    ck_assert_uint_eq(nicstride_lazy_granted(&h), 0);
    ck_assert(nicstride_lazy_keep(&h, &number, sizeof(number), number));
    nicstride_lazy_acknowledged(&h, number); /* it is not of this one */
    ck_assert_int_eq(h.state, NICSTRIDE_LAZY_WAITING);
    ck_assert_uint_eq(nicstride_lazy_ask(&h, true), NICSTRIDE_LAZY_SEND_LOCK |
                                                        NICSTRIDE_LAZY_SEND_OPERATION |
                                                        NICSTRIDE_LAZY_SEND_RELEASE);
    ck_assert_uint_eq(nicstride_lazy_ask(&h, true), 0);
    nicstride_lazy_acknowledged(&h, number - 1);
    ck_assert_int_eq(h.state, NICSTRIDE_LAZY_ASKED);
    nicstride_lazy_acknowledged(&h, number);
    ck_assert_int_eq(h.state, NICSTRIDE_LAZY_NOT);
    ck_assert(h.release);
}
END_TEST

START_TEST(a_busy_lock)
{
    const uint64_t number = 1;
    nicstride_lazy_t h = {0};

    nicstride_lazy_begin(&h, NICSTRIDE_LOCK_SHARED, false);
    ck_assert(nicstride_lazy_keep(&h, &number, sizeof(number), number));
    ck_assert_uint_ne(nicstride_lazy_ask(&h, true), 0);
    ck_assert_uint_eq(nicstride_lazy_granted(&h),
                      NICSTRIDE_LAZY_SEND_OPERATION | NICSTRIDE_LAZY_SEND_RELEASE);
    ck_assert_uint_eq(nicstride_lazy_granted(&h), 0);
}
END_TEST

START_TEST(nothing_or_too_much)
{
    static const unsigned char bytes[NICSTRIDE_LAZY_MAX + 1];
    nicstride_lazy_t h = {0};

    ck_assert(!nicstride_lazy_keep(&h, bytes, 8, 1));
    ck_assert_uint_eq(nicstride_lazy_ask(&h, false), 0);
    nicstride_lazy_begin(&h, NICSTRIDE_LOCK_SHARED, false);
    ck_assert(!nicstride_lazy_keep(&h, bytes, sizeof(bytes), 1));
    ck_assert(!nicstride_lazy_keep(&h, bytes, 8, 0));
    ck_assert_uint_eq(nicstride_lazy_ask(&h, true), 0);
    ck_assert_uint_eq(nicstride_lazy_ask(&h, false), NICSTRIDE_LAZY_SEND_LOCK);
    ck_assert(!nicstride_lazy_keep(&h, bytes, 8, 1));
    nicstride_lazy_acknowledged(&h, UINT64_MAX); /* of nothing */
    ck_assert_int_eq(h.state, NICSTRIDE_LAZY_ASKED);
    ck_assert_uint_eq(nicstride_lazy_granted(&h), 0);
    ck_assert_int_eq(h.state, NICSTRIDE_LAZY_NOT);
    ck_assert_uint_eq(nicstride_lazy_ask(&h, true), 0);
}
END_TEST

int main(void)
{
    return UNIT_RUN("held", UNIT_ONCE(random_epochs), UNIT_ONCE(one_operation),
                    UNIT_ONCE(a_busy_lock), UNIT_ONCE(nothing_or_too_much));
}
