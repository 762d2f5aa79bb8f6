/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file By which address a partner is reached; see reach.h. */
#include "coll_nicbarrier/engines/datagram/reach.h"

#include <stddef.h>
#include <string.h>

/* ---- what comes -------------------------------------------------------------------------------
 */

/** What comes from an address proves it. */
static bool learn(nicbarrier_partner_t *p, const nicbarrier_address_t *from,
                  nicbarrier_adopt_t *adopt)
{
    p->alive = true;
    p->refused = 0;
    if (!p->proven) {
        p->proven = adopt(p, from);
        return p->proven;
    }
    return false;
}

bool nicbarrier_reach_heard(nicbarrier_partner_t *p, const nicbarrier_address_t *from,
                            nicbarrier_adopt_t *adopt)
{
    p->unheard = 0;
    return learn(p, from, adopt);
}

/** Who asks has not heard what was sent to it, and asks where it hopes to be heard: if that is by
 *  another transport, the one used so far does not carry in both directions. */
bool nicbarrier_reach_asked(nicbarrier_partner_t *p, const nicbarrier_address_t *from,
                            nicbarrier_adopt_t *adopt)
{
    const bool moved = p->proven && p->at.via != from->via && adopt(p, from);
    return learn(p, from, adopt) || moved;
}

const nicbarrier_address_t *nicbarrier_reach_back(const nicbarrier_partner_t *p,
                                                  const nicbarrier_address_t *from)
{
    return p->at.via == from->via ? &p->at : from;
}

/* ---- what does not come -----------------------------------------------------------------------
 */

/** The candidate in use has been asked once more, while silence means something or not. */
static void note(nicbarrier_partner_t *p, bool expected, uint64_t now)
{
    /* What is slow to begin is no reason to be slow ever after. */
    if (!expected || p->since == 0) {
        memset(p->asked, 0, sizeof(p->asked));
        p->since = expected ? now : 0;
    }
    if (expected && p->asked[p->next] < NICBARRIER_REACH_TRIES) {
        p->asked[p->next]++;
    }
}

/** Does its silence say something about the address? */
static bool given_up(nicbarrier_partner_t *p, bool expected, uint64_t now)
{
    if (p->proven) {
        return false;
    }
    if (p->at.via == NICBARRIER_VIA_UDP) {
        return ++p->silent > NICBARRIER_REACH_PATIENCE;
    }
    return expected && p->since != 0 && now - p->since > NICBARRIER_REACH_VERBS_PATIENCE &&
           p->asked[p->next] >= NICBARRIER_REACH_TRIES;
}

bool nicbarrier_reach_ask(nicbarrier_partner_t *p, bool expected, uint64_t now)
{
    p->quiet = p->unheard == 0 ? now : p->quiet;
    p->unheard++;
    /* An address from which nothing ever comes may be the wrong one. Verbs is not tried again. */
    const bool other = given_up(p, expected, now) && p->ncandidates > 1;
    const bool was_verbs = p->at.via == NICBARRIER_VIA_VERBS;
    if (other) {
        do {
            p->next = (uint8_t)((p->next + 1) % p->ncandidates);
        } while (p->candidate[p->next].via == NICBARRIER_VIA_VERBS);
        p->at = p->candidate[p->next];
        p->silent = 0;
    }
    note(p, expected, now);
    return other && was_verbs;
}

bool nicbarrier_reach_hopeless(const nicbarrier_partner_t *p, uint64_t patience, uint64_t now)
{
    if (p->alive || p->since == 0 || now - p->since <= patience) {
        return false;
    }
    for (int i = 0; i < p->ncandidates; i++) {
        if (p->asked[i] < NICBARRIER_REACH_TRIES) {
            return false;
        }
    }
    return true;
}

bool nicbarrier_reach_refused(nicbarrier_partner_t *p)
{
    p->refused += p->refused < NICBARRIER_REACH_REFUSALS;
    return p->alive && p->unheard > 0 && p->refused == NICBARRIER_REACH_REFUSALS;
}

/** By turns at each address of UDP. */
const nicbarrier_address_t *nicbarrier_reach_otherwise(const nicbarrier_partner_t *p)
{
    if (!p->proven || p->at.via != NICBARRIER_VIA_VERBS ||
        p->unheard <= NICBARRIER_REACH_PATIENCE || p->ncandidates < 2) {
        return NULL;
    }
    return &p->candidate[1 + p->unheard % (p->ncandidates - 1U)];
}
