/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file By which address a partner is reached; see reach.h. */
#include "coll_nicbarrier/engines/datagram/reach.h"

#include <stddef.h>

/* ---- what comes -------------------------------------------------------------------------------
 */

/** What comes from an address proves it. */
static void learn(nicbarrier_partner_t *p, const nicbarrier_address_t *from,
                  nicbarrier_adopt_t *adopt)
{
    if (!p->proven) {
        p->proven = adopt(p, from);
    }
}

void nicbarrier_reach_heard(nicbarrier_partner_t *p, const nicbarrier_address_t *from,
                            nicbarrier_adopt_t *adopt)
{
    learn(p, from, adopt);
    p->unheard = 0;
}

/** Who asks has not heard what was sent to it, and asks where it hopes to be heard: if that is by
 *  another transport, the one used so far does not carry in both directions. */
void nicbarrier_reach_asked(nicbarrier_partner_t *p, const nicbarrier_address_t *from,
                            nicbarrier_adopt_t *adopt)
{
    if (p->proven && p->at.via != from->via) {
        (void)adopt(p, from);
    }
    learn(p, from, adopt);
}

const nicbarrier_address_t *nicbarrier_reach_back(const nicbarrier_partner_t *p,
                                                  const nicbarrier_address_t *from)
{
    return p->at.via == from->via ? &p->at : from;
}

/* ---- what does not come -----------------------------------------------------------------------
 */

/** Does its silence say something about the address? */
static bool given_up(nicbarrier_partner_t *p, bool expected, uint64_t now)
{
    if (p->proven) {
        return false;
    }
    if (p->at.via == NICBARRIER_VIA_UDP) {
        return ++p->silent > NICBARRIER_REACH_PATIENCE;
    }
    /* What is slow to begin is no reason to be slow ever after. */
    if (!expected || p->since == 0) {
        p->since = expected ? now : 0;
        return false;
    }
    return now - p->since > NICBARRIER_REACH_VERBS_PATIENCE;
}

bool nicbarrier_reach_ask(nicbarrier_partner_t *p, bool expected, uint64_t now)
{
    p->unheard++;
    /* An address from which nothing ever comes may be the wrong one. Verbs is not tried again. */
    if (!given_up(p, expected, now) || p->ncandidates == 1) {
        return false;
    }
    const bool was_verbs = p->at.via == NICBARRIER_VIA_VERBS;
    do {
        p->next = (uint8_t)((p->next + 1) % p->ncandidates);
    } while (p->candidate[p->next].via == NICBARRIER_VIA_VERBS);
    p->at = p->candidate[p->next];
    p->silent = 0;
    return was_verbs;
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
