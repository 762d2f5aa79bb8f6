/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What UCX can have of verbs where a process may lock only so much memory. Pure. */
#pragma once

#include <stdint.h>

/** Bytes that each device takes with UCX's own queues, and with small ones. */
#define ONIC_DEVICE_BYTES       (80ULL << 20)
#define ONIC_SMALL_DEVICE_BYTES (6ULL << 20)

/** Transfers by rendezvous under way at most, and as much again UCX keeps registered. */
#define ONIC_MEMORY_TRANSFERS 16

typedef enum onic_memory_queues {
    ONIC_MEMORY_OWN,   /**< UCX's own queues */
    ONIC_MEMORY_SMALL, /**< small ones */
    ONIC_MEMORY_NONE   /**< no use of these devices */
} onic_memory_queues_t;

typedef struct onic_memory_plan {
    onic_memory_queues_t queues;
    uint64_t rndv_max;   /**< most bytes of one rendezvous; UINT64_MAX without limit */
    uint64_t rcache_max; /**< most bytes that UCX may keep registered; 0 without limit */
} onic_memory_plan_t;

/** Where `bytes` may still be locked, UINT64_MAX without limit, and UCX may use so many devices. */
static inline onic_memory_plan_t onic_memory_plan(uint64_t bytes, unsigned devices)
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
    plan.rndv_max = left / 2 / ONIC_MEMORY_TRANSFERS;
    return plan;
}
