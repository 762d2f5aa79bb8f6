/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "coll_nicbarrier/agree/sweep.h"

int32_t nicbarrier_child(int32_t rank, int32_t size, int k)
{
    const int64_t distance = (int64_t)1 << k;

    /* Those below the lowest bit of my number; of 0 all. */
    if (k >= NICBARRIER_CHILDREN_MAX || (rank & (2 * distance - 1)) != 0 || rank + distance >= size)
        return -1;
    return (int32_t)(rank + distance);
}

int32_t nicbarrier_parent(int32_t rank)
{
    return rank & (rank - 1);
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

void nicbarrier_combine(nicbarrier_summary_t *range, const nicbarrier_summary_t *next)
{
    range->flags |= next->flags;
    if (next->settings != range->settings)
        range->flags |= NICBARRIER_DIFFERS;
    if (next->job != range->job)
        range->flags |= NICBARRIER_JOBS;
    range->engine = range->engine > next->engine ? range->engine : next->engine;
    range->complainer = least(range->complainer, next->complainer);
    range->views += next->views;
    if (next->leaders > 0) {
        range->first = range->leaders > 0 ? range->first : next->first;
        range->last = next->last;
    }
    range->leaders += next->leaders;
    range->nodes += next->nodes;
    for (int i = 0; i < NICBARRIER_ENGINES_MAX; i++)
        range->score[i] = (uint8_t)least(range->score[i], next->score[i]);
}

nicbarrier_summary_t nicbarrier_answer_part(const nicbarrier_summary_t *answer,
                                            nicbarrier_span_t mine, const nicbarrier_span_t *child,
                                            int n, int k)
{
    nicbarrier_summary_t part = *answer;

    for (int i = -1; i < k; i++) {
        const nicbarrier_span_t span = i < 0 ? mine : child[i];
        part.index += span.leaders;
        part.last = span.leaders > 0 ? span.last : part.last;
    }
    for (int i = n - 1; i > k; i--)
        part.first = child[i].leaders > 0 ? child[i].first : part.first;
    return part;
}
