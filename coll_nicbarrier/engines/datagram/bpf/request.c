/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What processes ask of the service; see request.h. */
#include "coll_nicbarrier/engines/datagram/bpf/request.h"

#include <stdbool.h>
#include <string.h>

static bool is_peer(const nicbarrier_bpf_peer_t *p, bool six)
{
    static const uint8_t zero[16];
    const size_t len = six ? 16 : 4;
    return p->port != 0 && p->zero == 0 && p->six == six && memcmp(p->ip, zero, len) != 0 &&
           memcmp(p->ip + len, zero, 16 - len) == 0;
}

/** Is it the message of that step of the group? */
static bool is_message(const nicbarrier_bpf_request_t *r, uint32_t k)
{
    nicbarrier_packet_t p;
    return nicbarrier_packet_decode(r->packet[k], NICBARRIER_PACKET_SIZE, &p) == NULL &&
           p.kind == NICBARRIER_PACKET_EPOCH && p.from_at == k && p.key == r->id.key;
}

bool nicbarrier_bpf_request_six(const nicbarrier_bpf_request_t *r)
{
    for (uint32_t k = 0; k < NICBARRIER_RULE_STEPS; k++)
        if (r->to[k].port != 0 || r->from[k].port != 0)
            return r->to[k].port != 0 ? r->to[k].six == 1 : r->from[k].six == 1;
    return false;
}

static const char *check_install(const nicbarrier_bpf_request_t *r)
{
    const nicbarrier_rule_t *rule = &r->rule;
    const bool six = nicbarrier_bpf_request_six(r);
    if (rule->nsteps == 0 || rule->nsteps > NICBARRIER_RULE_STEPS)
        return "a number of steps that cannot be";
    if (((rule->sends | rule->waits) >> (rule->nsteps - 1)) > 1 || r->drop > 1000)
        return "a step that is not there";
    for (uint32_t k = 0; k < rule->nsteps; k++) {
        if ((rule->sends >> k & 1) && (!is_peer(&r->to[k], six) || !is_message(r, k)))
            return "a step without a receiver, or without its message";
        if ((rule->waits >> k & 1) && !is_peer(&r->from[k], six))
            return "a step without a sender";
    }
    return NULL;
}

static const char *check_readdress(const nicbarrier_bpf_request_t *r)
{
    const uint32_t k = r->id.step;
    if (k >= NICBARRIER_RULE_STEPS)
        return "a step that is not there";
    if ((r->to[k].port != 0 && !is_peer(&r->to[k], r->to[k].six == 1)) ||
        (r->from[k].port != 0 && !is_peer(&r->from[k], r->from[k].six == 1)))
        return "an address that cannot be";
    return NULL;
}

const char *nicbarrier_bpf_request_wrong(const void *bytes, size_t len)
{
    const nicbarrier_bpf_request_t *r = bytes;
    if (len != sizeof(*r) || r->version != NICBARRIER_BPF_VERSION)
        return "another version of ompi-nic";
    if (r->order == 0 || r->order >= NICBARRIER_BPF_ORDERS)
        return "an order that is not known";
    if (r->order == NICBARRIER_BPF_READDRESS)
        return check_readdress(r);
    if (r->order == NICBARRIER_BPF_INSTALL && r->id.step != 0)
        return "a name that is not a group's";
    return r->order == NICBARRIER_BPF_INSTALL ? check_install(r) : NULL;
}
