/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The pool; see credit.h. */
#include "pml_superpipe/matching/credit.h"

#include <stddef.h>

/* Senders that one recall looks at. */
#define LOOKS 4

/* First credit: most and least bytes, and what part of the pool all of it may be. */
#define FIRST_MOST  (UINT64_C(32) << 10)
#define FIRST_LEAST (UINT64_C(1) << 10)
#define FIRST_PART  4

void superpipe_pool_init(superpipe_pool_t *p, uint64_t bytes, uint64_t processes)
{
    uint64_t first = bytes / FIRST_PART / processes;

    first = first > FIRST_MOST ? FIRST_MOST : first;
    if (first < FIRST_LEAST) {
        first = FIRST_LEAST;
        bytes = FIRST_PART * first * processes;
    }
    *p = (superpipe_pool_t){.bytes = bytes, .first = first, .set_aside = first * processes};
}

/* ---- those that hold something --------------------------------------------------------------- */

static void join(superpipe_pool_t *p, superpipe_sender_t *s)
{
    if (p->holder != NULL) {
        s->next = p->holder;
        s->prev = p->holder->prev;
        s->prev->next = s;
        s->next->prev = s;
    } else {
        s->next = s->prev = s;
        p->holder = s;
    }
    p->holders++;
}

static void leave(superpipe_pool_t *p, superpipe_sender_t *s)
{
    if (p->holder == s)
        p->holder = s->next != s ? s->next : NULL;
    s->prev->next = s->next;
    s->next->prev = s->prev;
    s->next = s->prev = NULL;
    p->holders--;
}

/** The pool has lost or got back what makes the difference to `before`. */
static void follow(superpipe_pool_t *p, superpipe_sender_t *s, uint64_t before)
{
    const uint64_t now = superpipe_pool_holds(s);

    p->held += now - before;
    if (before == 0 && now != 0)
        join(p, s);
    else if (before != 0 && now == 0)
        leave(p, s);
}

/* ---- shares ---------------------------------------------------------------------------------- */

/** What a sender may hold. */
static uint64_t allowed(const superpipe_pool_t *p, const superpipe_sender_t *s)
{
    const uint64_t holds = superpipe_pool_holds(s), others = p->held - holds;

    return s->lost ? 0 : (p->bytes - p->set_aside - others) / (p->holders + (holds == 0) + 1);
}

/** It has been looked at: again when half of what it holds is gone, and never later than all. */
static void look_later(superpipe_sender_t *s)
{
    s->look = s->freed + superpipe_pool_holds(s) / 2;
}

/** What each has if all take what they can get; there is at least one. */
static uint64_t share(const superpipe_pool_t *p)
{
    return p->bytes / (2 * p->holders);
}

uint64_t superpipe_pool_grant(superpipe_pool_t *p, superpipe_sender_t *s)
{
    const uint64_t before = superpipe_pool_holds(s), most = allowed(p, s);

    if (most > before) {
        s->limit += most - before;
        follow(p, s, before);
    }
    look_later(s);
    return s->limit;
}

void superpipe_pool_meet(superpipe_pool_t *p, superpipe_sender_t *s, bool of_job)
{
    if (of_job && p->set_aside >= p->first)
        p->set_aside -= p->first;
    else if (p->bytes - p->set_aside - p->held < p->first)
        p->bytes = p->set_aside + p->held + p->first;
    s->limit = p->first;
    follow(p, s, 0);
    look_later(s);
}

/** Would a new limit be worth a message? */
static bool is_due(const superpipe_pool_t *p, const superpipe_sender_t *s)
{
    const uint64_t most = allowed(p, s), holds = superpipe_pool_holds(s);

    return most > holds && most - holds >= most / 2;
}

bool superpipe_pool_lacks(superpipe_pool_t *p, const superpipe_sender_t *s, uint64_t bytes)
{
    const uint64_t most = allowed(p, s), holds = superpipe_pool_holds(s);
    const uint64_t unused = s->limit - s->arrived;

    if (is_due(p, s))
        return true;
    /* Unless enough is on its way already. */
    return most > holds && unused < bytes && bytes - unused <= most - holds;
}

/* ---- what comes and goes --------------------------------------------------------------------- */

bool superpipe_pool_follow_freed(superpipe_pool_t *p, superpipe_sender_t *s, uint64_t bytes)
{
    const uint64_t before = superpipe_pool_holds(s);

    s->freed += bytes;
    follow(p, s, before);
    return is_due(p, s);
}

/** Credit of a sender that it has not used, as far as is known here, and that is above its share by
 *  so much that asking for it pays. */
static uint64_t excess(const superpipe_pool_t *p, const superpipe_sender_t *s)
{
    const uint64_t holds = superpipe_pool_holds(s), unused = s->limit - s->arrived;
    const uint64_t above = holds > share(p) ? holds - share(p) : 0;
    const uint64_t bytes = above < unused ? above : unused;

    return s->recalled || s->lost || bytes < share(p) / 2 ? 0 : bytes;
}

superpipe_sender_t *superpipe_pool_recall(superpipe_pool_t *p, uint64_t *most_p)
{
    for (uint64_t i = 0; i < LOOKS && i < p->holders; i++) {
        superpipe_sender_t *s = p->holder;

        p->holder = s->next;
        *most_p = excess(p, s);
        if (*most_p > 0) {
            s->recalled = true;
            return s;
        }
    }
    return NULL;
}

bool superpipe_pool_returned(superpipe_pool_t *p, superpipe_sender_t *s, uint64_t bytes)
{
    if (!s->recalled || !superpipe_pool_arrived(s, bytes))
        return false;
    s->recalled = false;
    (void)superpipe_pool_freed(p, s, bytes);
    return true;
}

void superpipe_pool_forget(superpipe_pool_t *p, superpipe_sender_t *s)
{
    const uint64_t before = superpipe_pool_holds(s);

    s->limit = s->arrived;
    s->look = 0;
    s->lost = true;
    follow(p, s, before);
}
