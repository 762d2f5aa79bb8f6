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
    static const unsigned char payload[NICBARRIER_PACKET_SIZE];
    const nicbarrier_bpf_end_t from = {.port = 1};
    FUZZ_CHECK(r->nsteps >= 1 && r->nsteps <= NICBARRIER_RULE_STEPS && r->number < r->nsteps);
    for (uint32_t k = 0; k < r->nsteps; k++) {
        nicbarrier_bpf_end_t to = {.port = r->to[k].port};
        nicbarrier_bpf_packet_t p;
        if (r->step[k].send_to == NICBARRIER_NOBODY)
            continue;
        FUZZ_CHECK(to.port != 0);
        memcpy(to.ip, r->to[k].ip, sizeof(to.ip));
        nicbarrier_bpf_frame(&p, r->six, &from, &to, payload);
        FUZZ_CHECK(p.len <= sizeof(p.bytes));
    }
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
    if (r.order == NICBARRIER_BPF_INSTALL || r.order == NICBARRIER_BPF_READDRESS)
        use(&r);
    return 0;
}

/** A member of two, whose steps wait for one another. */
size_t onic_fuzz_seed(unsigned i, uint8_t *buf, size_t cap)
{
    nicbarrier_bpf_request_t r = {.order = i + 1, .nsteps = 1, .step = {{1, 1, 0, 0}}};
    if (i + 1 >= NICBARRIER_BPF_ORDERS || cap < sizeof(r))
        return 0;
    const nicbarrier_bpf_peer_t peer = {.ip = {10, 1}, .port = 7};
    r.to[0] = r.from[0] = peer;
    memcpy(buf, &r, sizeof(r));
    return sizeof(r);
}
