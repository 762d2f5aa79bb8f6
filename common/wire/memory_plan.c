/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "common/wire/memory_plan.h"

/** Transfers by rendezvous under way at most, and as much again UCX keeps registered. */
#define TRANSFERS 16

onic_memory_plan_t onic_memory_plan(uint64_t bytes, unsigned devices)
{
    onic_memory_plan_t plan = {ONIC_MEMORY_OWN, UINT64_MAX, 0};

    if (bytes == UINT64_MAX || devices == 0)
        return plan;
    if (bytes < devices * ONIC_DEVICE_BYTES) {
        plan.queues =
            bytes < devices * ONIC_SMALL_DEVICE_BYTES ? ONIC_MEMORY_NONE : ONIC_MEMORY_SMALL;
        /* Without the devices there is nothing to register for a rendezvous. */
        plan.rndv_max = plan.queues == ONIC_MEMORY_NONE ? UINT64_MAX : 0;
        return plan;
    }
    const uint64_t left = bytes - devices * ONIC_DEVICE_BYTES;
    plan.rcache_max = left / 2 + 1; /* 0 would be no limit */
    plan.rndv_max = left / 2 / TRANSFERS;
    return plan;
}
