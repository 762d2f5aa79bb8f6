/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file How a process leaves; see farewell.h. */
#include "coll_nicbarrier/engines/datagram/farewell.h"

#include <stddef.h>
#include <string.h>

/* ---- peers ------------------------------------------------------------------------------------
 */

static nicbarrier_peer_t *find(nicbarrier_farewell_t *f, uint32_t cookie)
{
    for (unsigned i = 0; i < f->n; i++)
        if (f->peer[i].cookie == cookie)
            return &f->peer[i];
    return NULL;
}

/* Room for another: of those without a group the oldest, or else the oldest of all. */
static nicbarrier_peer_t *room(nicbarrier_farewell_t *f)
{
    nicbarrier_peer_t *worst = &f->peer[0];

    if (f->n < NICBARRIER_PEERS)
        return &f->peer[f->n++];
    for (unsigned i = 1; i < f->n; i++) {
        nicbarrier_peer_t *p = &f->peer[i];
        const bool idle = p->groups == 0, worst_idle = worst->groups == 0;
        if (idle != worst_idle ? idle : p->used < worst->used)
            worst = p;
    }
    return worst;
}

void nicbarrier_farewell_met(nicbarrier_farewell_t *f, uint32_t cookie,
                             const nicbarrier_address_t *at)
{
    nicbarrier_peer_t *p = find(f, cookie);

    if (p == NULL) {
        p = room(f);
        memset(p, 0, sizeof(*p));
        p->cookie = cookie;
    }
    p->groups++;
    p->at = *at;
}

void nicbarrier_farewell_parted(nicbarrier_farewell_t *f, uint32_t cookie,
                                const nicbarrier_address_t *at)
{
    nicbarrier_peer_t *p = find(f, cookie);

    if (p == NULL)
        return;
    p->groups -= p->groups > 0;
    p->used = ++f->freed;
    p->at = *at;
}

/* ---- leaving ----------------------------------------------------------------------------------
 */

void nicbarrier_farewell_begin(nicbarrier_farewell_t *f, uint64_t now)
{
    f->leaving = true;
    for (unsigned i = 0; i < f->n; i++) {
        nicbarrier_peer_t *p = &f->peer[i];
        p->heard = p->deadline = now;
        p->interval = NICBARRIER_FAREWELL_FIRST;
        p->times = 0;
    }
}

/* Is there nothing to wait for? */
static bool over(const nicbarrier_peer_t *p)
{
    return p->gone || (p->left && (p->told || p->times >= NICBARRIER_FAREWELL_TIMES));
}

static void learn(nicbarrier_peer_t *p, const nicbarrier_packet_t *q, uint64_t now)
{
    if (q->kind == NICBARRIER_PACKET_LEFT && !p->left) {
        p->left = true;
        p->times = 0;
        p->interval = NICBARRIER_FAREWELL_FIRST;
        p->deadline = p->deadline < now + p->interval ? p->deadline : now + p->interval;
    }
    if (!p->left)
        p->times = 0;
    p->told = p->told || (q->flags & NICBARRIER_FLAG_HEARD) != 0;
    p->heard = now;
    p->refused = 0;
}

bool nicbarrier_farewell_hear(nicbarrier_farewell_t *f, const nicbarrier_packet_t *q, uint64_t now,
                              nicbarrier_packet_t *reply)
{
    nicbarrier_peer_t *p = find(f, q->back);

    if (p != NULL)
        learn(p, q, now);
    *reply = (nicbarrier_packet_t){
        .kind = f->leaving ? NICBARRIER_PACKET_LEFT : NICBARRIER_PACKET_STAY,
        .flags = q->kind == NICBARRIER_PACKET_LEFT ? NICBARRIER_FLAG_HEARD : 0,
        .cookie = q->back};
    return (q->flags & NICBARRIER_FLAG_ASKS) != 0;
}

void nicbarrier_farewell_refused(nicbarrier_farewell_t *f, uint32_t cookie)
{
    nicbarrier_peer_t *p = find(f, cookie);

    if (p != NULL && f->leaving && ++p->refused >= NICBARRIER_FAREWELL_REFUSALS)
        p->gone = true;
}

nicbarrier_peer_t *nicbarrier_farewell_expire(nicbarrier_farewell_t *f, uint64_t now,
                                              uint8_t *flags)
{
    for (unsigned i = 0; i < f->n; i++) {
        nicbarrier_peer_t *p = &f->peer[i];
        const uint64_t cap = p->left ? NICBARRIER_FAREWELL_LEFT : NICBARRIER_FAREWELL_CAP;
        if (over(p) || p->deadline > now)
            continue;
        if (now - p->heard > NICBARRIER_FAREWELL_PATIENCE &&
            p->times >= NICBARRIER_FAREWELL_ASKED) {
            p->gone = true;
            continue;
        }
        p->times++;
        p->deadline = now + p->interval;
        p->interval = 2 * p->interval < cap ? 2 * p->interval : cap;
        *flags = NICBARRIER_FLAG_ASKS | (p->left ? NICBARRIER_FLAG_HEARD : 0);
        return p;
    }
    return NULL;
}

uint64_t nicbarrier_farewell_deadline(const nicbarrier_farewell_t *f)
{
    uint64_t first = UINT64_MAX;

    for (unsigned i = 0; i < f->n; i++)
        if (!over(&f->peer[i]) && f->peer[i].deadline < first)
            first = f->peer[i].deadline;
    return first;
}
