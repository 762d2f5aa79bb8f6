/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * How much of a target's memory each origin may have taken up there (credit.h).
 *
 * Half of it is divided among all processes of the job, which keep their parts for ever: so nobody
 * has to wait for what others do. Of very many processes each needs room for one short message, and
 * that may be more than half. The rest is lent to processes that use it. One that is held up asks
 * for as much again as it has, and gets that, or half of what is left: there is always something
 * for the next. Where a request cannot be met the target asks the process that has had a loan for
 * longest; that falls back to its part, and returns the loan once it keeps within that.
 *
 * What is lent and what is returned are counted in all, so that it does not matter in which order,
 * how often and in which window they are sent.
 *
 * Pure; the caller serialises. Values from the peer are not trusted.
 */
#ifndef NICSTRIDE_LOAN_H
#define NICSTRIDE_LOAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "osc_nicstride/protocol/credit.h"
#include "osc_nicstride/protocol/limits.h"

/** The part of each of so many processes, of a memory of `bytes`. */
static inline uint64_t nicstride_loan_part(uint64_t bytes, uint64_t processes)
{
    const uint64_t part = bytes / 2 / (processes > 0 ? processes : 1);

    return part > NICSTRIDE_KEPT_MIN ? part : NICSTRIDE_KEPT_MIN;
}

/* ---- target ---------------------------------------------------------------------------------- */

/** What one process has. Zero-initialise. */
typedef struct nicstride_loan {
    struct nicstride_loan *next, **link; /**< of those that have one, the oldest first */
    uint64_t lent, returned;             /**< in all */
    bool back;                           /**< it has been asked to give it back */
} nicstride_loan_t;

/** Zero-initialise. */
typedef struct nicstride_bank {
    uint64_t limit; /**< bytes that may be lent */
    uint64_t out;
    nicstride_loan_t *first, **end; /**< `end` is good where there is a first */
} nicstride_bank_t;

/** What is not anybody's part is for loans. */
static inline void nicstride_bank_open(nicstride_bank_t *b, uint64_t bytes, uint64_t processes)
{
    const uint64_t part = nicstride_loan_part(bytes, processes);

    b->limit = bytes / part > processes ? bytes - part * processes : 0;
}

static inline void nicstride_bank_unlink(nicstride_bank_t *b, nicstride_loan_t *l)
{
    *l->link = l->next;
    if (l->next != NULL)
        l->next->link = l->link;
    else
        b->end = l->link;
}

static inline void nicstride_bank_append(nicstride_bank_t *b, nicstride_loan_t *l)
{
    l->next = NULL;
    l->link = b->first != NULL ? b->end : &b->first;
    *l->link = l;
    b->end = &l->next;
}

/** A process requests so many bytes more. Returns what it gets: nothing while it is to give back
 *  what it has. */
static inline uint64_t nicstride_lend(nicstride_bank_t *b, nicstride_loan_t *l, uint64_t wish)
{
    const uint64_t half = b->limit > b->out ? (b->limit - b->out) / 2 : 0;
    const uint64_t bytes = wish < half ? wish : half;

    if (bytes == 0 || l->back)
        return 0;
    if (l->lent == l->returned)
        nicstride_bank_append(b, l);
    l->lent += bytes;
    b->out += bytes;
    return bytes;
}

/** The loan that is to be asked back, for others than `asker`; NULL: none. */
static inline nicstride_loan_t *nicstride_lend_back(nicstride_bank_t *b,
                                                    const nicstride_loan_t *asker)
{
    nicstride_loan_t *l = b->first != asker || asker == NULL ? b->first : asker->next;

    if (l == NULL)
        return NULL;
    /* Next time another one: this one may be away. */
    nicstride_bank_unlink(b, l);
    nicstride_bank_append(b, l);
    if (l->back)
        return NULL;
    l->back = true;
    return l;
}

/** A process has returned so much in all. False where that is more than it was lent. */
static inline bool nicstride_loan_returned(nicstride_bank_t *b, nicstride_loan_t *l,
                                           uint64_t returned)
{
    if (returned > l->lent)
        return false;
    if (returned <= l->returned)
        return true;
    b->out -= returned - l->returned;
    l->returned = returned;
    l->back = false;
    if (l->returned == l->lent)
        nicstride_bank_unlink(b, l);
    return true;
}

/* ---- origin ---------------------------------------------------------------------------------- */

/** Zero-initialised before that. The least that the target has sent is its part. */
static inline void nicstride_quota_part(nicstride_quota_t *q, uint64_t part)
{
    if (q->base != 0 && part >= q->base)
        return;
    q->limit += part - q->base;
    q->base = part;
}

/** How many bytes more to ask for, for a message that may have to be kept; 0 where that does not
 *  wait for them. */
static inline uint64_t nicstride_quota_request(const nicstride_quota_t *q, uint64_t kept)
{
    return kept > 0 && !q->back && q->out + kept > q->limit ? q->limit : 0;
}

/** What the target has lent in all, and whether it wants that back. */
static inline void nicstride_quota_lent(nicstride_quota_t *q, uint64_t lent, bool back)
{
    if (lent > q->lent) {
        q->limit += q->back ? 0 : lent - q->lent;
        q->lent = lent;
    }
    if (back && q->lent != q->returned) {
        q->back = true;
        q->limit = q->base;
    }
}

/** True where a loan that is wanted back can be now: q->returned is to be sent to the target. */
static inline bool nicstride_quota_gives_back(nicstride_quota_t *q)
{
    if (!q->back || q->out > q->base)
        return false;
    q->back = false;
    q->returned = q->lent;
    return true;
}

#endif
