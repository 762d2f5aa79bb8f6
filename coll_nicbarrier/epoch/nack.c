/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file When to send NACKs; see nack.h. */
#include "coll_nicbarrier/epoch/nack.h"

#include <string.h>

/** The interval grows to 1/2^this of the time waited so far: a loss may add that much once more. */
#define WAITED_SHIFT 4

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

void nicbarrier_nacks_init(nicbarrier_nacks_t *n, uint64_t first)
{
    memset(n, 0, sizeof(*n));
    n->first = first;
    n->deadline = NICBARRIER_NEVER;
}

/** Sets the time of the next NACK of a wait: at first what was waited so far doubles each time. */
static void ask_again(nicbarrier_nacks_t *n, uint32_t k, uint64_t now)
{
    const uint64_t waited = now - n->wait[k].since;
    const uint64_t part = least(waited >> WAITED_SHIFT, NICBARRIER_NACK_MOST);
    const uint64_t cap = NICBARRIER_NACK_CAP * n->first;
    n->wait[k].deadline = now + least(waited + n->first, part > cap ? part : cap);
    n->deadline = least(n->deadline, n->wait[k].deadline);
}

void nicbarrier_nacks_follow(nicbarrier_nacks_t *n, const nicbarrier_rule_t *r, uint64_t now)
{
    /* A failed group waits for nothing. */
    const uint64_t blocked = r->failed ? 0 : r->blocked;
    const uint64_t begin = blocked & ~n->waits;
    for (uint32_t k = 0; begin >> k != 0; k++) {
        if (begin >> k & 1) {
            n->wait[k].since = now;
            ask_again(n, k, now);
        }
    }
    n->waits = blocked;
}

void nicbarrier_nacks_received(nicbarrier_nacks_t *n, uint32_t k)
{
    n->waits &= ~(UINT64_C(1) << k);
}

uint64_t nicbarrier_nacks_expire(nicbarrier_nacks_t *n, const nicbarrier_rule_t *r, uint64_t now)
{
    uint64_t asks = 0;
    if (now < n->deadline)
        return 0;
    n->deadline = NICBARRIER_NEVER;
    for (uint32_t k = 0; k < r->nsteps && k < NICBARRIER_RULE_STEPS; k++) {
        if (!(n->waits >> k & 1))
            continue;
        if (n->wait[k].deadline <= now) {
            asks |= UINT64_C(1) << k;
            ask_again(n, k, now);
        }
        n->deadline = least(n->deadline, n->wait[k].deadline);
    }
    return asks;
}

bool nicbarrier_nacks_answer(const nicbarrier_rule_t *r, uint32_t k, uint64_t epoch)
{
    return k < r->nsteps && (r->sends >> k & 1) != 0 &&
           epoch <= r->entered + NICBARRIER_OUTSTANDING_MAX && (epoch <= r->sent[k] || r->failed);
}
