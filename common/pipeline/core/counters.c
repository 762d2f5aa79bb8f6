/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "common/pipeline/core/counters.h"

#include <stdbool.h>

onic_pipeline_counters_t onic_pipeline_counters;

void onic_pipeline_count_buffers(unsigned in_use)
{
    unsigned long long most = __atomic_load_n(&onic_pipeline_counters.buffers, __ATOMIC_RELAXED);
    while (in_use > most &&
           !__atomic_compare_exchange_n(&onic_pipeline_counters.buffers, &most, in_use, true,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
}
