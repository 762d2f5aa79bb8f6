/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Engine datagram: packets in and out, timers; see datagram.h. The lock is held throughout,
 *  but for what takes and releases it. */
#include <endian.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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

uint64_t nicbarrier_datagram_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

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

static nicbarrier_net_t **list_of(uint64_t key)
{
    return &nicbarrier_datagram.list[key % NICBARRIER_DATAGRAM_LISTS];
}

nicbarrier_net_t *nicbarrier_datagram_find(uint64_t key)
{
    nicbarrier_net_t *net = *list_of(key);
    while (net != NULL && net->group.key != key) {
        net = net->next;
    }
    return net;
}

void nicbarrier_datagram_insert(nicbarrier_net_t *net)
{
    nicbarrier_net_t **list = list_of(net->group.key);
    net->next = *list;
    *list = net;
}

void nicbarrier_datagram_bury(nicbarrier_net_t *net)
{
    nicbarrier_datagram_t *d = &nicbarrier_datagram;
    nicbarrier_net_t **at = list_of(net->group.key);
    while (*at != net) {
        at = &(*at)->next;
    }
    *at = net->next;
    nicbarrier_tombstones_add(d->tombstones, net->group.key, net->epochs.completed);
    for (int i = 0; i < net->npartners; i++) {
        nicbarrier_datagram_release(&net->partner[i]);
    }
    free(net->partner);
    free(net);
}

/** Calls a function for every group; it may bury the group. */
static void each(void (*function)(nicbarrier_net_t *, uint64_t), uint64_t now)
{
    for (int i = 0; i < NICBARRIER_DATAGRAM_LISTS; i++) {
        nicbarrier_net_t *next;
        for (nicbarrier_net_t *net = nicbarrier_datagram.list[i]; net != NULL; net = next) {
            next = net->next;
            function(net, now);
        }
    }
}

/* ---- out --------------------------------------------------------------------------------------
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

static void throw(const nicbarrier_address_t *to, const unsigned char *packet, bool fast)
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

/** The messages of steps: the static packet with a new epoch. */
static void send_messages(nicbarrier_net_t *net, const nicbarrier_message_t *out, int n)
{
    for (int i = 0; i < n; i++) {
        unsigned char *packet = net->message[out[i].from_at];
        const uint64_t epoch = htobe64(out[i].epoch);
        memcpy(packet + NICBARRIER_PACKET_EPOCH_AT, &epoch, sizeof(epoch));
        count(messages);
        throw(&net->to[out[i].from_at]->at, packet, true);
    }
}

static void send_other(nicbarrier_net_t *net, nicbarrier_packet_kind_t kind,
                       const nicbarrier_partner_t *to, const nicbarrier_address_t *at,
                       const nicbarrier_message_t *out)
{
    const nicbarrier_packet_t p = {
        .kind = (uint8_t)kind,
        .at = out->at,
        .from_at = out->from_at,
        .sender = (uint32_t)net->group.me,
        .cookie = to->cookie,
        .key = net->group.key,
        .epoch = out->epoch,
        .to = kind == NICBARRIER_PACKET_NACK ? (uint32_t)to->member : 0,
        .back = kind == NICBARRIER_PACKET_NACK ? nicbarrier_datagram.cookie : 0,
        .copy = kind == NICBARRIER_PACKET_NACK && at->via != to->at.via};
    unsigned char bytes[NICBARRIER_PACKET_SIZE];
    nicbarrier_packet_encode(&p, bytes);
    throw(at, bytes, false);
}

static void note_deadline(const nicbarrier_net_t *net)
{
    nicbarrier_datagram_t *d = &nicbarrier_datagram;
    if (net->epochs.deadline < atomic_load_explicit(&d->deadline, memory_order_relaxed)) {
        atomic_store_explicit(&d->deadline, net->epochs.deadline, memory_order_relaxed);
    }
}

/** Goes on with a group; the group may be buried afterwards. */
static void advance(nicbarrier_net_t *net, uint64_t now)
{
    nicbarrier_message_t out[NICBARRIER_STEPS_MAX];
    if (!net->connected) {
        return;
    }
    send_messages(net, out, nicbarrier_epochs_advance(&net->epochs, now, out));
    note_deadline(net);
    const uint64_t completed = net->epochs.completed;
    if (completed == atomic_load_explicit(&net->completed, memory_order_relaxed)) {
        return;
    }
    count(completed);
    if (nicbarrier_datagram.helping) {
        count(thread_completed);
    }
    atomic_store_explicit(&net->completed, completed, memory_order_release);
    net->expected = false;
    if (net->gone) {
        if (completed == net->epochs.entered) {
            nicbarrier_datagram_bury(net);
        }
    } else if (net->events.complete != NULL) {
        net->events.complete(net->events.arg, completed);
    }
}

