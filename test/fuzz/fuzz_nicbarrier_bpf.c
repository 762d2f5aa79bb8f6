/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What processes ask of the service of barriers in the kernel. What is accepted has what the
 *  service uses, and makes packets. */
#include <stdlib.h>
#include <string.h>

#include "coll_nicbarrier/engines/datagram/bpf/frame.h"
#include "coll_nicbarrier/engines/datagram/bpf/request.h"
#include "test/fuzz/fuzz.h"

static void use(const nicbarrier_bpf_request_t *r)
{
    const nicbarrier_bpf_end_t from = {.port = 1};
    FUZZ_CHECK(r->rule.nsteps >= 1 && r->rule.nsteps <= NICBARRIER_RULE_STEPS);
    for (uint32_t k = 0; k < NICBARRIER_RULE_STEPS; k++) {
        nicbarrier_bpf_end_t to = {.port = r->to[k].port};
        nicbarrier_bpf_packet_t p;
        if (r->rule.sends >> k & 1) {
            FUZZ_CHECK(k < r->rule.nsteps && to.port != 0);
            memcpy(to.ip, r->to[k].ip, sizeof(to.ip));
            nicbarrier_bpf_frame(&p, r->to[k].six, &from, &to, r->packet[k]);
            FUZZ_CHECK(p.len <= sizeof(p.bytes));
        }
    }
    FUZZ_CHECK(r->rule.waits >> (r->rule.nsteps - 1) <= 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static nicbarrier_bpf_request_t r;
    static const nicbarrier_bpf_request_t zero;
    r = zero;
    memcpy(&r, data, size < sizeof(r) ? size : sizeof(r));
    /* Most inputs are short: the rest is as it would be. */
    r.version = NICBARRIER_BPF_VERSION;
    if (nicbarrier_bpf_request_wrong(&r, sizeof(r)) != NULL)
        return -1;
    if (r.order == NICBARRIER_BPF_INSTALL)
        use(&r);
    return 0;
}

/** A member of two, whose steps wait for one another. */
size_t onic_fuzz_seed(unsigned i, uint8_t *buf, size_t cap)
{
    nicbarrier_bpf_request_t r = {.order = i + 1};
    if (i + 1 >= NICBARRIER_BPF_ORDERS || cap < sizeof(r))
        return 0;
    const nicbarrier_bpf_peer_t peer = {.ip = {10, 1}, .port = 7};
    const nicbarrier_packet_t p = {.kind = NICBARRIER_PACKET_EPOCH};
    nicbarrier_rule_init(&r.rule, 1, 1, 1);
    nicbarrier_packet_encode(&p, r.packet[0]);
    r.to[0] = r.from[0] = peer;
    memcpy(buf, &r, sizeof(r));
    return sizeof(r);
}
