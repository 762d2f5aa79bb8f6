/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The lock queue against a naive model, and locks that are asked for by message. */
#include "osc_nicstride/protocol/asked_lock.h"
#include "osc_nicstride/protocol/lockq.h"

#include <string.h>

#include "test/unit/unit.h"

#define MAX_ORIGINS 12

/* A queue in memory of its own, exactly as large as it says. */
static nicstride_lockq_t *new_queue(uint32_t n)
{
    nicstride_lockq_t *q = malloc(nicstride_lockq_size(n));

    UNIT_CHECK(q != NULL);
    memset(q, 0xa5, nicstride_lockq_size(n));
    nicstride_lockq_init(q, n);
    return q;
}

/* The same queue at another address; the old memory is spoilt. */
static nicstride_lockq_t *moved(nicstride_lockq_t *q)
{
    const size_t size = nicstride_lockq_size(q->n);
    nicstride_lockq_t *to = malloc(size);

    UNIT_CHECK(to != NULL);
    memcpy(to, q, size);
    memset(q, 0xff, size);
    free(q);
    return to;
}

/* ---- the model: who holds, and a line of those who wait ------------------------------------- */

typedef struct model {
    uint32_t n;
    uint32_t first_type;         /* of the two that are asked for */
    uint32_t holds[MAX_ORIGINS]; /* type, or 0 */
    uint32_t waits[MAX_ORIGINS]; /* type, or 0 */
    uint32_t line[MAX_ORIGINS];
    uint32_t waiting;
    uint32_t stays[MAX_ORIGINS]; /* holders to be asked to leave, the next one last */
    uint32_t staying;
} model_t;

static uint32_t model_holders(const model_t *m, uint32_t type)
{
    uint32_t k = 0;

    for (uint32_t i = 0; i < m->n; i++)
        k += m->holds[i] == type;
    return k;
}

static uint32_t model_all_holders(const model_t *m)
{
    return m->n - model_holders(m, 0);
}

static bool model_can_hold(const model_t *m, uint32_t type)
{
    const uint32_t alike = type == NICSTRIDE_LOCK_EXCLUSIVE ? 0 : model_holders(m, type);

    return model_all_holders(m) == alike;
}

static void model_hold(model_t *m, uint32_t origin, uint32_t type)
{
    m->holds[origin] = type;
    if (type > NICSTRIDE_LOCK_EXCLUSIVE)
        m->stays[m->staying++] = origin;
}

/** Takes one out of a list, if it is there. */
static void model_take_out(uint32_t *list, uint32_t *len, uint32_t origin)
{
    uint32_t k = 0;

    for (uint32_t i = 0; i < *len; i++)
        if (list[i] != origin)
            list[k++] = list[i];
    *len = k;
}

static bool model_request(model_t *m, uint32_t origin, uint32_t type, bool holds)
{
    const bool passes = holds && type != NICSTRIDE_LOCK_EXCLUSIVE;

    if ((m->waiting == 0 || passes) && model_can_hold(m, type)) {
        model_hold(m, origin, type);
        return true;
    }
    m->waits[origin] = type;
    if (passes)
        memmove(m->line + 1, m->line, m->waiting * sizeof(m->line[0]));
    m->line[passes ? 0 : m->waiting] = origin;
    m->waiting++;
    return false;
}

static bool model_release(model_t *m, uint32_t origin)
{
    if (m->holds[origin] == 0)
        return false;
    m->holds[origin] = 0;
    model_take_out(m->stays, &m->staying, origin);
    return true;
}

static bool model_forget(model_t *m, uint32_t origin)
{
    if (model_release(m, origin))
        return true;
    if (m->waits[origin] == 0)
        return false;
    m->waits[origin] = 0;
    model_take_out(m->line, &m->waiting, origin);
    return true;
}

static bool model_next_grant(model_t *m, uint32_t *origin_p)
{
    if (m->waiting == 0 || !model_can_hold(m, m->waits[m->line[0]]))
        return false;
    *origin_p = m->line[0];
    model_hold(m, *origin_p, m->waits[*origin_p]);
    m->waits[*origin_p] = 0;
    model_take_out(m->line, &m->waiting, *origin_p);
    return true;
}

static bool model_next_to_leave(model_t *m, uint32_t *origin_p)
{
    if (m->waiting == 0 || m->staying == 0)
        return false;
    *origin_p = m->stays[--m->staying];
    return true;
}

