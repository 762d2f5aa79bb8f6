/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Engine datagram: groups from prepare to disconnect, and followers, which wake the leader's
 *  helper thread by a packet or use the group's stepper themselves; see engine.h. */
#include <stdlib.h>
#include <string.h>

#include "coll_nicbarrier/engines/datagram/state.h"

/* ---- prepare -------------------------------------------------------------------------------- */

int nicbarrier_datagram_prepare(const nicbarrier_group_t *group, nicbarrier_net_t **net_p,
                                void *bytes, uint32_t *len_p, nicbarrier_reason_t *why)
{
    nicbarrier_datagram_t *d = &nicbarrier_datagram;
    nicbarrier_net_t *net = calloc(1, sizeof(*net));
    *net_p = NULL;
    if (net != NULL) {
        net->nsteps = nicbarrier_schedule((nicbarrier_schedule_kind_t)d->schedule, group->me,
                                          group->n, net->step);
        net->partner = calloc(2 * (size_t)net->nsteps, sizeof(*net->partner));
    }
    if (net == NULL || net->partner == NULL) {
        nicbarrier_reason(why, "memory is exhausted");
        free(net);
        return -1;
    }
    net->group = *group;
    nicbarrier_nacks_init(&net->nacks, &d->timing);
    *len_p = nicbarrier_udp_describe(bytes);
    /* From here on the group is known. For an unknown group every NACK is answered as if granted
     * (input.c). */
    nicbarrier_datagram_lock();
    nicbarrier_datagram_add(net);
    nicbarrier_datagram_unlock();
    *net_p = net;
    return 0;
}

/* ---- partners ------------------------------------------------------------------------------- */

/** The partner with that index, new or known; NULL if it cannot be made. */
static nicbarrier_partner_t *partner_of(nicbarrier_net_t *net, int32_t member,
                                        const nicbarrier_endpoints_t *endpoints,
                                        nicbarrier_reason_t *why)
{
    for (int i = 0; i < net->npartners; i++)
        if (net->partner[i].member == member)
            return &net->partner[i];
    nicbarrier_partner_t *p = &net->partner[net->npartners];
    const nicbarrier_endpoint_t *endpoint = nicbarrier_endpoint_of(endpoints, member);
    if (endpoint == NULL) {
        nicbarrier_reason(why, "the endpoint of member %d is missing", (int)member);
        return NULL;
    }
    p->member = member;
    if (nicbarrier_udp_resolve(p, endpoint->bytes, endpoint->len, why) != 0)
        return NULL;
    p->at = p->candidate[0];
    net->npartners++;
    return p;
}

static int find_partners(nicbarrier_net_t *net, const nicbarrier_endpoints_t *endpoints,
                         nicbarrier_reason_t *why)
{
    for (int k = 0; k < net->nsteps; k++) {
        const nicbarrier_step_t *s = &net->step[k];
        const bool sends = s->send_to != NICBARRIER_NOBODY;
        const bool waits = s->wait_for != NICBARRIER_NOBODY;
        net->to[k] = sends ? partner_of(net, s->send_to, endpoints, why) : NULL;
        net->from[k] = waits ? partner_of(net, s->wait_for, endpoints, why) : NULL;
        if ((sends && net->to[k] == NULL) || (waits && net->from[k] == NULL))
            return -1;
    }
    return 0;
}

int nicbarrier_datagram_connect(nicbarrier_net_t *net, const nicbarrier_endpoints_t *endpoints,
                                const nicbarrier_net_events_t *events, nicbarrier_reason_t *why)
{
    /* From here on others may need an answer at any time. */
    const int error = nicbarrier_datagram_start_thread();
    if (error != 0)
        return nicbarrier_reason(why, "the helper thread cannot be started: %s", strerror(error));
    nicbarrier_datagram_lock();
    net->events = *events;
    bool done = find_partners(net, endpoints, why) == 0;
    nicbarrier_datagram_unlock();
    /* Until the group is connected no other thread uses it, and a stepper may wait for the network.
     */
    done = done && nicbarrier_offload_install(net, why);
    nicbarrier_datagram_lock();
    net->connected = done;
    nicbarrier_datagram_unlock();
    return done ? 0 : -1;
}

/* ---- the trial ------------------------------------------------------------------------------- */

