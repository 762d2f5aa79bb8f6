/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "osc_nicstride/protocol/lockq.h"

#include <string.h>

/* The state of an entry: 0 if idle, else one of the first two with the lock type. A holder may
 * have one more bit: it stays in the lock and was not yet asked to leave. */
#define STATE_WAITING 0x10u
#define STATE_HOLDING 0x20u
#define STATE_STAYS   0x40u
#define STATE_TYPE    0x0fu

size_t nicstride_lockq_size(uint32_t n)
{
    return sizeof(nicstride_lockq_t) + (size_t)n * sizeof(nicstride_lockq_entry_t);
}

void nicstride_lockq_init(nicstride_lockq_t *q, uint32_t n)
{
    memset(q, 0, nicstride_lockq_size(n));
}

/* True if a lock of this type can join the current holders. Ignores the queue. */
static bool compatible(const nicstride_lockq_t *q, uint32_t type)
{
    return q->holders == 0 || (type == q->type && type != NICSTRIDE_LOCK_EXCLUSIVE);
}

/* True if a request need not queue behind processes that only wait. */
static bool passes(uint32_t type, bool holds)
{
    return holds && type != NICSTRIDE_LOCK_EXCLUSIVE;
}

/* True if the lock can be taken now. Nobody else overtakes a waiter, even if the lock would be
 * compatible: between a release and its next_grant the lock is free but promised. */
static bool is_free(const nicstride_lockq_t *q, uint32_t type, bool holds)
{
    return (q->head == 0 || passes(type, holds)) && compatible(q, type);
}

static void hold(nicstride_lockq_t *q, uint32_t origin, uint32_t type)
{
    nicstride_lockq_entry_t *e = &q->entry[origin];

    e->state = STATE_HOLDING | type;
    q->holders++;
    q->type = type;
    if (!nicstride_lock_is_of_window(type))
        return;
    e->state |= STATE_STAYS;
    e->next = q->stays;
    q->stays = origin + 1;
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

/* Removes an entry from the list that begins at `first`. Returns the one before it, + 1, or 0. */
static uint32_t unlink_from(nicstride_lockq_t *q, uint32_t *first, uint32_t origin)
{
    uint32_t *link = first, before = 0;

    while (*link != origin + 1) {
        before = *link;
        link = &q->entry[before - 1].next;
    }
    *link = q->entry[origin].next;
    q->entry[origin].next = 0;
    return before;
}

static void take_out(nicstride_lockq_t *q, uint32_t origin)
{
    const uint32_t before = unlink_from(q, &q->head, origin);

    if (q->tail == origin + 1)
        q->tail = before;
}

bool nicstride_lockq_request(nicstride_lockq_t *q, uint32_t origin, uint32_t type, bool holds)
{
    if (is_free(q, type, holds)) {
        hold(q, origin, type);
        return true;
    }
    q->entry[origin].state = STATE_WAITING | type;
    if (passes(type, holds))
        prepend(q, origin);
    else
        append(q, origin);
    return false;
}

bool nicstride_lockq_release(nicstride_lockq_t *q, uint32_t origin)
{
    if (!nicstride_lockq_holds(q, origin))
        return false;
    if ((q->entry[origin].state & STATE_STAYS) != 0)
        (void)unlink_from(q, &q->stays, origin);
    q->entry[origin].state = 0;
    q->holders--;
    return true;
}

bool nicstride_lockq_forget(nicstride_lockq_t *q, uint32_t origin)
{
    if (nicstride_lockq_release(q, origin))
        return true;
    if (q->entry[origin].state == 0)
        return false;
    take_out(q, origin);
    q->entry[origin].state = 0;
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

    take_out(q, origin);
    hold(q, origin, type);
    *origin_p = origin;
    return true;
}

bool nicstride_lockq_next_to_leave(nicstride_lockq_t *q, uint32_t *origin_p)
{
    if (q->head == 0 || q->stays == 0)
        return false;

    const uint32_t origin = q->stays - 1;
    q->stays = q->entry[origin].next;
    q->entry[origin].next = 0;
    q->entry[origin].state &= ~STATE_STAYS;
    *origin_p = origin;
    return true;
}

bool nicstride_lockq_holds(const nicstride_lockq_t *q, uint32_t origin)
{
    return (q->entry[origin].state & STATE_HOLDING) != 0;
}
