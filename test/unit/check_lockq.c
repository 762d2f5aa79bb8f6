/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The lock queue against a naive model. */
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
    uint32_t holds[MAX_ORIGINS]; /* type, or 0 */
    uint32_t waits[MAX_ORIGINS]; /* type, or 0 */
    bool passes[MAX_ORIGINS];    /* goes before the next exclusive one that becomes the first */
    uint32_t line[MAX_ORIGINS];
    uint32_t waiting;
    uint64_t latest, since;
} model_t;

static uint32_t model_holders(const model_t *m, uint32_t type)
{
    uint32_t k = 0;

    for (uint32_t i = 0; i < m->n; i++)
        k += m->holds[i] == type;
    return k;
}

static bool model_can_hold(const model_t *m, uint32_t type)
{
    if (model_holders(m, NICSTRIDE_LOCK_EXCLUSIVE) > 0)
        return false;
    return type == NICSTRIDE_LOCK_SHARED || model_holders(m, NICSTRIDE_LOCK_SHARED) == 0;
}

/** Puts who stands at `from` in the line to its beginning. */
static void model_to_front(model_t *m, uint32_t from)
{
    const uint32_t origin = m->line[from];

    memmove(m->line + 1, m->line, from * sizeof(m->line[0]));
    m->line[0] = origin;
}

static void model_next_writer(model_t *m)
{
    m->since = ++m->latest;
    for (uint32_t i = 0; i < m->waiting; i++) {
        const uint32_t origin = m->line[i];

        if (m->passes[origin])
            model_to_front(m, i);
        m->passes[origin] = false;
    }
}

static bool model_writer_waits(const model_t *m)
{
    bool waits = false;

    for (uint32_t i = 0; i < m->waiting; i++)
        waits = waits || m->waits[m->line[i]] == NICSTRIDE_LOCK_EXCLUSIVE;
    return waits;
}

static nicstride_lockq_result_t model_request(model_t *m, uint32_t origin, uint32_t type,
                                              uint64_t since)
{
    const bool writer = model_writer_waits(m), passes = writer && since != 0 && since <= m->since;

    if (origin >= m->n || (type != NICSTRIDE_LOCK_SHARED && type != NICSTRIDE_LOCK_EXCLUSIVE))
        return NICSTRIDE_LOCKQ_REFUSED;
    if (m->holds[origin] != 0 || m->waits[origin] != 0 ||
        (since != 0 && type == NICSTRIDE_LOCK_EXCLUSIVE))
        return NICSTRIDE_LOCKQ_REFUSED;
    m->latest = since > m->latest ? since : m->latest;
    if ((m->waiting == 0 || passes) && model_can_hold(m, type)) {
        m->holds[origin] = type;
        return NICSTRIDE_LOCKQ_GRANTED;
    }
    m->waits[origin] = type;
    m->line[m->waiting++] = origin;
    if (passes)
        model_to_front(m, m->waiting - 1);
    else
        m->passes[origin] = since != 0 && writer;
    if (type == NICSTRIDE_LOCK_EXCLUSIVE && !writer)
        model_next_writer(m);
    return NICSTRIDE_LOCKQ_QUEUED;
}

/** As a request, but only where it is granted. */
static bool model_try(model_t *m, uint32_t origin, uint32_t type, uint64_t since)
{
    model_t then = *m;

    if (model_request(&then, origin, type, since) != NICSTRIDE_LOCKQ_GRANTED)
        return false;
    *m = then;
    return true;
}

static bool model_release(model_t *m, uint32_t origin)
{
    if (origin >= m->n || m->holds[origin] == 0)
        return false;
    m->holds[origin] = 0;
    return true;
}

