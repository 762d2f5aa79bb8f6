/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file When to ask; see nack.h. */
#include "coll_nicbarrier/epoch/nack.h"

#include <string.h>

/* Of the time waited so far, which a loss may cost once more. */
#define WAITED_SHIFT 4

#define BIT(k) (UINT64_C(1) << (k))

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

void nicbarrier_nacks_init(nicbarrier_nacks_t *n, const nicbarrier_timing_t *timing)
{
    memset(n, 0, sizeof(*n));
    n->timing = *timing;
    n->deadline = NICBARRIER_NEVER;
}

/* ---- time ----------------------------------------------------------------------------------- */

/* To the next NACK of a wait. */
static uint64_t back_off(const nicbarrier_nacks_t *n, uint64_t interval, uint64_t waited)
{
    const uint64_t part = least(waited >> WAITED_SHIFT, n->timing.late);

    return least(2 * interval, part > n->timing.cap ? part : n->timing.cap);
}

static void ask_at(nicbarrier_nacks_t *n, uint32_t k, uint64_t now, uint64_t time)
{
    n->wait[k].deadline = now + time;
    n->deadline = least(n->deadline, n->wait[k].deadline);
}

static void repeat_at(nicbarrier_nacks_t *n, uint32_t k, uint64_t now, uint64_t interval)
{
    n->promise[k].interval = interval;
    n->promise[k].deadline = now + interval;
    n->deadline = least(n->deadline, n->promise[k].deadline);
}

/* ---- waits ---------------------------------------------------------------------------------- */

static void begin_waits(nicbarrier_nacks_t *n, uint64_t steps, uint64_t now)
{
    for (uint32_t k = 0; steps >> k != 0; k++) {
        if (steps >> k & 1) {
            n->wait[k].since = now;
            n->wait[k].interval = n->timing.first;
            ask_at(n, k, now, n->wait[k].interval);
        }
    }
    n->waits |= steps;
}

static void begin_repeats(nicbarrier_nacks_t *n, uint64_t steps, uint64_t now)
{
    for (uint32_t k = 0; steps >> k != 0; k++) {
        if (steps >> k & 1) {
            n->promise[k].times = 0;
            repeat_at(n, k, now, n->timing.first);
        }
    }
    n->due |= steps;
}

static void keep_promises(nicbarrier_nacks_t *n, const nicbarrier_rule_t *r, uint64_t now)
{
    uint64_t steps = 0;

    for (uint32_t k = 0; n->promised >> k != 0; k++)
        if ((n->promised & ~n->due) >> k & 1)
            steps |= (uint64_t)(r->sent[k] >= n->promise[k].epoch) << k;
    begin_repeats(n, steps, now);
}

/* A member that is not waiting does not ask, but must learn of it. */
static void promise_failure(nicbarrier_nacks_t *n, const nicbarrier_rule_t *r, uint64_t now)
{
    n->failed = true;
    n->promised = r->sends;
    for (uint32_t k = 0; r->sends >> k != 0; k++)
        n->promise[k].epoch = NICBARRIER_WORD_FAILED;
    begin_repeats(n, r->sends, now);
}

void nicbarrier_nacks_follow(nicbarrier_nacks_t *n, const nicbarrier_rule_t *r, uint64_t now)
{
    /* Of a group that has failed nothing is wanted any more. */
    const uint64_t blocked = r->failed ? 0 : r->blocked;

    if ((n->waits & ~blocked) != 0) {
        n->waits &= blocked;
        n->late &= blocked;
    }
    if ((blocked & ~n->waits) != 0)
        begin_waits(n, blocked & ~n->waits, now);
    if (r->failed && !n->failed)
        promise_failure(n, r, now);
    if ((n->promised & ~n->due) != 0)
        keep_promises(n, r, now);
}

bool nicbarrier_nacks_received(nicbarrier_nacks_t *n, uint32_t k)
{
    const bool promised = n->late >> k & 1;

    n->waits &= ~BIT(k);
    n->late &= ~BIT(k);
    return promised;
}

void nicbarrier_nacks_late(nicbarrier_nacks_t *n, const nicbarrier_rule_t *r, uint32_t k,
                           uint64_t epoch, uint64_t now)
{
    if (k >= r->nsteps || !(n->waits >> k & 1) || epoch != r->received[k] + 1)
        return;
    n->late |= BIT(k);
    n->wait[k].interval = n->timing.first;
    ask_at(n, k, now, n->timing.late);
}

/* ---- promises ------------------------------------------------------------------------------- */

nicbarrier_reply_t nicbarrier_nacks_answer(nicbarrier_nacks_t *n, const nicbarrier_rule_t *r,
                                           uint32_t k, uint64_t epoch)
{
    if (k >= r->nsteps || !(r->sends >> k & 1) || epoch > r->entered + NICBARRIER_OUTSTANDING_MAX)
        return NICBARRIER_REPLY_NONE;
    if (epoch <= r->sent[k] || r->failed)
        return NICBARRIER_REPLY_AGAIN;
    /* A member that asks for this one has got what was promised before. */
    n->promise[k].epoch = epoch;
    n->promised |= BIT(k);
    n->due &= ~BIT(k);
    return NICBARRIER_REPLY_LATE;
}

void nicbarrier_nacks_acked(nicbarrier_nacks_t *n, uint32_t k, uint64_t word)
{
    /* A word with the failure bit is as much as can come. */
    if (k < NICBARRIER_RULE_STEPS && (n->due >> k & 1) && word >= n->promise[k].epoch) {
        n->promised &= ~BIT(k);
        n->due &= ~BIT(k);
    }
}

/* ---- what is due ---------------------------------------------------------------------------- */

static bool repeat(nicbarrier_nacks_t *n, uint32_t k, uint64_t now)
{
    if (n->promise[k].times == NICBARRIER_NACK_REPEATS) {
        n->promised &= ~BIT(k);
        n->due &= ~BIT(k);
        return false;
    }
    n->promise[k].times++;
    repeat_at(n, k, now, least(2 * n->promise[k].interval, n->timing.cap));
    return true;
}

uint64_t nicbarrier_nacks_expire(nicbarrier_nacks_t *n, const nicbarrier_rule_t *r, uint64_t now,
                                 uint64_t *repeats)
{
    uint64_t asks = 0;

    *repeats = 0;
    if (now < n->deadline)
        return 0;
    n->deadline = NICBARRIER_NEVER;
    for (uint32_t k = 0; k < r->nsteps && k < NICBARRIER_RULE_STEPS; k++) {
        if (n->waits >> k & 1) {
            if (n->wait[k].deadline <= now) {
                asks |= BIT(k);
                n->wait[k].interval = back_off(n, n->wait[k].interval, now - n->wait[k].since);
                ask_at(n, k, now, n->wait[k].interval);
            }
            n->deadline = least(n->deadline, n->wait[k].deadline);
        }
        if (n->due >> k & 1) {
            if (n->promise[k].deadline <= now && repeat(n, k, now))
                *repeats |= BIT(k);
            else if (n->due >> k & 1)
                n->deadline = least(n->deadline, n->promise[k].deadline);
        }
    }
    return asks;
}
