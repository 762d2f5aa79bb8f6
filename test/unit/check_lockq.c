/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Locks that are asked for by message, of targets with lock queues. These by themselves are
 *  tested in all states (test/explore/lockq). */
#include "osc_nicstride/protocol/asked_lock.h"
#include "osc_nicstride/protocol/lockq.h"

#include <string.h>

#include "test/unit/unit.h"

/* A queue in memory of its own, exactly as large as it says. */
static nicstride_lockq_t *new_queue(uint32_t n)
{
    nicstride_lockq_t *q = malloc(nicstride_lockq_size(n));

    UNIT_CHECK(q != NULL);
    memset(q, 0xa5, nicstride_lockq_size(n));
    nicstride_lockq_init(q, n);
    return q;
}

/* ---- locks that are asked for by message -------------------------------------------------------
 */

/** An answer counts once, and only where one is waited for. */
START_TEST(answers)
{
    nicstride_asked_t a = {0};

    ck_assert_int_eq(nicstride_asked_answer(&a, 1, false), NICSTRIDE_ANSWER_NONE);
    ck_assert_int_eq(nicstride_asked_error(&a, 7), 0);

    nicstride_asked_hold(&a);
    ck_assert(!nicstride_asked_is_had(&a));
    ck_assert_int_eq(nicstride_asked_answer(&a, 0, false), NICSTRIDE_ANSWER_NONE);
    ck_assert(!nicstride_asked_is_had(&a));
    nicstride_asked_begin(&a, false);
    ck_assert_int_eq(nicstride_asked_answer(&a, 0, false), NICSTRIDE_ANSWER_NONE);
    ck_assert(nicstride_asked_is_had(&a));
    ck_assert_int_eq(nicstride_asked_answer(&a, 5, false), NICSTRIDE_ANSWER_NONE);
    ck_assert_int_eq(nicstride_asked_error(&a, 7), 0);

    for (int carries = 0; carries < 2; carries++) {
        nicstride_asked_begin(&a, carries);
        ck_assert_int_eq(nicstride_asked_answer(&a, 5, false), NICSTRIDE_ANSWER_LOST);
        ck_assert_int_eq(nicstride_asked_error(&a, 7), 5);
    }

    nicstride_asked_begin(&a, true);
    ck_assert_int_eq(nicstride_asked_error(&a, 7), 7);
    nicstride_asked_end(&a);
    ck_assert_int_eq(nicstride_asked_answer(&a, 0, false), NICSTRIDE_ANSWER_NONE);
}
END_TEST

/* An origin that locks, does some operations and unlocks, again and again; its messages and the
 * answers stand in line. */
enum { ASKERS = 5, EPOCHS = 30, LINE = 16 };

typedef struct message {
    enum { LOCK, OPERATION, UNLOCK, GRANT, ACK } kind;
    uint32_t type;   /* LOCK: shared or exclusive */
    unsigned number; /* of the operation, or, with LOCK, of the one that goes along; or 0 */
    bool release;    /* goes along, too */
    bool done;       /* GRANT */
} message_t;

typedef struct line {
    message_t at[LINE];
    unsigned n;
} line_t;

typedef struct asker {
    nicstride_asked_t asked;
    line_t to, from;
    unsigned sent, acked, applied, left, epochs;
    bool inside;
    uint32_t type;
} asker_t;

static void push(line_t *l, message_t m)
{
    UNIT_CHECK(l->n < LINE);
    l->at[l->n++] = m;
}

static message_t pop(line_t *l)
{
    const message_t m = l->at[0];

    memmove(l->at, l->at + 1, --l->n * sizeof(m));
    return m;
}

static void apply(asker_t *o, const nicstride_lockq_t *q, uint32_t i, unsigned number)
{
    UNIT_CHECK(nicstride_lockq_holds(q, i));
    UNIT_CHECK(number == o->applied + 1);
    o->applied++;
    push(&o->from, (message_t){.kind = ACK, .number = number});
}

static void release(nicstride_lockq_t *q, asker_t *all, uint32_t i)
{
    uint32_t next;

    UNIT_CHECK(nicstride_lockq_release(q, i));
    while (nicstride_lockq_next_grant(q, &next))
        push(&all[next].from, (message_t){.kind = GRANT});
}

static void target_takes(nicstride_lockq_t *q, asker_t *all, uint32_t i)
{
    const message_t m = pop(&all[i].to);

    if (m.kind == UNLOCK) {
        release(q, all, i);
    } else if (m.kind == OPERATION) {
        apply(&all[i], q, i, m.number);
    } else if (nicstride_lockq_request(q, i, m.type, false)) {
        push(&all[i].from, (message_t){.kind = GRANT, .done = m.number != 0});
        if (m.number != 0)
            apply(&all[i], q, i, m.number);
        if (m.release)
            release(q, all, i);
    }
}

