/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "osc_nicstride/protocol/lockq.h"

#include <string.h>

/* The state of an entry: 0 while idle, else one of these and the lock type; and of one that waits,
 * perhaps, that it may pass others. */
#define STATE_WAITING 0x10u
#define STATE_HOLDING 0x20u
#define STATE_PASSING 0x40u
#define STATE_TYPE    0x0fu

size_t nicstride_lockq_size(uint32_t n)
{
    return sizeof(nicstride_lockq_t) + (size_t)n * sizeof(nicstride_lockq_entry_t);
}

void nicstride_lockq_init(nicstride_lockq_t *q, uint32_t n)
{
    memset(q, 0, nicstride_lockq_size(n));
    q->n = n;
}

/* Can a lock of this type join the holders? The queue is not looked at. */
static bool compatible(const nicstride_lockq_t *q, uint32_t type)
{
    return q->holders == 0 || (type == NICSTRIDE_LOCK_SHARED && !q->exclusive);
}

/* May a request pass the exclusive ones that wait? */
static bool passes(const nicstride_lockq_t *q, uint64_t since)
{
    return q->writers > 0 && since != 0 && since <= q->since;
}

/* Nobody else overtakes a waiter, not even where the lock would be compatible: between a release
 * and its next_grant the lock is free but promised. */
static bool is_free(const nicstride_lockq_t *q, uint32_t type, uint64_t since)
{
    return (q->head == 0 || passes(q, since)) && compatible(q, type);
}

static void hold(nicstride_lockq_t *q, uint32_t origin, uint32_t type)
{
    q->entry[origin].state = STATE_HOLDING | type;
    q->holders++;
    q->exclusive = type == NICSTRIDE_LOCK_EXCLUSIVE;
}

static void append(nicstride_lockq_t *q, uint32_t origin)
{
    q->entry[origin].next = 0;
    if (q->tail != 0)
        q->entry[q->tail - 1].next = origin + 1;
    else
        q->head = origin + 1;
    q->tail = origin + 1;
}

static void prepend(nicstride_lockq_t *q, uint32_t origin)
{
    q->entry[origin].next = q->head;
    q->head = origin + 1;
    if (q->tail == 0)
        q->tail = origin + 1;
}

/* Takes one out of the line. `before`: the one before it, + 1, or 0. */
static void take_out(nicstride_lockq_t *q, uint32_t before, uint32_t origin)
{
    const uint32_t state = q->entry[origin].state;

    if (before == 0)
        q->head = q->entry[origin].next;
    else
        q->entry[before - 1].next = q->entry[origin].next;
    if (q->tail == origin + 1)
        q->tail = before;
    q->entry[origin].next = 0;
    q->writers -= (state & STATE_TYPE) == NICSTRIDE_LOCK_EXCLUSIVE;
    q->passing -= (state & STATE_PASSING) != 0;
    q->entry[origin].state = state & ~STATE_PASSING;
}

/* Another exclusive request becomes the first: all that wait to pass go before it, since what they
 * have said is not later than this. */
static void next_writer(nicstride_lockq_t *q)
{
    uint32_t before = 0, at = q->head;

    q->since = ++q->latest;
    while (q->passing > 0) {
        const uint32_t origin = at - 1;

        at = q->entry[origin].next;
        if ((q->entry[origin].state & STATE_PASSING) != 0) {
            take_out(q, before, origin);
            prepend(q, origin);
            before = before == 0 ? origin + 1 : before;
        } else {
            before = origin + 1;
        }
    }
}

nicstride_lockq_result_t nicstride_lockq_request(nicstride_lockq_t *q, uint32_t origin,
                                                 uint32_t type, uint64_t since)
{
    if (origin >= q->n || q->entry[origin].state != 0)
        return NICSTRIDE_LOCKQ_REFUSED;
    if (type != NICSTRIDE_LOCK_SHARED && (type != NICSTRIDE_LOCK_EXCLUSIVE || since != 0))
        return NICSTRIDE_LOCKQ_REFUSED;

    if (since > q->latest)
        q->latest = since;
    if (is_free(q, type, since)) {
        hold(q, origin, type);
        return NICSTRIDE_LOCKQ_GRANTED;
    }
    q->entry[origin].state = STATE_WAITING | type;
    if (passes(q, since)) {
        prepend(q, origin);
        return NICSTRIDE_LOCKQ_QUEUED;
    }
    if (since != 0 && q->writers > 0) {
        q->entry[origin].state |= STATE_PASSING;
        q->passing++;
    }
    append(q, origin);
    if (type == NICSTRIDE_LOCK_EXCLUSIVE && q->writers++ == 0)
        next_writer(q);
    return NICSTRIDE_LOCKQ_QUEUED;
}