/** True if a partner that this member waits for is out of reach (reach.h). */
static bool misses_partner(const nicbarrier_net_t *net)
{
    const uint64_t now = onic_now_nsec();
    for (int k = 0; k < net->nsteps; k++)
        if (net->from[k] != NULL && nicbarrier_reach_is_lost(net->from[k], now))
            return true;
    return false;
}

bool nicbarrier_datagram_hopeless(nicbarrier_net_t *net, nicbarrier_reason_t *why)
{
    nicbarrier_datagram_lock();
    const nicbarrier_rule_t *r = nicbarrier_net_state(net);
    net->expected = r->completed < r->entered;
    const bool hopeless = net->expected && misses_partner(net);
    if (hopeless) {
        nicbarrier_reason(why, "no way was found through the network to some leader of other "
                               "processes");
        /* The other members wait for this one. */
        nicbarrier_datagram_fail(net);
    }
    nicbarrier_datagram_unlock();
    return hopeless;
}

void nicbarrier_datagram_disconnect(nicbarrier_net_t *net)
{
    nicbarrier_datagram_lock();
    /* Lets the processes behind this one see what is complete. */
    (void)nicbarrier_datagram_look(net);
    nicbarrier_datagram_leave(net);
    nicbarrier_datagram_unlock();
}

/* ---- behind a leader ------------------------------------------------------------------------- */

typedef struct record {
    nicbarrier_address_t leader;
    uint32_t cookie;
    uint32_t stepper; /**< index in the table of steppers */
    uint32_t len;     /**< bytes that follow; 0: the leader's process takes the steps */
    unsigned char share[NICBARRIER_SHARE_MAX];
} record_t;

_Static_assert(sizeof(record_t) <= NICBARRIER_FOLLOWER_MAX, "records have a limited size");

struct nicbarrier_follower {
    nicbarrier_address_t leader;
    unsigned char wake[NICBARRIER_PACKET_SIZE];
    const nicbarrier_stepper_t *stepper;
    nicbarrier_offload_t *access; /**< or NULL */
    const nicbarrier_view_t *view;
};

uint32_t nicbarrier_datagram_follower_record(nicbarrier_net_t *net, void *bytes)
{
    record_t r;
    memset(&r, 0, sizeof(r));
    nicbarrier_udp_local(&r.leader);
    r.cookie = nicbarrier_datagram.cookie;
    nicbarrier_datagram_lock();
    if (nicbarrier_net_view(net) != NULL) {
        while (nicbarrier_steppers[r.stepper] != net->stepper)
            r.stepper++;
        r.len = net->stepper->share(net->offload, r.share);
    }
    nicbarrier_datagram_unlock();
    memcpy(bytes, &r, sizeof(r));
    return sizeof(r);
}

nicbarrier_follower_t *nicbarrier_datagram_attach(const void *bytes, uint32_t len)
{
    nicbarrier_follower_t *b = calloc(1, sizeof(*b));
    record_t r;
    if (b == NULL || len != sizeof(r)) {
        free(b);
        return NULL;
    }
    memcpy(&r, bytes, sizeof(r));
    const nicbarrier_packet_t p = {.kind = NICBARRIER_PACKET_WAKE, .cookie = r.cookie};
    nicbarrier_packet_encode(&p, b->wake);
    b->leader = r.leader;
    b->stepper = nicbarrier_steppers[r.stepper];
    if (r.len > 0)
        b->access = b->stepper->attach(r.share, r.len, &b->view);
    return b;
}

void nicbarrier_datagram_notify(nicbarrier_follower_t *b, uint64_t epoch, bool attentive)
{
    bool wake = !attentive;
    if (b->access != NULL && b->stepper->enter(b->access, epoch)) {
        /* If that was the last entry, no packet has woken the leader's thread. */
        wake = nicbarrier_view_completed(b->view) >= epoch && atomic_load(&b->view->wanted) != 0;
    }
    if (wake)
        nicbarrier_udp_send_once(&b->leader, b->wake);
}

uint64_t nicbarrier_datagram_known(const nicbarrier_follower_t *b)
{
    return b->access != NULL ? atomic_load_explicit(&b->view->word, memory_order_acquire) : 0;
}

void nicbarrier_datagram_detach(nicbarrier_follower_t *b)
{
    if (b->access != NULL)
        b->stepper->remove(b->access);
    free(b);
}