void nicbarrier_datagram_enter(nicbarrier_net_t *net, uint64_t epoch)
{
    if (epoch > net->epochs.entered) {
        nicbarrier_epochs_enter(&net->epochs, epoch);
        advance(net, nicbarrier_datagram_now());
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
    each(enter_posted, 0);
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
    each(ask, 0);
}

/* ---- timers -----------------------------------------------------------------------------------
 */

static void expire(nicbarrier_net_t *net, uint64_t now)
{
    nicbarrier_message_t out[NICBARRIER_STEPS_MAX];
    const int n = nicbarrier_epochs_expire(&net->epochs, now, out);
    for (int i = 0; i < n; i++) {
        nicbarrier_partner_t *from = net->from[out[i].from_at];
        count(nacks);
        if (nicbarrier_reach_ask(from, net->expected, now)) {
            count(fallbacks);
        }
        send_other(net, NICBARRIER_PACKET_NACK, from, &from->at, &out[i]);
        const nicbarrier_address_t *otherwise = nicbarrier_reach_otherwise(from);
        if (otherwise != NULL) {
            count(copies);
            send_other(net, NICBARRIER_PACKET_NACK, from, otherwise, &out[i]);
        }
    }
    note_deadline(net);
}

static void expire_all(void)
{
    nicbarrier_datagram_t *d = &nicbarrier_datagram;
    const uint64_t now = nicbarrier_datagram_now();
    d->now = now;
    if (now >= atomic_load_explicit(&d->deadline, memory_order_relaxed)) {
        atomic_store_explicit(&d->deadline, NICBARRIER_NEVER, memory_order_relaxed);
        each(expire, now);
    }
}

/* ---- in ---------------------------------------------------------------------------------------
 */

static void answer(nicbarrier_net_t *net, const nicbarrier_packet_t *p,
                   const nicbarrier_address_t *from)
{
    nicbarrier_message_t out;
    const nicbarrier_verdict_t verdict = nicbarrier_epochs_answer(&net->epochs, p, &out);
    if (verdict == NICBARRIER_WRONG || !net->connected || p->to != (uint32_t)net->group.me) {
        count(refused);
        return;
    }
    nicbarrier_partner_t *to = net->to[p->at];
    if (!p->copy) {
        nicbarrier_reach_asked(to, from, nicbarrier_datagram.transport[from->via]->adopt);
    }
    const nicbarrier_address_t *back = nicbarrier_reach_back(to, from);
    if (verdict == NICBARRIER_NEW) {
        count(retransmits);
        send_other(net, NICBARRIER_PACKET_AGAIN, to, back, &out);
    } else if (p->epoch == 1) {
        out = (nicbarrier_message_t){.at = p->from_at, .from_at = p->at, .epoch = 1};
        send_other(net, NICBARRIER_PACKET_HERE, to, back, &out);
    }
}

/** A NACK for a group that was freed. */
static void answer_from_the_grave(const nicbarrier_packet_t *p, const nicbarrier_address_t *from)
{
    nicbarrier_packet_t reply = {.kind = NICBARRIER_PACKET_AGAIN,
                                 .at = p->from_at,
                                 .from_at = p->at,
                                 .sender = p->to,
                                 .cookie = p->back,
                                 .key = p->key};
    unsigned char bytes[NICBARRIER_PACKET_SIZE];
    if (!nicbarrier_tombstones_answer(nicbarrier_datagram.tombstones, p->key, p->epoch,
                                      &reply.epoch)) {
        count(refused);
        return;
    }
    count(retransmits);
    count(tombstones);
    nicbarrier_packet_encode(&reply, bytes);
    throw(from, bytes, false);
}

static int take_message(nicbarrier_net_t *net, const nicbarrier_packet_t *p,
                        const nicbarrier_address_t *from)
{
    const uint64_t now = nicbarrier_datagram_now();
    const nicbarrier_verdict_t verdict = nicbarrier_epochs_receive(&net->epochs, p, now);
    if (verdict == NICBARRIER_WRONG) {
        count(refused);
        return 0;
    }
    if (net->connected) {
        nicbarrier_reach_heard(net->from[p->at], from,
                               nicbarrier_datagram.transport[from->via]->adopt);
    } else {
        net->early[p->at] = *from;
    }
    if (verdict == NICBARRIER_OLD) {
        if (p->kind != NICBARRIER_PACKET_HERE) {
            count(duplicates);
        }
        return 0;
    }
    if (p->kind == NICBARRIER_PACKET_AGAIN) {
        count(recovered);
    }
    advance(net, now);
    return 1;
}

static int take(const unsigned char *bytes, size_t len, const nicbarrier_address_t *from)
{
    nicbarrier_packet_t p;
    if (nicbarrier_packet_decode(bytes, len, &p) != NULL ||
        p.cookie != nicbarrier_datagram.cookie) {
        count(refused);
        return 0;
    }
    if (p.kind == NICBARRIER_PACKET_POKE) {
        return 0;
    }
    nicbarrier_net_t *net = nicbarrier_datagram_find(p.key);
    if (p.kind == NICBARRIER_PACKET_NACK) {
        count(nacks_seen);
        if (net != NULL) {
            answer(net, &p, from);
        } else {
            answer_from_the_grave(&p, from);
        }
        return 0;
    }
    if (net == NULL) {
        count(duplicates); /* late, for a group that was freed */
        return 0;
    }
    return take_message(net, &p, from);
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
    const uint64_t completed = net != NULL ? net->epochs.completed : 0;
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
        if (net != NULL && net->epochs.completed != completed) {
            return events;
        }
    }
    expire_all();
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
