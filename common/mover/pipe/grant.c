/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Granting slots in turn; see grant.h. */
#include "common/mover/pipe/grant.h"

#include <stddef.h>
#include <string.h>

static unsigned count(uint64_t slots)
{
    return (unsigned)__builtin_popcountll(slots);
}

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

static bool is_active(const onic_asker_t *a)
{
    return a->n > 0 || a->held != 0;
}

void onic_grants_init(onic_grants_t *g, const onic_grant_source_t *source)
{
    *g = (onic_grants_t){.source = *source};
}

/* ---- the queue ------------------------------------------------------------------------------ */

static void enqueue(onic_grants_t *g, onic_asker_t *a)
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
static void dequeue(onic_grants_t *g, onic_asker_t *before, onic_asker_t *a)
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

static void leave_queue(onic_grants_t *g, onic_asker_t *a)
{
    onic_asker_t *before = NULL;

    for (onic_asker_t *at = g->head; at != NULL; before = at, at = at->next) {
        if (at == a) {
            dequeue(g, before, a);
            return;
        }
    }
}

bool onic_grants_ask(onic_grants_t *g, onic_asker_t *a, uint32_t name, uint32_t slots)
{
    if (a->n == ONIC_GRANT_ASKS)
        return false;
    if (!is_active(a))
        g->active++;
    if (a->n == 0)
        enqueue(g, a);
    slots = slots > 0 ? slots : 1;
    a->ask[(a->first + a->n) % ONIC_GRANT_ASKS] = (onic_ask_t){name, least(slots, g->source.total)};
    a->n++;
    return true;
}

bool onic_grants_withdraw(onic_grants_t *g, onic_asker_t *a, uint32_t name)
{
    unsigned kept = 0;
    bool found = false;

    for (unsigned i = 0; i < a->n; i++) {
        const onic_ask_t ask = a->ask[(a->first + i) % ONIC_GRANT_ASKS];

        if (!found && ask.name == name)
            found = true;
        else
            a->ask[(a->first + kept++) % ONIC_GRANT_ASKS] = ask;
    }
    a->n = kept;
    if (found && a->n == 0) {
        leave_queue(g, a);
        g->active -= !is_active(a);
    }
    return found;
}

/* ---- granting ------------------------------------------------------------------------------- */

static unsigned share(const onic_grants_t *g)
{
    const unsigned each = g->source.total / (g->active > 0 ? g->active : 1);

    return each > 0 ? each : 1;
}

/** How many of `wanted` slots a sender may take while `free` > 0 are free. */
static unsigned allowed(const onic_grants_t *g, const onic_asker_t *a, unsigned wanted,
                        unsigned free, bool others)
{
    const unsigned has = count(a->held), part = free > 1 ? free / 2 : 1;
    const unsigned left = share(g) > has ? share(g) - has : 1;

    wanted = least(wanted, part);
    return others ? least(wanted, left) : wanted;
}

/** The first in the queue that has less than its share, or else the first of all. */
static onic_asker_t *next_asker(const onic_grants_t *g, onic_asker_t **before_p)
{
    onic_asker_t *before = NULL;

    *before_p = NULL;
    for (onic_asker_t *a = g->head; a != NULL; before = a, a = a->next) {
        if (count(a->held) < share(g)) {
            *before_p = before;
            return a;
        }
    }
    return g->head;
}

bool onic_grants_next(onic_grants_t *g, onic_grant_t *grant_p)
{
    onic_asker_t *before, *a = next_asker(g, &before);
    const unsigned free = a != NULL ? g->source.count(g->source.arg) : 0;
    uint64_t slots;

    if (free == 0)
        return false;
    slots =
        g->source.take(g->source.arg, allowed(g, a, a->ask[a->first].slots, free, g->waiting > 1));
    if (slots == 0)
        return false;
    *grant_p = (onic_grant_t){a, a->ask[a->first].name, slots};
    a->held |= slots;
    a->first = (a->first + 1) % ONIC_GRANT_ASKS;
    a->n--;
    dequeue(g, before, a);
    if (a->n > 0)
        enqueue(g, a);
    return true;
}

uint64_t onic_grants_reserve(onic_grants_t *g, onic_asker_t *a, uint32_t slots)
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

bool onic_grants_give(onic_grants_t *g, onic_asker_t *a, uint64_t slots)
{
    if (slots == 0 || (slots & ~a->held) != 0)
        return false;
    a->held &= ~slots;
    g->active -= !is_active(a);
    g->source.give(g->source.arg, slots);
    return true;
}

uint64_t onic_grants_forget(onic_grants_t *g, onic_asker_t *a)
{
    const uint64_t held = a->held;

    if (a->n > 0)
        leave_queue(g, a);
    g->active -= is_active(a);
    memset(a, 0, sizeof(*a));
    return held;
}

uint64_t onic_grants_lose(onic_grants_t *g, onic_asker_t *a, uint64_t in_use)
{
    const uint64_t held = onic_grants_forget(g, a);

    a->lost = true;
    a->held = held & in_use;
    return held & ~in_use;
}

uint64_t onic_grants_back(onic_grants_t *g, onic_asker_t *a, uint64_t slots)
{
    slots &= a->held;
    if (!a->lost) {
        (void)onic_grants_give(g, a, slots);
        return 0;
    }
    a->held &= ~slots;
    return slots;
}
