/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Starts the sender's machine, for any carrier; counters. */
#include "common/pipeline/core/carrier.h"
#include "common/pipeline/core/counters.h"

#define LINE 64

onic_pipeline_counters_t onic_pipeline_counters;

void onic_transfer_start_sender(onic_transfer_t *t, const onic_schedule_choice_t *choice,
                                const onic_lease_t *lease, uint32_t block)
{
    const uint32_t granule = t->end.granule > 1 ? t->end.granule : 1;
    onic_schedule_t schedule;

    onic_schedule_make(&schedule, choice, granule > 1 ? granule : LINE, lease->buffer_bytes);
    onic_sender_init(&t->sender, t->end.len, lease, &schedule, block, granule);
}