static bool model_forget(model_t *m, uint32_t origin)
{
    uint32_t k = 0;

    const bool waited = origin < m->n && m->waits[origin] != 0;

    if (origin >= m->n || (m->holds[origin] == 0 && !waited))
        return false;
    m->holds[origin] = m->waits[origin] = 0;
    m->passes[origin] = false;
    for (uint32_t i = 0; i < m->waiting; i++)
        if (m->line[i] != origin)
            m->line[k++] = m->line[i];
    m->waiting = k;
    if (waited)
        model_next_writer(m);
    return true;
}

static bool model_next_grant(model_t *m, uint32_t *origin_p)
{
    if (m->waiting == 0 || !model_can_hold(m, m->waits[m->line[0]]))
        return false;
    *origin_p = m->line[0];
    m->holds[*origin_p] = m->waits[*origin_p];
    m->waits[*origin_p] = 0;
    m->passes[*origin_p] = false;
    m->waiting--;
    memmove(m->line, m->line + 1, m->waiting * sizeof(m->line[0]));
    if (m->holds[*origin_p] == NICSTRIDE_LOCK_EXCLUSIVE)
        model_next_writer(m);
    return true;
}

/* ---- tests ---------------------------------------------------------------------------------- */

static void check_same(const nicstride_lockq_t *q, const model_t *m)
{
    const uint32_t exclusive = model_holders(m, NICSTRIDE_LOCK_EXCLUSIVE);
    const uint32_t shared = model_holders(m, NICSTRIDE_LOCK_SHARED);

    UNIT_CHECK(exclusive == 0 || (exclusive == 1 && shared == 0));
    UNIT_CHECK(q->holders == exclusive + shared);
    UNIT_CHECK(q->exclusive == exclusive);
    for (uint32_t i = 0; i < m->n + 2; i++)
        UNIT_CHECK(nicstride_lockq_holds(q, i) == (i < m->n && m->holds[i] != 0));
}