/* ---- tests ---------------------------------------------------------------------------------- */

static void check_same(const nicstride_lockq_t *q, const model_t *m)
{
    const uint32_t exclusive = model_holders(m, NICSTRIDE_LOCK_EXCLUSIVE);
    const uint32_t all = model_all_holders(m);

    UNIT_CHECK(exclusive == 0 || all == 1);
    UNIT_CHECK(q->holders == all);
    UNIT_CHECK(all == 0 || model_holders(m, q->type) == all);
    for (uint32_t i = 0; i < m->n; i++)
        UNIT_CHECK(nicstride_lockq_holds(q, i) == (m->holds[i] != 0));
}

/* One random call on both; one that comes to nothing must leave every byte of the queue as it was.
 */
static void random_call(unit_random_t *r, nicstride_lockq_t *q, model_t *m)
{
    const size_t size = nicstride_lockq_size(m->n);
    const uint32_t origin = (uint32_t)unit_below(r, m->n);
    const uint32_t type = m->first_type + (uint32_t)unit_below(r, 2);
    const bool asks = m->holds[origin] == 0 && m->waits[origin] == 0;
    const bool holds = unit_once_in(r, 4);
    uint32_t got = UINT32_MAX, want = UINT32_MAX;
    bool refused;
    void *before = malloc(size);

    UNIT_CHECK(before != NULL);
    memcpy(before, q, size);
    switch (unit_once_in(r, 8) ? 3 + unit_below(r, 2) : unit_below(r, 3)) {
    case 0:
        refused = !asks;
        if (asks)
            UNIT_CHECK(nicstride_lockq_request(q, origin, type, holds) ==
                       model_request(m, origin, type, holds));
        break;
    case 1:
        refused = !nicstride_lockq_release(q, origin);
        UNIT_CHECK(refused == !model_release(m, origin));
        break;
    case 3:
        refused = !nicstride_lockq_forget(q, origin);
        UNIT_CHECK(refused == !model_forget(m, origin));
        break;
    case 4:
        refused = !nicstride_lockq_next_to_leave(q, &got);
        UNIT_CHECK(refused == !model_next_to_leave(m, &want));
        UNIT_CHECK(got == want);
        break;
    default:
        refused = !nicstride_lockq_next_grant(q, &got);
        UNIT_CHECK(refused == !model_next_grant(m, &want));
        UNIT_CHECK(got == want);
    }
    UNIT_CHECK(!refused || memcmp(before, q, size) == 0);
    free(before);
    check_same(q, m);
}

/* Releases and grants until nobody is left: everyone who waited must have had the lock. */
static void drain(nicstride_lockq_t *q, model_t *m)
{
    uint32_t origin, want, served = 0;
    const uint32_t waiting = m->waiting;

    do {
        for (; nicstride_lockq_next_grant(q, &origin); served++)
            UNIT_CHECK(model_next_grant(m, &want) && want == origin);
        UNIT_CHECK(q->holders > 0 || q->head == 0);
        for (origin = 0; origin < q->n; origin++)
            if (nicstride_lockq_release(q, origin))
                break;
        UNIT_CHECK(origin == q->n || model_release(m, origin));
    } while (origin < q->n);
    UNIT_CHECK(served == waiting);
    UNIT_CHECK(q->holders == 0 && q->stays == 0);
    UNIT_CHECK(q->tail == 0);
}

START_TEST(random_schedules)
{
    unit_random_t r = {unit_seed()};

    for (int round = 0; round < 4000; round++) {
        model_t m = {.n = 1 + (uint32_t)unit_below(&r, MAX_ORIGINS),
                     .first_type = round % 2 == 0 ? NICSTRIDE_LOCK_SHARED : NICSTRIDE_LOCK_OF_ALL};
        nicstride_lockq_t *q = new_queue(m.n);
        for (uint64_t left = unit_below(&r, 200); left > 0; left--) {
            random_call(&r, q, &m);
            if (unit_once_in(&r, 16))
                q = moved(q);
        }
        drain(q, &m);
        free(q);
    }
}
END_TEST

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
    return UNIT_RUN("lockq", UNIT_ONCE(random_schedules), UNIT_ONCE(answers),
                    UNIT_ONCE(random_requests));
}
