/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Engine datagram: packets in, and what follows from them; see datagram.h. The lock is held
 *  throughout, but for what takes and releases it. */
#include <sched.h>

#include "coll_nicbarrier/engines/datagram/datagram.h"

/** Packets taken in by one call. More wait for the next one, so that timers have their turn. */
#define PACKETS_AT_ONCE 64
/** Of the looks at the network while UDP has not been of use for long, one in so many is at UDP,
 *  because it is a system call. */
#define UDP_LONG   1024U
#define UDP_SELDOM 32U

nicbarrier_datagram_t nicbarrier_datagram;
nicbarrier_datagram_counters_t nicbarrier_datagram_counters;

#define count(counter) nicbarrier_count(&nicbarrier_datagram_counters.counter)

/* ---- lock -------------------------------------------------------------------------------------
 */

void nicbarrier_datagram_lock(void)
{
    while (!nicbarrier_datagram_trylock()) {
        sched_yield();
    }
}

void nicbarrier_datagram_unlock(void)
{
    nicbarrier_datagram_t *d = &nicbarrier_datagram;
    /* Who finds the lock taken posts its entry, says so in `pending`, and tries once more. So of
     * the two one sees the other, if neither's load overtakes its store. */
    atomic_store_explicit(&d->locked, false, memory_order_seq_cst);
    while (atomic_load_explicit(&d->pending, memory_order_seq_cst) &&
           nicbarrier_datagram_trylock()) {
        nicbarrier_datagram_enter_posted();
        atomic_store_explicit(&d->locked, false, memory_order_seq_cst);
    }
}

/* ---- table ------------------------------------------------------------------------------------
 */

nicbarrier_net_t **nicbarrier_datagram_list(uint64_t key)
{
    return &nicbarrier_datagram.list[key % NICBARRIER_DATAGRAM_LISTS];
}

static nicbarrier_net_t *find(uint64_t key)
{
    nicbarrier_net_t *net = *nicbarrier_datagram_list(key);
    while (net != NULL && net->group.key != key) {
        net = net->next;
    }
    return net;
}

void nicbarrier_datagram_each(void (*function)(nicbarrier_net_t *, uint64_t), uint64_t now)
{
    for (int i = 0; i < NICBARRIER_DATAGRAM_LISTS; i++) {
        nicbarrier_net_t *next;
        for (nicbarrier_net_t *net = nicbarrier_datagram.list[i]; net != NULL; net = next) {
            next = net->next;
            function(net, now);
        }
    }
}

/* ---- moving on --------------------------------------------------------------------------------
 */

void nicbarrier_datagram_note_failure(nicbarrier_net_t *net, nicbarrier_failure_t failure)
{
    nicbarrier_rule_t room;
    if ((int)failure > atomic_load_explicit(&net->failure, memory_order_relaxed)) {
        atomic_store_explicit(&net->failure, (int)failure, memory_order_release);
    }
    if (!nicbarrier_net_state(net, &room)->failed) {
        net->stepper->fail(net->stepped, failure == NICBARRIER_DEAD);
    }
}

static void complete(nicbarrier_net_t *net, uint64_t completed)
{
    count(completed);
    if (nicbarrier_datagram.helping) {
        count(thread_completed);
    }
    if (!net->met) {
        nicbarrier_datagram_meet(net);
    }
    atomic_store_explicit(&net->completed, completed, memory_order_release);
    net->expected = false;
    if (!net->gone && net->events.complete != NULL) {
        net->events.complete(net->events.arg, completed);
    }
}

void nicbarrier_datagram_follow(nicbarrier_net_t *net, uint64_t now)
{
    nicbarrier_rule_t room;
    const nicbarrier_rule_t *r = nicbarrier_net_state(net, &room);
    nicbarrier_nacks_follow(&net->nacks, r, now);
    nicbarrier_datagram_note_deadline(net);
    if (r->completed != atomic_load_explicit(&net->completed, memory_order_relaxed)) {
        complete(net, r->completed);
    }
    if (r->failed) {
        nicbarrier_datagram_note_failure(net, NICBARRIER_LOST);
    }
    if (net->gone && nicbarrier_datagram_is_over(net)) {
        nicbarrier_datagram_bury(net);
    }
}

