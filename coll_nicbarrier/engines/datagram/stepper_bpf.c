/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The stepper in the kernel, used where nicbarrier-bpf is loaded; see stepper.h and
 * bpf/state.h.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "coll_nicbarrier/engines/datagram/bpf/client.h"
#include "coll_nicbarrier/engines/datagram/state.h"

_Static_assert(offsetof(nicbarrier_bpf_page_t, word) == offsetof(nicbarrier_view_t, word) &&
                   offsetof(nicbarrier_bpf_page_t, entered) ==
                       offsetof(nicbarrier_view_t, entered) &&
                   offsetof(nicbarrier_bpf_page_t, taken) == offsetof(nicbarrier_view_t, taken) &&
                   offsetof(nicbarrier_bpf_page_t, wanted) == offsetof(nicbarrier_view_t, wanted),
               "a page begins with a view");
_Static_assert(sizeof(nicbarrier_bpf_share_t) <= NICBARRIER_SHARE_MAX, "a record has a size");

static nicbarrier_view_t *view_of(const nicbarrier_offload_t *s)
{
    return (nicbarrier_view_t *)(void *)s->page;
}

/* ---- groups ---------------------------------------------------------------------------------- */

/** A partner in the service's format; -1 and the reason if it is not reached through the same
 *  interface as the others. */
static int find_peer(nicbarrier_offload_t *s, const nicbarrier_partner_t *p,
                     nicbarrier_bpf_peer_t *peer, nicbarrier_reason_t *why)
{
    nicbarrier_bpf_share_t *share = &s->share;
    nicbarrier_way_t way;
    if (p == NULL)
        return 0;
    if (nicbarrier_udp_way(&p->at, &way, why) != 0)
        return -1;
    const bool six = !nicbarrier_ip_is_v4(&way.theirs);
    *peer = (nicbarrier_bpf_peer_t){.port = way.their_port, .cookie = p->cookie};
    memcpy(peer->ip, way.theirs.bytes + (six ? 0 : 12), six ? 16 : 4);
    if (share->by.port == 0) {
        share->by = *peer;
        share->six = s->request.six = six;
        memcpy(share->interface, way.interface, sizeof(share->interface));
    }
    if (strcmp(share->interface, way.interface) != 0 || share->six != six)
        return nicbarrier_reason(
            why, "not all partners are reached by one interface and one kind of IP");
    return 0;
}

static int find_peers(nicbarrier_offload_t *s, const nicbarrier_net_t *net, uint32_t k,
                      nicbarrier_reason_t *why)
{
    return find_peer(s, net->to[k], &s->request.to[k], why) == 0 &&
                   find_peer(s, net->from[k], &s->request.from[k], why) == 0
               ? 0
               : -1;
}

static int fill(nicbarrier_offload_t *s, const nicbarrier_net_t *net, nicbarrier_reason_t *why)
{
    nicbarrier_bpf_request_t *r = &s->request;
    s->share.id =
        (nicbarrier_bpf_id_t){.key = net->group.key, .cookie = nicbarrier_datagram.cookie};
    r->me = (uint32_t)net->group.me;
    r->nsteps = (uint32_t)net->nsteps;
    r->drop = (uint32_t)nicbarrier_datagram_config.drop;
    memcpy(r->step, net->step, sizeof(r->step));
    for (uint32_t k = 0; k < r->nsteps; k++)
        if (find_peers(s, net, k, why) != 0)
            return -1;
    return 0;
}

static nicbarrier_offload_t *bpf_install(const nicbarrier_net_t *net, nicbarrier_view_t **view_p,
                                         nicbarrier_reason_t *why)
{
    nicbarrier_offload_t *s = calloc(1, sizeof(*s));
    if (s == NULL) {
        nicbarrier_reason(why, "memory is exhausted");
        return NULL;
    }
    if (fill(s, net, why) != 0 ||
        nicbarrier_bpf_client_install(s, nicbarrier_udp_descriptor(), why) != 0) {
        free(s);
        return NULL;
    }
    *view_p = view_of(s);
    return s;
}

static bool bpf_readdress(nicbarrier_offload_t *s, const nicbarrier_net_t *net, uint32_t k)
{
    nicbarrier_reason_t why;
    return find_peers(s, net, k, &why) == 0 && nicbarrier_bpf_client_readdress(s, k);
}

static void bpf_remove(nicbarrier_offload_t *s)
{
    nicbarrier_bpf_client_close(s);
    free(s);
}

/* ---- other processes ------------------------------------------------------------------------- */

static uint32_t bpf_share(const nicbarrier_offload_t *s, void *record)
{
    memcpy(record, &s->share, sizeof(s->share));
    return sizeof(s->share);
}

static nicbarrier_offload_t *bpf_attach(const void *record, uint32_t len,
                                        const nicbarrier_view_t **view_p)
{
    nicbarrier_offload_t *s = calloc(1, sizeof(*s));
    if (s == NULL || len != sizeof(s->share)) {
        free(s);
        return NULL;
    }
    memcpy(&s->share, record, sizeof(s->share));
    if (nicbarrier_bpf_client_open(s) != 0) {
        free(s);
        return NULL;
    }
    *view_p = view_of(s);
    return s;
}

const nicbarrier_stepper_t nicbarrier_stepper_bpf = {
    .name = "bpf",
    .install = bpf_install,
    .enter = nicbarrier_bpf_client_enter,
    .take = nicbarrier_bpf_client_take,
    .readdress = bpf_readdress,
    .snapshot = nicbarrier_bpf_client_snapshot,
    .remove = bpf_remove,
    .stop = nicbarrier_bpf_client_stop,
    .share = bpf_share,
    .attach = bpf_attach,
};
