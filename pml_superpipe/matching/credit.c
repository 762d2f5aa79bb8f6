/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The pool; see credit.h. */
#include "pml_superpipe/matching/credit.h"

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
    *p = (superpipe_pool_t){.bytes = bytes,
                            .first = first,
                            .fair = bytes / 2 / processes,
                            .set_aside = first * processes};
}

/** What a sender takes up of the pool: it keeps its first credit. */
static uint64_t reserved(const superpipe_pool_t *p, const superpipe_sender_t *s)
{
    const uint64_t holds = superpipe_pool_holds(s);

    return s->lost || holds > p->first ? holds : p->first;
}

/** Takes a sender out of the sums, or puts it in, before and after a change of it. */
static void take_out(superpipe_pool_t *p, const superpipe_sender_t *s)
{
    p->held -= reserved(p, s);
    p->holders -= superpipe_pool_holds(s) != 0;
}

static void put_in(superpipe_pool_t *p, superpipe_sender_t *s)
{
    const uint64_t holds = superpipe_pool_holds(s), above = holds > p->first ? holds - p->first : 0;

    p->held += reserved(p, s);
    p->holders += holds != 0;
    /* It is looked at again when half of what it holds is gone, or all but the first credit. */
    s->look = s->freed + (holds / 2 < above ? holds / 2 : above);
}

/* ---- shares ---------------------------------------------------------------------------------- */

static uint64_t allowed(const superpipe_pool_t *p, const superpipe_sender_t *s, bool lacks)
{
    const uint64_t others = p->held - reserved(p, s), left = p->bytes - p->set_aside - others;
    const uint64_t share = left / (p->holders + (superpipe_pool_holds(s) == 0) + 1);
    const uint64_t most = s->lost ? 0 : share > p->first ? share : p->first;

    return !lacks && p->fair > 0 && most > p->fair ? p->fair : most;
}

uint64_t superpipe_pool_grant(superpipe_pool_t *p, superpipe_sender_t *s, bool lacks)
{
    const uint64_t holds = superpipe_pool_holds(s), most = allowed(p, s, lacks);

    take_out(p, s);
    s->limit += most > holds ? most - holds : 0;
    put_in(p, s);
    return s->limit;
}

void superpipe_pool_meet(superpipe_pool_t *p, superpipe_sender_t *s, bool of_job)
{
    if (of_job && p->set_aside >= p->first)
        p->set_aside -= p->first;
    else if (p->bytes - p->set_aside - p->held < p->first)
        p->bytes = p->set_aside + p->held + p->first;
    s->limit = p->first;
    put_in(p, s);
}

/** Would a new limit be worth a message? */
static bool is_due(const superpipe_sender_t *s, uint64_t most)
{
    const uint64_t holds = superpipe_pool_holds(s);

    return most > holds && most - holds >= most / 2;
}

bool superpipe_pool_lacks(superpipe_pool_t *p, const superpipe_sender_t *s, uint64_t bytes)
{
    const uint64_t most = allowed(p, s, true), holds = superpipe_pool_holds(s);
    const uint64_t unused = s->limit - s->arrived;

    if (is_due(s, most))
        return true;
    /* Unless enough is on its way already. */
    return most > holds && unused < bytes && bytes - unused <= most - holds;
}

/* ---- what comes and goes --------------------------------------------------------------------- */

bool superpipe_pool_follow_freed(superpipe_pool_t *p, superpipe_sender_t *s, uint64_t bytes)
{
    take_out(p, s);
    s->freed += bytes;
    put_in(p, s);
    return is_due(s, allowed(p, s, false));
}

void superpipe_pool_forget(superpipe_pool_t *p, superpipe_sender_t *s)
{
    take_out(p, s);
    s->limit = s->arrived;
    s->lost = true;
    put_in(p, s);
}
