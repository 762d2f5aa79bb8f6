/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Counters of this process's pipeline, for all components together. Written
 *  with the transport lock held, read at any time. */
#pragma once

#include "common/support/export.h"

typedef struct onic_pipeline_counters {
    unsigned long long chunks;  /**< packed */
    unsigned long long refused; /**< leases that were not available at once */
    unsigned long long buffers; /**< of this process's receive pool: most in use at a time */
} onic_pipeline_counters_t;

ONIC_EXPORT extern onic_pipeline_counters_t onic_pipeline_counters;

/** Notes that this many buffers of this process's receive pool are in use. */
static inline void onic_pipeline_count_buffers(unsigned in_use)
{
    if (in_use > onic_pipeline_counters.buffers)
        onic_pipeline_counters.buffers = in_use;
}
