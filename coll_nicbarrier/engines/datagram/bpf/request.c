/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Requests of processes to the service; see request.h. */
#include "coll_nicbarrier/engines/datagram/bpf/request.h"

const char *nicbarrier_bpf_request_wrong(const void *bytes, size_t len)
{
    const nicbarrier_bpf_request_t *r = bytes;
    if (len != sizeof(*r) || r->version != NICBARRIER_BPF_VERSION)
        return "another version of ompi-nic";
    if (r->nsteps == 0 || r->nsteps > NICBARRIER_RULE_STEPS ||
        (r->sends | r->waits) >> r->nsteps != 0)
        return "a number of steps that cannot be";
    return r->id.zero != 0 || r->drop > 1000 ? "a number that cannot be" : NULL;
}
