/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The pool; see credit.h. */
#include "common/transport/row/credit.h"

/* First credit above the floor: most and least bytes, and what part of the pool all of it may be.
 */
#define FIRST_MOST  (UINT64_C(32) << 10)
#define FIRST_LEAST (UINT64_C(1) << 10)
#define FIRST_PART  4

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

void onic_credit_pool_init(onic_credit_pool_t *p, uint64_t bytes, uint64_t processes)
{
    const uint64_t part = bytes / FIRST_PART / processes;
    const uint64_t first =
        ONIC_CREDIT_FLOOR + (part > FIRST_MOST ? FIRST_MOST : larger(part, FIRST_LEAST));

    /* What is not set aside is at least a fifth. */
    bytes = larger(bytes, first * processes / 4 * 5);
    *p = (onic_credit_pool_t){.bytes = bytes,
                              .first = first,
                              .fair = bytes / 2 / processes,
                              .set_aside = first * processes};
}

void onic_credit_pool_enlarge(onic_credit_pool_t *p, uint64_t bytes, uint64_t processes)
{
    p->bytes = larger(p->bytes, bytes);
    p->fair = larger(p->fair, p->bytes / 2 / processes);
}

/** What no other sender gets of a sender's part: what waits for receives, and a floor. */
static uint64_t least(const onic_credit_user_t *s)
{
    return s->met && !s->lost ? s->waits + ONIC_CREDIT_FLOOR : 0;
}

/** What a sender takes up of the pool: it keeps its first credit. */
static uint64_t reserved(const onic_credit_pool_t *p, const onic_credit_user_t *s)
{
    const uint64_t holds = onic_credit_pool_holds(s);

    return s->lost || !s->met ? holds : larger(larger(holds, p->first), least(s));
}

/** Takes a sender out of the sums, or puts it in, before and after a change of it. */
static void take_out(onic_credit_pool_t *p, const onic_credit_user_t *s)
{
    p->held -= reserved(p, s);
    p->holders -= onic_credit_pool_holds(s) != 0;
}

static void put_in(onic_credit_pool_t *p, onic_credit_user_t *s)
{
    const uint64_t holds = onic_credit_pool_holds(s),
                   above = holds > p->first ? holds - p->first : 0;

    p->held += reserved(p, s);
    p->holders += holds != 0;
    /* It is looked at again when half of what it holds is gone, or all but the first credit. */
    s->look = s->freed + (holds / 2 < above ? holds / 2 : above);
}

/* ---- shares ---------------------------------------------------------------------------------- */

static uint64_t allowed(const onic_credit_pool_t *p, const onic_credit_user_t *s, bool lacks)
{
    const uint64_t others = p->held - reserved(p, s), left = p->bytes - p->set_aside - others;
    const uint64_t share = left / (p->holders + (onic_credit_pool_holds(s) == 0) + 1);
    const bool is_fair = !lacks && p->fair > 0 && share > p->fair;

    return s->lost ? 0 : larger(larger(is_fair ? p->fair : share, p->first), least(s));
}

uint64_t onic_credit_pool_grant(onic_credit_pool_t *p, onic_credit_user_t *s, bool lacks)
{
    const uint64_t holds = onic_credit_pool_holds(s), most = allowed(p, s, lacks);

    take_out(p, s);
    s->limit += most > holds ? most - holds : 0;
    put_in(p, s);
    return s->limit;
}

void onic_credit_pool_meet(onic_credit_pool_t *p, onic_credit_user_t *s, bool of_job)
{
    if (of_job && p->set_aside >= p->first)
        p->set_aside -= p->first;
    else if (p->bytes - p->set_aside - p->held < p->first)
        p->bytes = p->set_aside + p->held + p->first;
    s->limit = p->first;
    s->met = true;
    put_in(p, s);
}

/** Would a new limit be worth a message? Then, too, when a message might not go without it. */
static bool is_due(const onic_credit_user_t *s, uint64_t most)
{
    const uint64_t holds = onic_credit_pool_holds(s), more = most > holds ? most - holds : 0;
    const bool is_low = s->met && s->limit - s->arrived < ONIC_CREDIT_FLOOR / 2;

    return more > 0 && (more >= most / 2 || (is_low && more >= ONIC_CREDIT_FLOOR / 2));
}

bool onic_credit_pool_lacks(onic_credit_pool_t *p, const onic_credit_user_t *s, uint64_t bytes)
{
    const uint64_t most = allowed(p, s, true), holds = onic_credit_pool_holds(s);
    const uint64_t unused = s->limit - s->arrived, needs = bytes + (s->met ? ONIC_CREDIT_FLOOR : 0);

    if (is_due(s, most))
        return true;
    /* Unless enough is on its way already. */
    return most > holds && unused < needs && needs - unused <= most - holds;
}

/* ---- what comes and goes --------------------------------------------------------------------- */

void onic_credit_pool_arrived_late(onic_credit_pool_t *p, onic_credit_user_t *s, uint64_t bytes)
{
    take_out(p, s);
    s->limit += bytes;
    put_in(p, s);
}

bool onic_credit_pool_follow_freed(onic_credit_pool_t *p, onic_credit_user_t *s, uint64_t bytes,
                                   bool waits)
{
    take_out(p, s);
    s->freed += bytes;
    s->waits -= waits ? bytes : 0;
    put_in(p, s);
    return is_due(s, allowed(p, s, false));
}

void onic_credit_pool_forget(onic_credit_pool_t *p, onic_credit_user_t *s)
{
    if (s->lost)
        return;
    take_out(p, s);
    s->limit = s->arrived;
    s->lost = true;
    put_in(p, s);
}
