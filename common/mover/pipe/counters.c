/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "common/mover/pipe/counters.h"

#include <stdbool.h>

onic_mover_counters_t onic_mover_counters;

void onic_mover_count_buffers(unsigned in_use)
{
    unsigned long long most = __atomic_load_n(&onic_mover_counters.buffers, __ATOMIC_RELAXED);
    while (in_use > most &&
           !__atomic_compare_exchange_n(&onic_mover_counters.buffers, &most, in_use, true,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
}
