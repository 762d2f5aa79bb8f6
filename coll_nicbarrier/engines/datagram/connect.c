/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Engine datagram: groups from prepare to disconnect; see engine.h. */
#include <stdlib.h>
#include <string.h>

#include "coll_nicbarrier/engines/datagram/state.h"

/* ---- prepare -------------------------------------------------------------------------------- */

int nicbarrier_datagram_prepare(const nicbarrier_group_t *group, nicbarrier_net_t **net_p,
                                nicbarrier_endpoint_t *mine, nicbarrier_reason_t *why)
{
    *net_p = NULL;
    /* Not before: a process may open the engine and use another. */
    nicbarrier_datagram_lock();
    const int error = nicbarrier_datagram_start_thread();
    nicbarrier_datagram_unlock();
    if (error != 0)
        return nicbarrier_reason(why, "the helper thread cannot be started: %s", strerror(error));
    nicbarrier_net_t *net = calloc(1, sizeof(*net));
    if (net == NULL)
        return nicbarrier_reason(why, "memory is exhausted");
    net->group = *group;
    nicbarrier_group_begin(group, &net->rule);
    nicbarrier_nacks_init(&net->nacks, nicbarrier_datagram.silence);
    mine->len = nicbarrier_udp_describe(mine->bytes);
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
    const char *wrong = nicbarrier_udp_resolve(endpoint->bytes, endpoint->len, &p->cookie, &p->at);
    if (wrong != NULL) {
        nicbarrier_reason(why, "the addresses of member %d: %s", (int)member, wrong);
        return NULL;
    }
    net->npartners++;
    return p;
}

static int find_partners(nicbarrier_net_t *net, const nicbarrier_endpoints_t *endpoints,
                         nicbarrier_reason_t *why)
{
    for (uint32_t k = 0; k < net->rule.nsteps; k++) {
        const nicbarrier_step_t *s = &net->group.step[k];
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
                                nicbarrier_shm_t *node, nicbarrier_reason_t *why)
{
    nicbarrier_datagram_lock();
    net->node = node;
    bool done = find_partners(net, endpoints, why) == 0;
    nicbarrier_datagram_unlock();
    /* Until the group is connected no other thread uses it. */
    done = done && nicbarrier_steps_begin(net, why);
    nicbarrier_datagram_lock();
    net->connected = done;
    nicbarrier_steps_teach(net);
    nicbarrier_datagram_unlock();
    return done ? 0 : -1;
}

void nicbarrier_datagram_disconnect(nicbarrier_net_t *net)
{
    nicbarrier_datagram_lock();
    /* Lets the processes behind this one see what is complete. */
    (void)nicbarrier_datagram_look(net);
    nicbarrier_datagram_leave(net);
    nicbarrier_datagram_unlock();
}
