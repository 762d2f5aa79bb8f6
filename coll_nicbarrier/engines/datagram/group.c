/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Engine datagram: state, packets out, connected groups; see datagram.h. */
#include "coll_nicbarrier/engines/datagram/datagram.h"

#include <sched.h>
#include <stdlib.h>

nicbarrier_datagram_t nicbarrier_datagram;

void nicbarrier_datagram_lock(void)
{
    while (!nicbarrier_datagram_trylock()) {
        sched_yield();
    }
}

/* ---- packets out ----------------------------------------------------------------------------- */

/** As the parameter drop says. */
static bool is_dropped(void)
{
    nicbarrier_datagram_t *d = &nicbarrier_datagram;
    if (nicbarrier_datagram_config.drop == 0) {
        return false;
    }
    d->random = d->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (d->random >> 33) % 1000 < (unsigned)nicbarrier_datagram_config.drop;
}

void nicbarrier_datagram_transmit(const nicbarrier_address_t *to, const unsigned char *packet)
{
    if (is_dropped() || !nicbarrier_datagram.transport[to->via]->send(to, packet)) {
        return;
    }
    if (to->via == NICBARRIER_VIA_VERBS) {
        nicbarrier_count(&nicbarrier_datagram_counters.verbs_sent);
    } else {
        nicbarrier_datagram.udp_polls = 0;
    }
}

void nicbarrier_datagram_post(const nicbarrier_address_t *to, nicbarrier_packet_t packet)
{
    unsigned char bytes[NICBARRIER_PACKET_SIZE];
    packet.back = nicbarrier_datagram.cookie;
    nicbarrier_packet_encode(&packet, bytes);
    nicbarrier_datagram_transmit(to, bytes);
}

void nicbarrier_datagram_send(nicbarrier_net_t *net, nicbarrier_packet_kind_t kind, uint32_t k,
                              const nicbarrier_address_t *at, uint64_t word)
{
    const bool upwards = kind == NICBARRIER_PACKET_NACK || kind == NICBARRIER_PACKET_ACK;
    const nicbarrier_partner_t *to = upwards ? net->from[k] : net->to[k];
    const nicbarrier_packet_t p = {.kind = (uint8_t)kind,
                                   .at = upwards ? net->step[k].wait_at : net->step[k].send_at,
                                   .from_at = (uint8_t)k,
                                   .sender = (uint32_t)net->group.me,
                                   .cookie = to->cookie,
                                   .key = net->group.key,
                                   .epoch = word,
                                   .to = (uint32_t)to->member};
    nicbarrier_datagram_post(at, p);
}

/* ---- table ----------------------------------------------------------------------------------- */

static nicbarrier_net_t **list_of(uint64_t key)
{
    return &nicbarrier_datagram.list[key % NICBARRIER_DATAGRAM_LISTS];
}

void nicbarrier_datagram_add(nicbarrier_net_t *net)
{
    nicbarrier_net_t **list = list_of(net->group.key);
    net->next = *list;
    *list = net;
}

nicbarrier_net_t *nicbarrier_datagram_find(uint64_t key)
{
    nicbarrier_net_t *net = *list_of(key);
    while (net != NULL && net->group.key != key) {
        net = net->next;
    }
    return net;
}

void nicbarrier_datagram_each(void (*function)(nicbarrier_net_t *, uint64_t), uint64_t what)
{
    for (int i = 0; i < NICBARRIER_DATAGRAM_LISTS; i++) {
        nicbarrier_net_t *next;
        for (nicbarrier_net_t *net = nicbarrier_datagram.list[i]; net != NULL; net = next) {
            next = net->next;
            function(net, what);
        }
    }
}

/* ---- the end --------------------------------------------------------------------------------- */

bool nicbarrier_datagram_is_over(const nicbarrier_net_t *net)
{
    nicbarrier_rule_t room;
    if (!net->connected) {
        return true;
    }
    const nicbarrier_rule_t *r = nicbarrier_net_state(net, &room);
    return (r->failed || r->completed == r->entered) && net->nacks.due == 0;
}