void nicbarrier_datagram_enter(nicbarrier_net_t *net, uint64_t epoch)
{
    nicbarrier_rule_t room;
    if (net->connected && epoch > nicbarrier_net_state(net, &room)->entered) {
        net->stepper->enter(net->stepped, epoch);
        nicbarrier_datagram_follow(net, onic_now_nsec());
    }
}

static void enter_posted(nicbarrier_net_t *net, uint64_t now)
{
    (void)now;
    nicbarrier_datagram_enter(net, atomic_load(&net->wanted));
}

void nicbarrier_datagram_enter_posted(void)
{
    atomic_store(&nicbarrier_datagram.pending, false);
    nicbarrier_datagram_each(enter_posted, 0);
}

static void ask(nicbarrier_net_t *net, uint64_t now)
{
    (void)now;
    if (net->connected && !net->gone && net->events.entered != NULL) {
        nicbarrier_datagram_enter(net, net->events.entered(net->events.arg));
    }
}

void nicbarrier_datagram_ask(void)
{
    nicbarrier_datagram_each(ask, 0);
}

/* ---- in ---------------------------------------------------------------------------------------
 */

/** What brings nothing is taken in within limits only. */
static void spend(void)
{
    nicbarrier_budget_spend(&nicbarrier_datagram.budget, onic_now_nsec());
}

static void refuse(void)
{
    count(refused);
    spend();
}

static nicbarrier_adopt_t *adopt_of(const nicbarrier_address_t *from)
{
    return nicbarrier_datagram.transport[from->via]->adopt;
}

static void heard(nicbarrier_net_t *net, nicbarrier_partner_t *partner,
                  const nicbarrier_address_t *from)
{
    if (nicbarrier_reach_heard(partner, from, adopt_of(from))) {
        nicbarrier_datagram_moved(net, partner);
    }
}

/** Does the packet come from who is told, or heard, in my step that it names? */
static bool fits(const nicbarrier_net_t *net, const nicbarrier_packet_t *p, bool upwards)
{
    const nicbarrier_step_t *s = &net->step[p->at];
    if (p->at >= net->nsteps) {
        return false;
    }
    return upwards ? s->send_to == (int32_t)p->sender && s->send_at == p->from_at
                   : s->wait_for == (int32_t)p->sender && s->wait_at == p->from_at;
}

/** NACK. */
static void answer(nicbarrier_net_t *net, const nicbarrier_packet_t *p,
                   const nicbarrier_address_t *from)
{
    nicbarrier_rule_t room;
    if (!net->connected || !fits(net, p, true) || p->to != (uint32_t)net->group.me) {
        refuse();
        return;
    }
    nicbarrier_partner_t *to = net->to[p->at];
    const nicbarrier_rule_t *r = nicbarrier_net_state(net, &room);
    const nicbarrier_reply_t reply = nicbarrier_nacks_answer(&net->nacks, r, p->at, p->epoch);
    spend();
    if (reply == NICBARRIER_REPLY_NONE) {
        count(refused);
        return;
    }
    if ((p->flags & NICBARRIER_FLAG_COPY) == 0 &&
        nicbarrier_reach_asked(to, from, adopt_of(from))) {
        nicbarrier_datagram_moved(net, to);
    }
    const nicbarrier_address_t *back = nicbarrier_reach_back(to, from);
    if (reply == NICBARRIER_REPLY_AGAIN) {
        count(retransmits);
        nicbarrier_datagram_send(net, NICBARRIER_PACKET_AGAIN, p->at, back,
                                 nicbarrier_rule_word(r, p->at), 0);
    } else {
        count(promises);
        nicbarrier_datagram_send(net, NICBARRIER_PACKET_LATE, p->at, back, p->epoch, 0);
    }
}

