/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "common/pipeline/core/schedules.h"

#include <math.h>
#include <stdint.h>

const char *const onic_schedule_words[ONIC_SCHEDULES + 1] = {"best", "superpipe", "measured",
                                                             "constant", NULL};

onic_chunks_t onic_schedule_chunks(onic_schedule_kind_t kind, const onic_link_t *link, double most)
{
    const double least = fmin(most, ONIC_PIPELINE_BLOCK);

    switch (kind) {
    case ONIC_SCHEDULE_CONSTANT:
        return (onic_chunks_t){.first = most, .ratio = 1, .least = most, .most = most};
    case ONIC_SCHEDULE_SUPERPIPE:
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

void onic_schedule_make(onic_schedule_t *s, const onic_schedule_choice_t *choice, uint32_t unit,
                        uint32_t buffer)
{
    const onic_chunks_t c = onic_schedule_chunks(choice->kind, &choice->link, buffer);

    /* If copying is slower than the link, chunks do not shrink. */
    onic_schedule_growing(s, c.first, fmax(1, c.ratio), unit, buffer);
}
