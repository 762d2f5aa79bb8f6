/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Engine datagram: packets out, timers; see datagram.h. The lock is held throughout. */
#include <stdio.h>

#include "coll_nicbarrier/engines/datagram/datagram.h"

#define count(counter) nicbarrier_count(&nicbarrier_datagram_counters.counter)

/* ---- packets ----------------------------------------------------------------------------------
 */

/** As the parameter drop says. */
static bool falls_out(void)
{
    nicbarrier_datagram_t *d = &nicbarrier_datagram;
    if (nicbarrier_datagram_config.drop == 0) {
        return false;
    }
    d->random = d->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (d->random >> 33) % 1000 < (unsigned)nicbarrier_datagram_config.drop;
}

void nicbarrier_datagram_throw(const nicbarrier_address_t *to, const unsigned char *packet,
                               bool fast)
{
    if (falls_out()) {
        count(dropped);
        return;
    }
    if (!nicbarrier_datagram.transport[to->via]->send(to, packet, fast)) {
        count(unsent);
    } else if (to->via == NICBARRIER_VIA_VERBS) {
        count(verbs_sent);
    } else {
        nicbarrier_datagram.udp_looks = 0;
    }
}

void nicbarrier_datagram_send(nicbarrier_net_t *net, nicbarrier_packet_kind_t kind, uint32_t k,
                              const nicbarrier_address_t *at, uint64_t word, uint8_t flags)
{
    const bool upwards = kind == NICBARRIER_PACKET_NACK || kind == NICBARRIER_PACKET_GOT;
    const bool full = kind == NICBARRIER_PACKET_NACK || kind == NICBARRIER_PACKET_KEPT;
    const nicbarrier_partner_t *to = upwards ? net->from[k] : net->to[k];
    const bool dead = !upwards && (word & NICBARRIER_WORD_FAILED) != 0 &&
                      atomic_load_explicit(&net->failure, memory_order_relaxed) == NICBARRIER_DEAD;
    const nicbarrier_packet_t p = {.kind = (uint8_t)kind,
                                   .at = upwards ? net->step[k].wait_at : net->step[k].send_at,
                                   .from_at = (uint8_t)k,
                                   .flags = dead ? flags | NICBARRIER_FLAG_DEAD : flags,
                                   .sender = (uint32_t)net->group.me,
                                   .cookie = to->cookie,
                                   .key = net->group.key,
                                   .epoch = word,
                                   .to = full ? (uint32_t)to->member : 0,
                                   .back = full ? nicbarrier_datagram.cookie : 0};
    unsigned char bytes[NICBARRIER_PACKET_SIZE];
    nicbarrier_packet_encode(&p, bytes);
    nicbarrier_datagram_throw(at, bytes, false);
}

void nicbarrier_datagram_moved(nicbarrier_net_t *net, const nicbarrier_partner_t *p)
{
    for (int k = 0; k < net->nsteps; k++) {
        if (net->connected && net->to[k] == p) {
            net->stepper->readdress(net->stepped, (uint32_t)k, &p->at);
        }
    }
}

/* ---- timers -----------------------------------------------------------------------------------
 */

void nicbarrier_datagram_note_deadline(const nicbarrier_net_t *net)
{
    nicbarrier_datagram_t *d = &nicbarrier_datagram;
    if (net->nacks.deadline < atomic_load_explicit(&d->deadline, memory_order_relaxed)) {
        atomic_store_explicit(&d->deadline, net->nacks.deadline, memory_order_relaxed);
    }
}

/** Has the partner kept silent for longer than the user allows? */
static bool is_silent(const nicbarrier_partner_t *p, uint64_t now)
{
    const uint64_t limit = (uint64_t)nicbarrier_datagram_config.silence * UINT64_C(1000000000);
    return limit != 0 && p->unheard > NICBARRIER_REACH_TRIES && now - p->quiet > limit;
}

/** A NACK of step k. */
static void ask(nicbarrier_net_t *net, uint32_t k, uint64_t epoch, uint64_t now)
{
    nicbarrier_partner_t *from = net->from[k];
    count(nacks);
    if (nicbarrier_reach_ask(from, net->expected, now)) {
        count(fallbacks);
    }
    if (!from->proven) {
        nicbarrier_datagram_moved(net, from);
    }
    nicbarrier_datagram_send(net, NICBARRIER_PACKET_NACK, k, &from->at, epoch, 0);
    const nicbarrier_address_t *otherwise = nicbarrier_reach_otherwise(from);
    if (otherwise != NULL) {
        count(copies);
        nicbarrier_datagram_send(net, NICBARRIER_PACKET_NACK, k, otherwise, epoch,
                                 otherwise->via != from->at.via ? NICBARRIER_FLAG_COPY : 0);
    }
    if (is_silent(from, now)) {
        nicbarrier_datagram_note_failure(net, NICBARRIER_LOST);
    }
}

static void expire(nicbarrier_net_t *net, uint64_t now)
{
    nicbarrier_rule_t room;
    uint64_t repeats;
    if (!net->connected) {
        return;
    }
    const nicbarrier_rule_t *r = nicbarrier_net_state(net, &room);
    const uint64_t asks = nicbarrier_nacks_expire(&net->nacks, r, now, &repeats);
    for (uint32_t k = 0; (asks | repeats) >> k != 0; k++) {
        if (repeats >> k & 1) {
            count(repeats);
            nicbarrier_datagram_send(net, NICBARRIER_PACKET_KEPT, k, &net->to[k]->at,
                                     nicbarrier_rule_word(r, k), 0);
        }
        if (asks >> k & 1) {
            ask(net, k, r->received[k] + 1, now);
        }
    }
    /* Of what is over only the timers have to be told, and what has failed now must be. */
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

/* ---- refusals ---------------------------------------------------------------------------------
 */

static uint32_t refused_cookie;

/** Is it a member of the group that is waited for? */
static void refuse(nicbarrier_net_t *net, uint64_t now)
{
    for (int i = 0; i < net->npartners && net->connected; i++) {
        if (net->partner[i].cookie == refused_cookie &&
            nicbarrier_reach_refused(&net->partner[i])) {
            nicbarrier_datagram_note_failure(net, NICBARRIER_DEAD);
            nicbarrier_datagram_follow(net, now);
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
                refused_cookie = p.cookie;
                nicbarrier_farewell_refused(nicbarrier_datagram.farewell, p.cookie);
                nicbarrier_datagram_each(refuse, onic_now_nsec());
            }
        }
    }
}
