/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The stepper in the kernel, where nicbarrier-bpf is loaded; see stepper.h and bpf/state.h.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "coll_nicbarrier/engines/datagram/bpf/client.h"
#include "coll_nicbarrier/engines/datagram/datagram.h"

_Static_assert(offsetof(nicbarrier_bpf_page_t, word) == offsetof(nicbarrier_view_t, word) &&
                   offsetof(nicbarrier_bpf_page_t, entered) ==
                       offsetof(nicbarrier_view_t, entered) &&
                   offsetof(nicbarrier_bpf_page_t, taken) == offsetof(nicbarrier_view_t, taken) &&
                   offsetof(nicbarrier_bpf_page_t, wanted) == offsetof(nicbarrier_view_t, wanted),
               "a page begins with a view");
_Static_assert(sizeof(nicbarrier_bpf_share_t) <= NICBARRIER_SHARE_MAX, "a record has a size");

struct nicbarrier_stepped {
    nicbarrier_bpf_client_t client;
    nicbarrier_bpf_share_t share;
    nicbarrier_bpf_request_t request; /**< with the addresses that partners have */
};

static nicbarrier_view_t *view_of(const nicbarrier_bpf_client_t *c)
{
    return (nicbarrier_view_t *)(void *)c->page;
}

/* ---- addresses ------------------------------------------------------------------------------- */

/** A partner as the service wants it; -1 and the reason where it is not reached as the others are.
 */
static int find_peer(nicbarrier_stepped_t *s, const nicbarrier_address_t *at,
                     nicbarrier_bpf_peer_t *peer, nicbarrier_reason_t *why)
{
    nicbarrier_way_t way;
    if (nicbarrier_udp_way(at, &way, why) != 0)
        return -1;
    const bool six = !nicbarrier_ip_is_v4(&way.theirs);
    memset(peer, 0, sizeof(*peer));
    peer->port = way.their_port;
    peer->six = six;
    memcpy(peer->ip, way.theirs.bytes + (six ? 0 : 12), six ? 16 : 4);
    if (s->share.by.port == 0) {
        s->share.by = *peer;
        memcpy(s->share.interface, way.interface, sizeof(s->share.interface));
    }
    if (strcmp(s->share.interface, way.interface) != 0 || s->share.by.six != peer->six)
        return nicbarrier_reason(
            why, "not all partners are reached by one interface and one kind of IP");
    return 0;
}

static int find_peers(nicbarrier_stepped_t *s, uint32_t k, const nicbarrier_address_t *to,
                      const nicbarrier_address_t *from, nicbarrier_reason_t *why)
{
    return (to == NULL || find_peer(s, to, &s->request.to[k], why) == 0) &&
                   (from == NULL || find_peer(s, from, &s->request.from[k], why) == 0)
               ? 0
               : -1;
}

/* ---- groups ---------------------------------------------------------------------------------- */

static int fill(nicbarrier_stepped_t *s, const nicbarrier_stepping_t *what,
                nicbarrier_reason_t *why)
{
    nicbarrier_bpf_request_t *r = &s->request;
    r->rule = *what->start;
    s->share.id = (nicbarrier_bpf_id_t){.key = what->key, .cookie = what->cookie};
    r->drop = what->drop;
    for (uint32_t k = 0; k < r->rule.nsteps; k++) {
        if (find_peers(s, k, what->to[k], what->from[k], why) != 0)
            return -1;
        memcpy(r->packet[k], what->packet[k], NICBARRIER_PACKET_SIZE);
        memcpy(&r->named[k], what->expected[k] + NICBARRIER_PACKET_SENDER_AT, sizeof(r->named[k]));
    }
    return 0;
}

static nicbarrier_stepped_t *bpf_install(const nicbarrier_stepping_t *what,
                                         nicbarrier_view_t **view_p, nicbarrier_reason_t *why)
{
    nicbarrier_stepped_t *s = calloc(1, sizeof(*s));
    if (s == NULL) {
        nicbarrier_reason(why, "memory is exhausted");
        return NULL;
    }
    if (fill(s, what, why) != 0 ||
        nicbarrier_bpf_client_install(&s->client, &s->share, &s->request,
                                      nicbarrier_udp.descriptor(), why) != 0) {
        free(s);
        return NULL;
    }
    *view_p = view_of(&s->client);
    return s;
}

static bool bpf_enter(nicbarrier_stepped_t *s, uint64_t epoch)
{
    return nicbarrier_bpf_client_enter(&s->client, epoch);
}

static bool bpf_take(nicbarrier_stepped_t *s, uint32_t k, uint64_t word)
{
    return nicbarrier_bpf_client_take(&s->client, k, word);
}

static bool bpf_readdress(nicbarrier_stepped_t *s, uint32_t k, const nicbarrier_address_t *to,
                          const nicbarrier_address_t *from)
{
    nicbarrier_reason_t why;
    s->request.id.step = k;
    return find_peers(s, k, to, from, &why) == 0 &&
           nicbarrier_bpf_client_readdress(&s->client, &s->request);
}

static void bpf_snapshot(const nicbarrier_stepped_t *s, nicbarrier_rule_t *state)
{
    nicbarrier_bpf_client_snapshot(&s->client, state);
}

static void bpf_remove(nicbarrier_stepped_t *s)
{
    nicbarrier_bpf_client_close(&s->client);
    free(s);
}

static void bpf_stop(nicbarrier_stepped_t *s)
{
    nicbarrier_bpf_client_stop(&s->client);
}

/* ---- other processes ------------------------------------------------------------------------- */

static uint32_t bpf_share(const nicbarrier_stepped_t *s, void *record)
{
    memcpy(record, &s->share, sizeof(s->share));
    return sizeof(s->share);
}

static nicbarrier_stepped_t *bpf_attach(const void *record, uint32_t len,
                                        const nicbarrier_view_t **view_p)
{
    nicbarrier_stepped_t *s = calloc(1, sizeof(*s));
    if (s == NULL || len != sizeof(s->share)) {
        free(s);
        return NULL;
    }
    memcpy(&s->share, record, sizeof(s->share));
    s->share.interface[sizeof(s->share.interface) - 1] = '\0';
    if (nicbarrier_bpf_client_open(&s->client, &s->share) != 0) {
        free(s);
        return NULL;
    }
    *view_p = view_of(&s->client);
    return s;
}

const nicbarrier_stepper_t nicbarrier_stepper_bpf = {
    .name = "bpf",
    .install = bpf_install,
    .enter = bpf_enter,
    .take = bpf_take,
    .readdress = bpf_readdress,
    .snapshot = bpf_snapshot,
    .remove = bpf_remove,
    .stop = bpf_stop,
    .share = bpf_share,
    .attach = bpf_attach,
};
