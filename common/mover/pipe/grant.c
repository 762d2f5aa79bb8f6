/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Granting slots in turn; see grant.h. */
#include "common/mover/pipe/grant.h"

#include <stddef.h>

static unsigned count(uint64_t slots)
{
    return (unsigned)__builtin_popcountll(slots);
}

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

static bool is_active(const onic_requester_t *a)
{
    return a->n > 0 || a->held != 0;
}

void onic_grants_init(onic_grants_t *g, const onic_grant_source_t *source)
{
    *g = (onic_grants_t){.source = *source};
}

/* ---- the queue ------------------------------------------------------------------------------ */

static void enqueue(onic_grants_t *g, onic_requester_t *a)
{
    a->next = NULL;
    if (g->tail != NULL)
        g->tail->next = a;
    else
        g->head = a;
    g->tail = a;
    g->waiting++;
}

/** Takes out `a`, which stands behind `before`, or first where that is NULL. */
static void dequeue(onic_grants_t *g, onic_requester_t *before, onic_requester_t *a)
{
    if (before != NULL)
        before->next = a->next;
    else
        g->head = a->next;
    if (g->tail == a)
        g->tail = before;
    a->next = NULL;
    g->waiting--;
}

static void leave_queue(onic_grants_t *g, onic_requester_t *a)
{
    onic_requester_t *before = NULL;

    for (onic_requester_t *at = g->head; at != NULL; before = at, at = at->next) {
        if (at == a) {
            dequeue(g, before, a);
            return;
        }
    }
}

bool onic_grants_request(onic_grants_t *g, onic_requester_t *a, uint32_t name, uint32_t slots)
{
    if (a->n == ONIC_GRANT_REQUESTS)
        return false;
    if (!is_active(a))
        g->active++;
    if (a->n == 0)
        enqueue(g, a);
    slots = slots > 0 ? slots : 1;
    a->request[(a->first + a->n) % ONIC_GRANT_REQUESTS] =
        (onic_slot_request_t){name, least(slots, g->source.total)};
    a->n++;
    return true;
}

/* ---- granting ------------------------------------------------------------------------------- */

static unsigned share(const onic_grants_t *g)
{
    const unsigned each = g->source.total / (g->active > 0 ? g->active : 1);

    return each > 0 ? each : 1;
}

/** How many of `wanted` slots a sender may take while `free` > 0 are free. */
static unsigned allowed(const onic_grants_t *g, const onic_requester_t *a, unsigned wanted,
                        unsigned free, bool others)
{
    const unsigned has = count(a->held), part = free > 1 ? free / 2 : 1;
    const unsigned left = share(g) > has ? share(g) - has : 1;

    wanted = least(wanted, part);
    return others ? least(wanted, left) : wanted;
}

/** The first in the queue that has less than its share, or else the first of all. */
static onic_requester_t *next_requester(const onic_grants_t *g, onic_requester_t **before_p)
{
    onic_requester_t *before = NULL;

    *before_p = NULL;
    for (onic_requester_t *a = g->head; a != NULL; before = a, a = a->next) {
        if (count(a->held) < share(g)) {
            *before_p = before;
            return a;
        }
    }
    return g->head;
}

bool onic_grants_next(onic_grants_t *g, onic_grant_t *grant_p)
{
    onic_requester_t *before, *a = next_requester(g, &before);
    const unsigned free = a != NULL ? g->source.count(g->source.arg) : 0;
    uint64_t slots;

    if (free == 0)
        return false;
    slots = g->source.take(g->source.arg,
                           allowed(g, a, a->request[a->first].slots, free, g->waiting > 1));
    if (slots == 0)
        return false;
    *grant_p = (onic_grant_t){a, a->request[a->first].name, slots};
    a->held |= slots;
    a->first = (a->first + 1) % ONIC_GRANT_REQUESTS;
    a->n--;
    dequeue(g, before, a);
    if (a->n > 0)
        enqueue(g, a);
    return true;
}

uint64_t onic_grants_reserve(onic_grants_t *g, onic_requester_t *a, uint32_t slots)
{
    const unsigned free = g->waiting == 0 ? g->source.count(g->source.arg) : 0;
    uint64_t taken;

    if (free == 0)
        return 0;
    slots = slots > 0 ? slots : 1;
    taken = g->source.take(g->source.arg, allowed(g, a, slots, free, false));
    g->active += taken != 0 && !is_active(a);
    a->held |= taken;
    return taken;
}

uint64_t onic_grants_release(onic_grants_t *g, onic_requester_t *a, uint64_t slots)
{
    slots &= a->held;
    if (slots == 0)
        return 0;
    a->held &= ~slots;
    if (a->lost)
        return slots;
    g->active -= !is_active(a);
    g->source.release(g->source.arg, slots);
    return 0;
}

uint64_t onic_grants_lose(onic_grants_t *g, onic_requester_t *a, uint64_t in_use)
{
    const uint64_t held = a->held;

    if (a->n > 0)
        leave_queue(g, a);
    g->active -= is_active(a);
    *a = (onic_requester_t){.lost = true, .held = held & in_use};
    return held & ~in_use;
}
