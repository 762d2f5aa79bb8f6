/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What processes ask of the service of barriers in the kernel. What is accepted is in the
 *  ranges that the service and the programs rely on. */
#include <stdlib.h>
#include <string.h>

#include "coll_nicbarrier/engines/datagram/bpf/request.h"
#include "test/fuzz/fuzz.h"

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
    FUZZ_CHECK(r.nsteps >= 1 && r.nsteps <= NICBARRIER_RULE_STEPS && r.drop <= 1000);
    FUZZ_CHECK((r.sends | r.waits) < UINT64_C(1) << r.nsteps);
    return 0;
}

/** A member of two, whose steps wait for one another. */
size_t onic_fuzz_seed(unsigned i, uint8_t *buf, size_t cap)
{
    const nicbarrier_bpf_request_t r = {.nsteps = 1, .sends = 1, .waits = 1};
    if (i > 0 || cap < sizeof(r))
        return 0;
    memcpy(buf, &r, sizeof(r));
    return sizeof(r);
}
