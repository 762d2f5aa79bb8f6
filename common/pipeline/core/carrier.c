/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Starts the machines of a transfer, for any carrier; counters. */
#include "common/pipeline/core/carrier.h"
#include "common/pipeline/core/counters.h"

#include <stdlib.h>

#define LINE 64

onic_pipeline_counters_t onic_pipeline_counters;

bool onic_transfer_start_sender(onic_transfer_t *t, const onic_schedule_choice_t *choice,
                                uint64_t buffers, uint32_t buffer_bytes, uint32_t block,
                                bool handshake)
{
    const onic_lease_t lease = {buffers, buffer_bytes};
    const uint32_t granule = t->end.granule > 1 ? t->end.granule : 1;
    const uint32_t line = buffer_bytes < LINE ? 1 : LINE;
    const uint32_t unit = granule > 1 && granule <= buffer_bytes ? granule : line;
    onic_schedule_t schedule;

    if (choice->kind == ONIC_SCHEDULE_OPTIMAL)
        t->sizes = malloc(ONIC_OPTIMAL_MAX * sizeof(*t->sizes));
    onic_schedule_make(&schedule, choice, t->end.len, unit, buffer_bytes, block, handshake,
                       t->sizes);
    onic_sender_init(&t->sender, t->end.len, &lease, &schedule, block, granule);
    return !t->sender.failed;
}

void onic_transfer_start_receiver(onic_transfer_t *t, uint64_t len, uint64_t buffers,
                                  uint32_t buffer_bytes)
{
    const onic_lease_t lease = {buffers, buffer_bytes};

    onic_receiver_init(&t->receiver, len, &lease);
}