void nicbarrier_datagram_free(nicbarrier_net_t *net)
{
    nicbarrier_net_t **at = list_of(net->group.key);
    while (*at != net) {
        at = &(*at)->next;
    }
    *at = net->next;
    if (net->connected) {
        net->stepper->remove(net->stepped);
    }
    free(net->partner);
    free(net);
}

void nicbarrier_datagram_leave(nicbarrier_net_t *net)
{
    const bool failed = atomic_load_explicit(&net->failed, memory_order_relaxed);
    /* What was entered has to become complete, because others need the messages for that; but a
     * group in which nothing ever did was not in use. */
    net->gone = failed || (net->used && !nicbarrier_datagram_is_over(net));
    if (!net->gone) {
        nicbarrier_datagram_free(net);
    }
}

/* ---- moving on ------------------------------------------------------------------------------- */

void nicbarrier_datagram_set_failed(nicbarrier_net_t *net)
{
    nicbarrier_rule_t room;
    atomic_store_explicit(&net->failed, true, memory_order_release);
    if (!nicbarrier_net_state(net, &room)->failed) {
        net->stepper->fail(net->stepped);
    }
}

static void add_peers(nicbarrier_net_t *net)
{
    net->used = true;
    for (int i = 0; i < net->npartners; i++) {
        nicbarrier_linger_add(&nicbarrier_datagram.linger, net->partner[i].cookie,
                              &net->partner[i].at);
    }
}

static void complete(nicbarrier_net_t *net, uint64_t completed)
{
    nicbarrier_count(&nicbarrier_datagram_counters.completed);
    if (nicbarrier_datagram.helping) {
        nicbarrier_count(&nicbarrier_datagram_counters.thread_completed);
    }
    if (!net->used) {
        add_peers(net);
    }
    atomic_store_explicit(&net->completed, completed, memory_order_release);
    net->expected = false;
    if (!net->gone && net->events.complete != NULL) {
        net->events.complete(net->events.arg, completed);
    }
}

void nicbarrier_datagram_follow(nicbarrier_net_t *net, uint64_t now)
{
    nicbarrier_datagram_t *d = &nicbarrier_datagram;
    nicbarrier_rule_t room;
    const nicbarrier_rule_t *r = nicbarrier_net_state(net, &room);
    nicbarrier_nacks_follow(&net->nacks, r, now);
    if (net->nacks.deadline < atomic_load_explicit(&d->deadline, memory_order_relaxed)) {
        atomic_store_explicit(&d->deadline, net->nacks.deadline, memory_order_relaxed);
    }
    if (r->completed != atomic_load_explicit(&net->completed, memory_order_relaxed)) {
        complete(net, r->completed);
    }
    if (r->failed) {
        atomic_store_explicit(&net->failed, true, memory_order_release);
    }
    if (net->gone) {
        nicbarrier_datagram_leave(net);
    }
}

void nicbarrier_datagram_fail(nicbarrier_net_t *net)
{
    nicbarrier_datagram_set_failed(net);
    nicbarrier_datagram_follow(net, onic_now_nsec());
}

void nicbarrier_datagram_moved(nicbarrier_net_t *net, const nicbarrier_partner_t *p)
{
    for (int k = 0; k < net->nsteps && net->connected; k++) {
        if (net->to[k] == p) {
            net->stepper->readdress(net->stepped, (uint32_t)k, &p->at);
        }
    }
    if (net->used) {
        nicbarrier_linger_add(&nicbarrier_datagram.linger, p->cookie, &p->at);
    }
}

/* ---- entering -------------------------------------------------------------------------------- */

void nicbarrier_datagram_enter(nicbarrier_net_t *net, uint64_t epoch)
{
    nicbarrier_rule_t room;
    if (net->connected && epoch > nicbarrier_net_state(net, &room)->entered) {
        net->stepper->enter(net->stepped, epoch);
        nicbarrier_datagram_follow(net, onic_now_nsec());
    }
}

static void enter_behind(nicbarrier_net_t *net, uint64_t now)
{
    (void)now;
    if (net->connected && !net->gone && net->events.entered != NULL) {
        nicbarrier_datagram_enter(net, net->events.entered(net->events.arg));
    }
}

void nicbarrier_datagram_enter_all(void)
{
    nicbarrier_datagram_each(enter_behind, 0);
}