static void origin_takes(asker_t *o)
{
    const message_t m = pop(&o->from);

    if (m.kind == ACK) {
        UNIT_CHECK(m.number == o->acked + 1);
        o->acked = m.number;
    } else if (nicstride_asked_answer(&o->asked, 0, m.done) == NICSTRIDE_ANSWER_AGAIN) {
        push(&o->to, (message_t){.kind = OPERATION, .number = o->sent});
        if (o->asked.released)
            push(&o->to, (message_t){.kind = UNLOCK});
    }
}

/** The release goes along where the request has not left. */
static void release_along(asker_t *o)
{
    message_t *last = o->to.n > 0 ? &o->to.at[o->to.n - 1] : NULL;

    if (o->left > 0 || last == NULL || last->kind != LOCK || last->number == 0)
        return;
    nicstride_asked_release(&o->asked);
    last->release = o->asked.released;
}

static void operate(asker_t *o)
{
    if (!nicstride_asked_is_had(&o->asked) && o->asked.state != NICSTRIDE_ASKED_HELD)
        return;
    o->left--;
    o->sent++;
    push(&o->to, (message_t){.kind = o->asked.state == NICSTRIDE_ASKED_HELD ? LOCK : OPERATION,
                             .type = o->type,
                             .number = o->sent});
    if (o->asked.state == NICSTRIDE_ASKED_HELD)
        nicstride_asked_begin(&o->asked, true);
}

static void ask_alone(asker_t *o)
{
    push(&o->to, (message_t){.kind = LOCK, .type = o->type});
    nicstride_asked_begin(&o->asked, false);
}

static void origin_acts(unit_random_t *r, asker_t *o)
{
    if (!o->inside && o->epochs > 0) {
        o->epochs--;
        o->inside = true;
        o->left = (unsigned)unit_below(r, 4);
        o->type = unit_once_in(r, 2) ? NICSTRIDE_LOCK_SHARED : NICSTRIDE_LOCK_EXCLUSIVE;
        nicstride_asked_hold(&o->asked);
    } else if (o->inside && o->asked.state == NICSTRIDE_ASKED_HELD && unit_once_in(r, 4)) {
        ask_alone(o); /* a flush, or an operation that is too long to go along */
    } else if (o->inside && o->left > 0) {
        operate(o);
    } else if (o->inside && o->asked.state == NICSTRIDE_ASKED_HELD) {
        ask_alone(o);
    } else if (o->inside && nicstride_asked_is_had(&o->asked) && o->sent == o->acked) {
        if (!o->asked.released)
            push(&o->to, (message_t){.kind = UNLOCK});
        nicstride_asked_end(&o->asked);
        o->inside = false;
    } else if (o->inside) {
        release_along(o);
    }
}

static bool at_rest(const asker_t *all, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (all[i].inside || all[i].epochs > 0 || all[i].to.n > 0 || all[i].from.n > 0)
            return false;
    return true;
}

/** Whatever is applied is applied once, in its order and under the lock, and everybody ends. */
START_TEST(random_requests)
{
    unit_random_t r = {unit_seed()};

    for (int round = 0; round < 500; round++) {
        const unsigned n = 1 + (unsigned)unit_below(&r, ASKERS);
        asker_t all[ASKERS] = {0};
        nicstride_lockq_t *q = new_queue(n);

        for (unsigned i = 0; i < n; i++)
            all[i].epochs = EPOCHS;
        for (unsigned long turns = 0; !at_rest(all, n); turns++) {
            const uint32_t i = (uint32_t)unit_below(&r, n);
            const uint64_t what = unit_below(&r, 3);

            UNIT_CHECK(turns < 1000000);
            if (what == 0)
                origin_acts(&r, &all[i]);
            else if (what == 1 && all[i].to.n > 0)
                target_takes(q, all, i);
            else if (what == 2 && all[i].from.n > 0)
                origin_takes(&all[i]);
        }
        for (unsigned i = 0; i < n; i++)
            UNIT_CHECK(all[i].applied == all[i].sent);
        UNIT_CHECK(q->holders == 0 && q->head == 0);
        free(q);
    }
}
END_TEST

int main(void)
{
    return UNIT_RUN("lockq", UNIT_ONCE(answers), UNIT_ONCE(random_requests));
}
