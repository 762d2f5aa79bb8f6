/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Engine datagram: what is due, and refusals; see datagram.h. */
#include "coll_nicbarrier/engines/datagram/datagram.h"

#define count(counter) nicbarrier_count(&nicbarrier_datagram_counters.counter)

/** Has the partner kept silent for longer than the user allows? */
static bool is_silent(const nicbarrier_partner_t *p, uint64_t now)
{
    const uint64_t limit = (uint64_t)nicbarrier_datagram_config.silence * UINT64_C(1000000000);
    return limit != 0 && p->unanswered > NICBARRIER_REACH_TRIES && now - p->silent_since > limit;
}

static void send_nack(nicbarrier_net_t *net, uint32_t k, uint64_t epoch, uint64_t now)
{
    nicbarrier_partner_t *from = net->from[k];
    count(nacks);
    if (nicbarrier_reach_nack(from, net->expected, now))
        count(fallbacks);
    if (!from->proven)
        nicbarrier_datagram_moved(net, from);
    nicbarrier_datagram_send(net, NICBARRIER_PACKET_NACK, k, &from->at, epoch);
    if (is_silent(from, now))
        nicbarrier_datagram_set_failed(net);
}

/** To all addresses of a partner of which none is proven: a group that has failed sends no NACKs
 * any more, which would try them by turns. */
static void send_promised(nicbarrier_net_t *net, uint32_t k, uint64_t word)
{
    const nicbarrier_partner_t *to = net->to[k];
    const nicbarrier_address_t *at = to->proven ? &to->at : to->candidate;
    const int n = to->proven ? 1 : to->ncandidates;
    for (int i = 0; i < n; i++)
        nicbarrier_datagram_send(net, NICBARRIER_PACKET_PROMISED, k, &at[i], word);
}

static void expire(nicbarrier_net_t *net, uint64_t now)
{
    nicbarrier_rule_t room;
    uint64_t repeats;
    if (!net->connected)
        return;
    if (nicbarrier_net_view(net) != NULL)
        nicbarrier_datagram_catch_up(net, now);
    const nicbarrier_rule_t *r = nicbarrier_net_state(net, &room);
    const uint64_t nacks = nicbarrier_nacks_expire(&net->nacks, r, now, &repeats);
    for (uint32_t k = 0; (nacks | repeats) >> k != 0; k++) {
        if (repeats >> k & 1)
            send_promised(net, k, nicbarrier_rule_word(r, k));
        if (nacks >> k & 1)
            send_nack(net, k, r->received[k] + 1, now);
    }
    nicbarrier_datagram_follow(net, now);
}

void nicbarrier_datagram_expire(void)
{
    nicbarrier_datagram_t *d = &nicbarrier_datagram;
    const uint64_t now = onic_now_nsec();
    d->now = now;
    if (now >= atomic_load_explicit(&d->deadline, memory_order_relaxed)) {
        atomic_store_explicit(&d->deadline, NICBARRIER_NEVER, memory_order_relaxed);
        nicbarrier_datagram_each(expire, now);
    }
}

/* ---- refusals -------------------------------------------------------------------------------- */

/** Is it a member of the group that is waited for? */
static void refuse(nicbarrier_net_t *net, uint64_t cookie)
{
    for (int i = 0; i < net->npartners && net->connected; i++) {
        nicbarrier_partner_t *p = &net->partner[i];
        if (p->cookie == cookie && nicbarrier_reach_refused(p)) {
            nicbarrier_datagram_fail(net);
            return;
        }
    }
}

void nicbarrier_datagram_take_refusals(void)
{
    unsigned char bytes[NICBARRIER_PACKET_SIZE];
    nicbarrier_packet_t p;
    for (int i = 0; i < NICBARRIER_VIAS; i++) {
        const nicbarrier_transport_t *t = nicbarrier_datagram.transport[i];
        while (t != NULL && t->refused != NULL && t->refused(bytes)) {
            if (nicbarrier_packet_decode(bytes, sizeof(bytes), &p) == NULL) {
                nicbarrier_linger_refused(&nicbarrier_datagram.linger, p.cookie);
                nicbarrier_datagram_each(refuse, p.cookie);
            }
        }
    }
}