/* One random call on both; a refused one must leave every byte of the queue as it was. */
static void random_call(unit_random_t *r, nicstride_lockq_t *q, model_t *m)
{
    const size_t size = nicstride_lockq_size(m->n);
    const uint32_t origin =
        unit_once_in(r, 20) ? (uint32_t)unit_random64(r) : (uint32_t)unit_below(r, m->n);
    const uint32_t type =
        unit_once_in(r, 20) ? (uint32_t)unit_random64(r) : 1 + (uint32_t)unit_below(r, 2);
    const uint64_t since = unit_once_in(r, 2) ? 0 : 1 + unit_below(r, 2 + m->latest);
    uint32_t got = UINT32_MAX, want = UINT32_MAX;
    bool refused;
    void *before = malloc(size);

    UNIT_CHECK(before != NULL);
    memcpy(before, q, size);
    switch (unit_once_in(r, 12) ? 3 + unit_below(r, 2) : unit_below(r, 3)) {
    case 0: {
        const nicstride_lockq_result_t result = nicstride_lockq_request(q, origin, type, since);
        UNIT_CHECK(result == model_request(m, origin, type, since));
        refused = result == NICSTRIDE_LOCKQ_REFUSED;
        break;
    }
    case 1:
        refused = !nicstride_lockq_release(q, origin);
        UNIT_CHECK(refused == !model_release(m, origin));
        break;
    case 3:
        refused = !nicstride_lockq_forget(q, origin);
        UNIT_CHECK(refused == !model_forget(m, origin));
        break;
    case 4:
        refused = !nicstride_lockq_try(q, origin, type, since);
        UNIT_CHECK(refused == !model_try(m, origin, type, since));
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
    UNIT_CHECK(q->holders == 0 && q->writers == 0 && q->passing == 0);
    UNIT_CHECK(q->tail == 0);
}

START_TEST(random_schedules)
{
    unit_random_t r = {unit_seed()};

    for (int round = 0; round < 4000; round++) {
        model_t m = {.n = 1 + (uint32_t)unit_below(&r, MAX_ORIGINS)};
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

/* Readers come without end; a writer among them is served as soon as those before it are gone. */
START_TEST(readers_do_not_starve_a_writer)
{
    nicstride_lockq_t *q = new_queue(4);
    uint32_t origin;

    ck_assert_int_eq(nicstride_lockq_request(q, 0, NICSTRIDE_LOCK_SHARED, 0),
                     NICSTRIDE_LOCKQ_GRANTED);
    ck_assert_int_eq(nicstride_lockq_request(q, 1, NICSTRIDE_LOCK_SHARED, 0),
                     NICSTRIDE_LOCKQ_GRANTED);
    ck_assert_int_eq(nicstride_lockq_request(q, 2, NICSTRIDE_LOCK_EXCLUSIVE, 0),
                     NICSTRIDE_LOCKQ_QUEUED);
    ck_assert_int_eq(nicstride_lockq_request(q, 3, NICSTRIDE_LOCK_SHARED, 0),
                     NICSTRIDE_LOCKQ_QUEUED);
    ck_assert(!nicstride_lockq_next_grant(q, &origin));
    ck_assert(nicstride_lockq_release(q, 0));
    ck_assert(!nicstride_lockq_next_grant(q, &origin));
    ck_assert_int_eq(nicstride_lockq_request(q, 0, NICSTRIDE_LOCK_SHARED, 0),
                     NICSTRIDE_LOCKQ_QUEUED);
    ck_assert(nicstride_lockq_release(q, 1));

    ck_assert(nicstride_lockq_next_grant(q, &origin));
    ck_assert_uint_eq(origin, 2);
    ck_assert(!nicstride_lockq_next_grant(q, &origin));
    ck_assert(nicstride_lockq_release(q, 2));

    /* The readers behind it come in together. */
    ck_assert(nicstride_lockq_next_grant(q, &origin));
    ck_assert_uint_eq(origin, 3);
    ck_assert(nicstride_lockq_next_grant(q, &origin));
    ck_assert_uint_eq(origin, 0);
    ck_assert(!nicstride_lockq_next_grant(q, &origin));
    free(q);
}
END_TEST

/* Between a release and the grant that follows it a newcomer must not slip in. */
START_TEST(nobody_overtakes_a_promised_lock)
{
    nicstride_lockq_t *q = new_queue(3);
    uint32_t origin;

    nicstride_lockq_request(q, 0, NICSTRIDE_LOCK_EXCLUSIVE, 0);
    nicstride_lockq_request(q, 1, NICSTRIDE_LOCK_EXCLUSIVE, 0);
    ck_assert(nicstride_lockq_release(q, 0));
    ck_assert_int_eq(nicstride_lockq_request(q, 2, NICSTRIDE_LOCK_EXCLUSIVE, 0),
                     NICSTRIDE_LOCKQ_QUEUED);
    ck_assert_int_eq(nicstride_lockq_request(q, 0, NICSTRIDE_LOCK_SHARED, 0),
                     NICSTRIDE_LOCKQ_QUEUED);
    ck_assert(nicstride_lockq_next_grant(q, &origin));
    ck_assert_uint_eq(origin, 1);
    free(q);
}
END_TEST

START_TEST(a_queue_for_nobody)
{
    nicstride_lockq_t *q = new_queue(0);
    uint32_t origin;

    ck_assert_int_eq(nicstride_lockq_request(q, 0, NICSTRIDE_LOCK_SHARED, 0),
                     NICSTRIDE_LOCKQ_REFUSED);
    ck_assert(!nicstride_lockq_release(q, 0));
    ck_assert(!nicstride_lockq_holds(q, 0));
    ck_assert(!nicstride_lockq_next_grant(q, &origin));
    free(q);
}
END_TEST

int main(void)
{
    return UNIT_RUN("lockq", UNIT_ONCE(random_schedules), UNIT_ONCE(readers_do_not_starve_a_writer),
                    UNIT_ONCE(nobody_overtakes_a_promised_lock), UNIT_ONCE(a_queue_for_nobody));
}
