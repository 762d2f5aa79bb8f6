/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file How a process ends; see linger.h. */
#include "coll_nicbarrier/engines/datagram/linger.h"

#include <stddef.h>

static unsigned count(const nicbarrier_linger_t *l)
{
    return l->n < NICBARRIER_PEERS ? l->n : NICBARRIER_PEERS;
}

static nicbarrier_peer_t *find(nicbarrier_linger_t *l, uint32_t cookie)
{
    for (unsigned i = 0; i < count(l); i++)
        if (l->peer[i].cookie == cookie)
            return &l->peer[i];
    return NULL;
}

void nicbarrier_linger_add(nicbarrier_linger_t *l, uint32_t cookie, const nicbarrier_address_t *at)
{
    nicbarrier_peer_t *p = find(l, cookie);

    if (p == NULL) {
        p = &l->peer[l->n++ % NICBARRIER_PEERS];
        *p = (nicbarrier_peer_t){.cookie = cookie};
    }
    p->at = *at;
}

void nicbarrier_linger_begin(nicbarrier_linger_t *l, uint64_t now)
{
    l->begun = true;
    for (unsigned i = 0; i < count(l); i++) {
        nicbarrier_peer_t *p = &l->peer[i];
        p->received = p->deadline = now;
        p->interval = NICBARRIER_LINGER_FIRST;
        p->times = 0;
    }
}

/* Is there nothing to wait for? */
static bool is_over(const nicbarrier_peer_t *p)
{
    return p->gone || (p->done && (p->acked || p->times >= NICBARRIER_LINGER_TIMES));
}

bool nicbarrier_linger_receive(nicbarrier_linger_t *l, const nicbarrier_packet_t *q, uint64_t now)
{
    nicbarrier_peer_t *p = find(l, q->back);
    const bool fin = q->kind == NICBARRIER_PACKET_FIN;

    if (p == NULL)
        return fin;
    if (fin && !p->done) {
        p->done = true;
        p->times = 0;
        p->interval = NICBARRIER_LINGER_FIRST;
        p->deadline = p->deadline < now + p->interval ? p->deadline : now + p->interval;
    }
    if (!p->done)
        p->times = 0;
    p->acked |= !fin;
    p->received = now;
    p->refused = 0;
    return fin;
}

void nicbarrier_linger_refused(nicbarrier_linger_t *l, uint32_t cookie)
{
    nicbarrier_peer_t *p = find(l, cookie);

    if (p != NULL && l->begun && ++p->refused >= NICBARRIER_LINGER_REFUSALS)
        p->gone = true;
}

const nicbarrier_peer_t *nicbarrier_linger_expire(nicbarrier_linger_t *l, uint64_t now)
{
    for (unsigned i = 0; i < count(l); i++) {
        nicbarrier_peer_t *p = &l->peer[i];
        if (is_over(p) || p->deadline > now)
            continue;
        if (now - p->received > NICBARRIER_LINGER_PATIENCE && p->times >= NICBARRIER_LINGER_ASKED) {
            p->gone = true;
            continue;
        }
        p->times++;
        p->deadline = now + p->interval;
        p->interval =
            2 * p->interval < NICBARRIER_LINGER_CAP ? 2 * p->interval : NICBARRIER_LINGER_CAP;
        return p;
    }
    return NULL;
}

uint64_t nicbarrier_linger_deadline(const nicbarrier_linger_t *l)
{
    uint64_t first = UINT64_MAX;

    for (unsigned i = 0; i < count(l); i++)
        if (!is_over(&l->peer[i]) && l->peer[i].deadline < first)
            first = l->peer[i].deadline;
    return first;
}