/** NACK or KEPT for a group that was freed. */
static void answer_from_the_grave(const nicbarrier_packet_t *p, const nicbarrier_address_t *from)
{
    nicbarrier_packet_t reply = {.kind = NICBARRIER_PACKET_GOT,
                                 .at = p->from_at,
                                 .from_at = p->at,
                                 .sender = p->to,
                                 .cookie = p->back,
                                 .key = p->key,
                                 .epoch = p->epoch};
    unsigned char bytes[NICBARRIER_PACKET_SIZE];
    spend();
    if (p->kind == NICBARRIER_PACKET_NACK) {
        reply.kind = NICBARRIER_PACKET_AGAIN;
        if (!nicbarrier_tombstones_answer(nicbarrier_datagram.tombstones, p->key, p->epoch,
                                          &reply.epoch)) {
            count(refused);
            return;
        }
        if ((reply.epoch & NICBARRIER_TOMBSTONE_DEAD) != 0) {
            reply.epoch &= ~NICBARRIER_TOMBSTONE_DEAD;
            reply.flags = NICBARRIER_FLAG_DEAD;
        }
        count(retransmits);
        count(tombstones);
    }
    nicbarrier_packet_encode(&reply, bytes);
    nicbarrier_datagram_throw(from, bytes, false);
}

/** EPOCH, AGAIN or KEPT before the group is connected: kept until then. */
static int keep(nicbarrier_net_t *net, const nicbarrier_packet_t *p,
                const nicbarrier_address_t *from)
{
    if ((p->epoch & ~NICBARRIER_WORD_FAILED) > NICBARRIER_OUTSTANDING_MAX) {
        refuse();
        return 0;
    }
    net->early[p->at].from = *from;
    if (p->epoch > net->early[p->at].word) {
        net->early[p->at].word = p->epoch;
        net->early[p->at].dead = (p->flags & NICBARRIER_FLAG_DEAD) != 0;
    }
    return 1;
}

/** EPOCH, AGAIN or KEPT. */
static int take_message(nicbarrier_net_t *net, const nicbarrier_packet_t *p,
                        const nicbarrier_address_t *from)
{
    if (!net->connected) {
        return keep(net, p, from);
    }
    nicbarrier_partner_t *partner = net->from[p->at];
    const bool dead = (p->flags & NICBARRIER_FLAG_DEAD) != 0;
    const nicbarrier_word_t verdict = net->stepper->take(net->stepped, p->at, p->epoch, dead);
    if (verdict == NICBARRIER_WORD_WRONG) {
        refuse();
        return 0;
    }
    heard(net, partner, from);
    const uint64_t now = onic_now_nsec();
    bool promised = p->kind == NICBARRIER_PACKET_KEPT;
    if (verdict == NICBARRIER_WORD_NEW) {
        promised |=
            nicbarrier_nacks_heard(&net->nacks, p->at, p->kind == NICBARRIER_PACKET_EPOCH, now);
    }
    if (promised) {
        nicbarrier_datagram_send(net, NICBARRIER_PACKET_GOT, p->at, &partner->at, p->epoch, 0);
    }
    if (verdict == NICBARRIER_WORD_OLD) {
        count(duplicates);
        spend();
        return 0;
    }
    if (p->kind != NICBARRIER_PACKET_EPOCH) {
        count(recovered);
    }
    if (dead) {
        nicbarrier_datagram_note_failure(net, NICBARRIER_DEAD);
    }
    nicbarrier_datagram_follow(net, now);
    return 1;
}

static void take_late(nicbarrier_net_t *net, const nicbarrier_packet_t *p,
                      const nicbarrier_address_t *from)
{
    nicbarrier_rule_t room;
    heard(net, net->from[p->at], from);
    nicbarrier_nacks_late(&net->nacks, nicbarrier_net_state(net, &room), p->at, p->epoch,
                          onic_now_nsec());
}

static void take_got(nicbarrier_net_t *net, const nicbarrier_packet_t *p,
                     const nicbarrier_address_t *from)
{
    heard(net, net->to[p->at], from);
    nicbarrier_nacks_got(&net->nacks, p->at, p->epoch);
    nicbarrier_datagram_follow(net, onic_now_nsec());
}

static int take_for_group(nicbarrier_net_t *net, const nicbarrier_packet_t *p,
                          const nicbarrier_address_t *from)
{
    switch (p->kind) {
    case NICBARRIER_PACKET_NACK:
        answer(net, p, from);
        return 0;
    case NICBARRIER_PACKET_LATE:
        if (net->connected && fits(net, p, false)) {
            take_late(net, p, from);
            return 0;
        }
        break;
    case NICBARRIER_PACKET_GOT:
        if (net->connected && fits(net, p, true)) {
            take_got(net, p, from);
            return 0;
        }
        break;
    default:
        if (fits(net, p, false)) {
            return take_message(net, p, from);
        }
        break;
    }
    refuse();
    return 0;
}

