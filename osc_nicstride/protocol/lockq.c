/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The lock queue; see lockq.h. */
#include "osc_nicstride/protocol/lockq.h"

#include <string.h>

/* The state of an entry: 0 while idle, else one of these and the lock type. */
#define STATE_WAITING 0x10u
#define STATE_HOLDING 0x20u
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

/* Can a lock of this type join those who hold it now? The queue is not looked at. */
static bool compatible(const nicstride_lockq_t *q, uint32_t type)
{
    return q->holders == 0 || (type == NICSTRIDE_LOCK_SHARED && !q->exclusive);
}

static void hold(nicstride_lockq_t *q, uint32_t origin, uint32_t type)
{
    q->entry[origin].state = STATE_HOLDING | type;
    q->holders++;
    q->exclusive = type == NICSTRIDE_LOCK_EXCLUSIVE;
}

static void enqueue(nicstride_lockq_t *q, uint32_t origin, uint32_t type)
{
    q->entry[origin].state = STATE_WAITING | type;
    q->entry[origin].next = 0;
    if (q->tail != 0)
        q->entry[q->tail - 1].next = origin + 1;
    else
        q->head = origin + 1;
    q->tail = origin + 1;
}

nicstride_lockq_result_t nicstride_lockq_request(nicstride_lockq_t *q, uint32_t origin,
                                                 uint32_t type)
{
    if (origin >= q->n || q->entry[origin].state != 0)
        return NICSTRIDE_LOCKQ_REFUSED;
    if (type != NICSTRIDE_LOCK_SHARED && type != NICSTRIDE_LOCK_EXCLUSIVE)
        return NICSTRIDE_LOCKQ_REFUSED;

    /* Nobody overtakes a waiter, not even where the lock would be compatible: between a release
     * and its next_grant the lock is free but promised. */
    if (q->head != 0 || !compatible(q, type)) {
        enqueue(q, origin, type);
        return NICSTRIDE_LOCKQ_QUEUED;
    }
    hold(q, origin, type);
    return NICSTRIDE_LOCKQ_GRANTED;
}

bool nicstride_lockq_try(nicstride_lockq_t *q, uint32_t origin, uint32_t type)
{
    return q->head == 0 && compatible(q, type) &&
           nicstride_lockq_request(q, origin, type) == NICSTRIDE_LOCKQ_GRANTED;
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
    if (before == 0)
        q->head = q->entry[origin].next;
    else
        q->entry[before - 1].next = q->entry[origin].next;
    if (q->tail == origin + 1)
        q->tail = before;
    q->entry[origin] = (nicstride_lockq_entry_t){0, 0};
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

    q->head = q->entry[origin].next;
    if (q->head == 0)
        q->tail = 0;
    q->entry[origin].next = 0;
    hold(q, origin, type);
    *origin_p = origin;
    return true;
}

bool nicstride_lockq_holds(const nicstride_lockq_t *q, uint32_t origin)
{
    return origin < q->n && (q->entry[origin].state & STATE_HOLDING) != 0;
}
