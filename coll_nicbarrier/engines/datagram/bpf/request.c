/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Requests of processes to the service; see request.h. */
#include "coll_nicbarrier/engines/datagram/bpf/request.h"

#include <stdbool.h>
#include <string.h>

static bool is_peer(const nicbarrier_bpf_peer_t *p, bool six)
{
    static const uint8_t zero[16];
    const size_t len = six ? 16 : 4;
    return p->port != 0 && p->zero == 0 && memcmp(p->ip, zero, len) != 0 &&
           memcmp(p->ip + len, zero, 16 - len) == 0;
}

static const char *check_group(const nicbarrier_bpf_request_t *r)
{
    if (r->nsteps == 0 || r->nsteps > NICBARRIER_RULE_STEPS || r->number >= r->nsteps)
        return "a number of steps that cannot be";
    if (r->id.zero != 0 || r->six > 1 || r->drop > 1000)
        return "a number that cannot be";
    for (uint32_t k = 0; k < r->nsteps; k++)
        if ((r->step[k].send_to != NICBARRIER_NOBODY && !is_peer(&r->to[k], r->six == 1)) ||
            (r->step[k].wait_for != NICBARRIER_NOBODY && !is_peer(&r->from[k], r->six == 1)))
            return "a step without its partner";
    return NULL;
}

const char *nicbarrier_bpf_request_wrong(const void *bytes, size_t len)
{
    const nicbarrier_bpf_request_t *r = bytes;
    if (len != sizeof(*r) || r->version != NICBARRIER_BPF_VERSION)
        return "another version of ompi-nic";
    if (r->order == 0 || r->order >= NICBARRIER_BPF_ORDERS)
        return "an order that is not known";
    return r->order == NICBARRIER_BPF_INSTALL || r->order == NICBARRIER_BPF_READDRESS
               ? check_group(r)
               : NULL;
}