bool nicstride_lockq_try(nicstride_lockq_t *q, uint32_t origin, uint32_t type, uint64_t since)
{
    return is_free(q, type, since) &&
           nicstride_lockq_request(q, origin, type, since) == NICSTRIDE_LOCKQ_GRANTED;
}

bool nicstride_lockq_release(nicstride_lockq_t *q, uint32_t origin)
{
    if (!nicstride_lockq_holds(q, origin))
        return false;
    q->entry[origin].state = 0;
    q->holders--;
    q->exclusive = 0;
    return true;
}

bool nicstride_lockq_forget(nicstride_lockq_t *q, uint32_t origin)
{
    uint32_t before = 0; /* the one in the line before it, + 1 */

    if (nicstride_lockq_release(q, origin))
        return true;
    if (origin >= q->n || q->entry[origin].state == 0)
        return false;
    while ((before == 0 ? q->head : q->entry[before - 1].next) != origin + 1)
        before = before == 0 ? q->head : q->entry[before - 1].next;
    take_out(q, before, origin);
    q->entry[origin].state = 0;
    /* The one behind it may be the first now. */
    next_writer(q);
    return true;
}

bool nicstride_lockq_next_grant(nicstride_lockq_t *q, uint32_t *origin_p)
{
    if (q->head == 0)
        return false;

    const uint32_t origin = q->head - 1;
    const uint32_t type = q->entry[origin].state & STATE_TYPE;
    if (!compatible(q, type))
        return false;

    take_out(q, 0, origin);
    hold(q, origin, type);
    if (type == NICSTRIDE_LOCK_EXCLUSIVE)
        next_writer(q);
    *origin_p = origin;
    return true;
}

bool nicstride_lockq_holds(const nicstride_lockq_t *q, uint32_t origin)
{
    return origin < q->n && (q->entry[origin].state & STATE_HOLDING) != 0;
}

/* ---- the gate -------------------------------------------------------------------------------- */

/** So many times the gate is not opened when a near process had to wait because of it. */
enum { NEAR_SHUT = 64 };

/** Who stands for those behind the gate. */
static uint32_t insiders(const nicstride_lockq_t *q)
{
    return q->n - 1;
}

/** The gate is closed, and the word is that: who is inside? */
static void look(nicstride_gate_t *g, nicstride_lockq_t *q, uint64_t word)
{
    const uint64_t inside = word & ~NICSTRIDE_GATE_CLOSED;

    g->state = NICSTRIDE_GATE_LEAVING;
    if (inside == 0) {
        (void)nicstride_lockq_release(q, insiders(q));
        g->state = NICSTRIDE_GATE_SHUT;
    } else if (inside >> 32 == 0) {
        q->entry[insiders(q)].state = STATE_HOLDING | NICSTRIDE_LOCK_SHARED;
        q->exclusive = 0;
    }
}

nicstride_gate_do_t nicstride_gate_released(nicstride_gate_t *g, nicstride_lockq_t *q)
{
    if (g->state != NICSTRIDE_GATE_SHUT)
        return NICSTRIDE_GATE_NOTHING;
    if (g->shut > 0) {
        g->shut--;
        return NICSTRIDE_GATE_NOTHING;
    }
    if (!nicstride_lockq_try(q, insiders(q), NICSTRIDE_LOCK_EXCLUSIVE, 0))
        return NICSTRIDE_GATE_NOTHING;
    g->state = NICSTRIDE_GATE_OPENING;
    return NICSTRIDE_GATE_DO_OPEN;
}

nicstride_gate_do_t nicstride_gate_wanted(nicstride_gate_t *g, nicstride_lockq_t *q, bool near,
                                          uint64_t word)
{
    const bool closes = g->state == NICSTRIDE_GATE_OPEN;

    if (near && g->shut < NEAR_SHUT && (closes || g->state == NICSTRIDE_GATE_OPENING))
        g->shut = NEAR_SHUT;
    if (g->state == NICSTRIDE_GATE_LEAVING)
        look(g, q, word);
    if (!closes)
        return NICSTRIDE_GATE_NOTHING;
    g->state = NICSTRIDE_GATE_CLOSING;
    return NICSTRIDE_GATE_DO_CLOSE;
}

nicstride_gate_do_t nicstride_gate_changed(nicstride_gate_t *g, nicstride_lockq_t *q, uint64_t word)
{
    if (g->state == NICSTRIDE_GATE_CLOSING) {
        look(g, q, word);
        return NICSTRIDE_GATE_NOTHING;
    }
    if (g->state != NICSTRIDE_GATE_OPENING)
        return NICSTRIDE_GATE_NOTHING;
    g->state = NICSTRIDE_GATE_OPEN;
    if (q->head == 0)
        return NICSTRIDE_GATE_NOTHING;
    g->state = NICSTRIDE_GATE_CLOSING;
    return NICSTRIDE_GATE_DO_CLOSE;
}
