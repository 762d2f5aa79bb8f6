/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "common/pipeline/core/schedules.h"

#include <math.h>
#include <stdint.h>

const char *const onic_schedule_words[ONIC_SCHEDULES + 1] = {"best",     "superpipe", "optimal",
                                                             "measured", "constant",  NULL};

onic_chunks_t onic_schedule_chunks(onic_schedule_kind_t kind, const onic_link_t *link, double most)
{
    const double least = fmin(most, ONIC_PIPELINE_BLOCK);

    switch (kind) {
    case ONIC_SCHEDULE_CONSTANT:
        return (onic_chunks_t){.first = most, .ratio = 1, .least = most, .most = most};
    case ONIC_SCHEDULE_SUPERPIPE:
    case ONIC_SCHEDULE_OPTIMAL:
        return onic_superpipeline_chunks(link, least, most);
    default: {
        const double first = fmin(most, link->chunk);
        return (onic_chunks_t){
            .first = first, .ratio = fmax(1, link->growth), .least = first, .most = most};
    }
    }
}

uint32_t onic_schedule_block(const onic_link_t *link, uint64_t bytes)
{
    const double even = sqrt((double)bytes * link->gap * link->bnet);

    return (uint32_t)fmin(INT32_MAX, fmax(ONIC_PIPELINE_BLOCK, even)) / 64 * 64;
}

void onic_schedule_make(onic_schedule_t *s, const onic_schedule_choice_t *choice, uint64_t len,
                        uint32_t unit, uint32_t buffer, uint32_t block, bool handshake,
                        uint32_t size[ONIC_OPTIMAL_MAX])
{
    const onic_link_t *link = &choice->link;

    if (choice->kind == ONIC_SCHEDULE_OPTIMAL && size != NULL) {
        const unsigned n = onic_chunks_optimal(link, (double)len, unit, buffer - buffer % unit,
                                               handshake ? 2 * link->latency : 0,
                                               block > 0 ? block : INFINITY, size);
        onic_schedule_listed(s, size, n, unit, buffer);
        return;
    }
    /* If copying is slower than the link, chunks do not shrink. */
    const onic_chunks_t c = onic_schedule_chunks(choice->kind, link, buffer);
    onic_schedule_growing(s, c.first, fmax(1, c.ratio), unit, buffer);
}