static int take(const unsigned char *bytes, size_t len, const nicbarrier_address_t *from)
{
    nicbarrier_packet_t p;
    if (nicbarrier_packet_decode(bytes, len, &p) != NULL ||
        p.cookie != nicbarrier_datagram.cookie) {
        refuse();
        return 0;
    }
    if (p.kind == NICBARRIER_PACKET_POKE) {
        spend();
        return 0;
    }
    if (p.kind == NICBARRIER_PACKET_LEFT || p.kind == NICBARRIER_PACKET_STAY) {
        spend();
        nicbarrier_datagram_hear(&p, from);
        return 0;
    }
    if (p.kind == NICBARRIER_PACKET_NACK) {
        count(nacks_seen);
    }
    nicbarrier_net_t *net = find(p.key);
    if (net != NULL) {
        return take_for_group(net, &p, from);
    }
    if (p.kind == NICBARRIER_PACKET_NACK || p.kind == NICBARRIER_PACKET_KEPT) {
        answer_from_the_grave(&p, from);
    } else {
        count(duplicates); /* late, for a group that was freed */
        spend();
    }
    return 0;
}

/** Is it time to look at UDP? Always where that is all there is, and where `thorough`. */
static bool udp_is_due(bool thorough)
{
    nicbarrier_datagram_t *d = &nicbarrier_datagram;
    const unsigned looks = ++d->udp_looks;
    return d->transport[NICBARRIER_VIA_VERBS] == NULL || thorough || looks < UDP_LONG ||
           looks % UDP_SELDOM == 0 || atomic_load_explicit(&d->udp_due, memory_order_relaxed);
}

/** As a transport's receive. */
static int receive_one(void *bytes, size_t size, nicbarrier_address_t *from, bool udp)
{
    nicbarrier_datagram_t *d = &nicbarrier_datagram;
    int len = -1;
    if (d->transport[NICBARRIER_VIA_VERBS] != NULL) {
        len = d->transport[NICBARRIER_VIA_VERBS]->receive(bytes, size, from);
    }
    if (len >= 0) {
        count(verbs_received);
    } else if (udp) {
        len = d->transport[NICBARRIER_VIA_UDP]->receive(bytes, size, from);
        d->udp_looks = len >= 0 ? 0 : d->udp_looks;
    }
    return len;
}

int nicbarrier_datagram_receive(nicbarrier_net_t *net)
{
    const uint64_t completed =
        net != NULL ? atomic_load_explicit(&net->completed, memory_order_relaxed) : 0;
    const bool udp = udp_is_due(net == NULL);
    nicbarrier_address_t from;
    /* One more than a packet, so that longer ones are seen to be wrong. */
    unsigned char bytes[NICBARRIER_PACKET_SIZE + 1];
    int events = 0;
    for (int i = 0; i < PACKETS_AT_ONCE; i++) {
        const int len = receive_one(bytes, sizeof(bytes), &from, udp);
        if (len < 0) {
            if (udp) {
                atomic_store_explicit(&nicbarrier_datagram.udp_due, false, memory_order_relaxed);
            }
            break;
        }
        events += take(bytes, (size_t)len, &from);
        if (net != NULL &&
            atomic_load_explicit(&net->completed, memory_order_relaxed) != completed) {
            return events;
        }
    }
    if (udp) {
        nicbarrier_datagram_take_refusals();
    }
    nicbarrier_datagram_expire();
    return events;
}

/* ---- sleep ------------------------------------------------------------------------------------
 */

bool nicbarrier_datagram_arm(void)
{
    bool quiet = true;
    for (int i = 0; i < NICBARRIER_VIAS; i++) {
        const nicbarrier_transport_t *t = nicbarrier_datagram.transport[i];
        quiet = quiet && (t == NULL || t->arm());
    }
    return quiet;
}

nfds_t nicbarrier_datagram_descriptors(struct pollfd *fds)
{
    nfds_t n = 0;
    for (int i = 0; i < NICBARRIER_VIAS; i++) {
        const nicbarrier_transport_t *t = nicbarrier_datagram.transport[i];
        if (t != NULL) {
            fds[n++] = (struct pollfd){.fd = t->descriptor(), .events = POLLIN};
        }
    }
    return n;
}
