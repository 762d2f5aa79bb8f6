/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Fences (ARMCI paper, figure 12): a process asks the servers of all others whether its data
 * has arrived, several at a time. Nanoseconds. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef enum sim_fence_order {
    SIM_IN_ORDER, /**< process 0 first */
    SIM_RANDOM    /**< each process in its own order */
} sim_fence_order_t;

typedef struct sim_fence {
    unsigned processes;   /**< at least 2 */
    unsigned callers;     /**< number of processes that call, the first ones */
    unsigned outstanding; /**< most pending questions of a process, at least 1 */
    sim_fence_order_t order;
    double overhead; /**< the caller's time for a question, and for an answer */
    double latency;
    double server; /**< for each question */
    uint64_t seed;
} sim_fence_t;

/** Returns the time until the last caller has all answers. */
double sim_fence(const sim_fence_t *f);
