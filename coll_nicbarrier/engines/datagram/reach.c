/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file By which address a partner is reached; see reach.h. */
#include "coll_nicbarrier/engines/datagram/reach.h"

#include <stddef.h>
#include <string.h>

static bool is_same(const nicbarrier_address_t *a, const nicbarrier_address_t *b)
{
    return a->len == b->len && memcmp(a->bytes, b->bytes, a->len) == 0;
}

/* ---- what comes ----------------------------------------------------------------------------- */

/** Uses the address from now on. */
static bool adopt(nicbarrier_partner_t *p, const nicbarrier_address_t *from)
{
    p->at = *from;
    p->nacked = 0;
    p->proven = true;
    return true;
}

/** What comes from an address proves it. */
static bool learn(nicbarrier_partner_t *p, const nicbarrier_address_t *from)
{
    p->alive = true;
    p->refused = 0;
    p->refusers = 0;
    return !p->proven && adopt(p, from);
}

/** Uses another address than the one that is proven. */
static bool move(nicbarrier_partner_t *p, const nicbarrier_address_t *from)
{
    return p->proven && !is_same(&p->at, from) && adopt(p, from);
}

bool nicbarrier_reach_received(nicbarrier_partner_t *p, const nicbarrier_address_t *from)
{
    const bool moved = p->unanswered > NICBARRIER_REACH_TRIES && move(p, from);
    p->unanswered = 0;
    return learn(p, from) || moved;
}

/** The partner has not received what was sent to it: if its NACKs come from another address, the
 * one used so far does not carry in both directions. */
bool nicbarrier_reach_nacked(nicbarrier_partner_t *p, const nicbarrier_address_t *from,
                             uint64_t now)
{
    const bool asks_here = p->nacked != 0 && now - p->nacked <= NICBARRIER_REACH_OTHERS_PATIENCE;
    bool moved = !asks_here && move(p, from);
    moved |= learn(p, from);
    if (is_same(&p->at, from))
        p->nacked = now;
    return moved;
}

/* ---- what does not come --------------------------------------------------------------------- */

/** One more NACK to the candidate in use, while silence means something or not. */
static void note(nicbarrier_partner_t *p, bool expected, uint64_t now)
{
    /* What is slow to begin is no reason to be slow ever after. */
    if (!expected || p->since == 0) {
        memset(p->asked, 0, sizeof(p->asked));
        p->since = expected ? now : 0;
    }
    if (expected && p->asked[p->next] < NICBARRIER_REACH_TRIES)
        p->asked[p->next]++;
}

/** To the next candidate. */
static void try_other(nicbarrier_partner_t *p)
{
    p->next = (uint8_t)((p->next + 1) % p->ncandidates);
    p->at = p->candidate[p->next];
    p->proven = false;
    p->tries = 0;
}

bool nicbarrier_reach_no_way(nicbarrier_partner_t *p)
{
    const nicbarrier_address_t before = p->at;
    if (p->ncandidates < 2)
        return false;
    try_other(p);
    return !is_same(&before, &p->at);
}

void nicbarrier_reach_nack(nicbarrier_partner_t *p, bool expected, uint64_t now)
{
    p->silent_since = p->unanswered == 0 ? now : p->silent_since;
    p->unanswered++;
    /* An address from which nothing ever comes may be the wrong one. */
    if (!p->proven && ++p->tries > NICBARRIER_REACH_PATIENCE)
        try_other(p);
    note(p, expected, now);
}

const nicbarrier_address_t *nicbarrier_reach_ask_at(const nicbarrier_partner_t *p, uint64_t now)
{
    const nicbarrier_address_t *other = &p->candidate[p->unanswered / 2 % p->ncandidates];
    const bool silent = p->unanswered > NICBARRIER_REACH_TRIES &&
                        now - p->silent_since > NICBARRIER_REACH_OTHERS_PATIENCE;
    const bool turn = p->proven && silent && p->unanswered % 2 == 0;
    return turn ? other : &p->at;
}

bool nicbarrier_reach_is_lost(const nicbarrier_partner_t *p, uint64_t now)
{
    if (p->alive || p->since == 0 || now - p->since <= NICBARRIER_REACH_ALL_PATIENCE)
        return false;
    for (int i = 0; i < p->ncandidates; i++)
        if (p->asked[i] < NICBARRIER_REACH_TRIES)
            return false;
    return true;
}

/** What is not proven may be somebody else's: networks that are not connected may have the same
 *  numbers. */
bool nicbarrier_reach_refused(nicbarrier_partner_t *p, const nicbarrier_address_t *at)
{
    for (int i = 0; i < p->ncandidates; i++)
        p->refusers |= (uint32_t)is_same(&p->candidate[i], at) << i;
    const bool counts =
        p->proven ? is_same(&p->at, at) : p->refusers == (UINT32_C(1) << p->ncandidates) - 1;
    p->refused += counts && p->refused < NICBARRIER_REACH_REFUSALS;
    return counts && p->alive && p->unanswered > 0 && p->refused == NICBARRIER_REACH_REFUSALS;
}
