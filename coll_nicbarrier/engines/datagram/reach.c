/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Which address of a partner is used; see reach.h. */
#include "coll_nicbarrier/engines/datagram/reach.h"

#include <stddef.h>
#include <string.h>

static bool is_same(const nicbarrier_address_t *a, const nicbarrier_address_t *b)
{
    return a->len == b->len && memcmp(a->bytes, b->bytes, a->len) == 0;
}

/* ---- what comes ----------------------------------------------------------------------------- */

bool nicbarrier_reach_heard(nicbarrier_partner_t *p, const nicbarrier_address_t *from, bool message)
{
    const bool moved = !p->proven && !is_same(&p->at, from);
    p->alive = true;
    p->refused = 0;
    p->refusers = 0;
    if (message)
        p->unanswered = 0;
    if (moved)
        p->at = *from;
    p->proven = true;
    return moved;
}

/* ---- what does not come --------------------------------------------------------------------- */

/** Notes one more NACK to the candidate in use. `expected`: silence is significant. */
static void note(nicbarrier_partner_t *p, bool expected, uint64_t now)
{
    /* A slow start is no reason to be slow for ever. */
    if (!expected || p->since == 0) {
        memset(p->asked, 0, sizeof(p->asked));
        p->since = expected ? now : 0;
    }
    if (expected && p->asked[p->next] < NICBARRIER_REACH_TRIES)
        p->asked[p->next]++;
}

void nicbarrier_reach_nack(nicbarrier_partner_t *p, bool expected, uint64_t now)
{
    p->silent_since = p->unanswered == 0 ? now : p->silent_since;
    p->unanswered++;
    /* An address from which nothing ever comes may be the wrong one. */
    if (!p->proven && ++p->tries > NICBARRIER_REACH_PATIENCE) {
        p->next = (uint8_t)((p->next + 1) % p->ncandidates);
        p->at = p->candidate[p->next];
        p->tries = 0;
    }
    note(p, expected, now);
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

/** An unproven address may belong to another host, since unconnected networks may use the same
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
