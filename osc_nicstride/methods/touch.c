/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "osc_nicstride/methods/touch.h"

#define PAGE 4096
/** Pages of a piece that must be stored to: a fault by a load costs as much as some by a store. */
#define PAGES_MIN 4

/** Pages that a layout in stride form has bytes in, about. */
static uint64_t count_pages(const onic_layout_t *l)
{
    uint64_t span = l->block, pages = 1 + l->block / PAGE;

    for (uint32_t i = 0; i < l->nlevels; i++) {
        const uint64_t stride = onic_magnitude(l->level[i].stride);

        if (stride >= PAGE) {
            pages *= l->level[i].count;
        } else {
            span += (l->level[i].count - 1) * stride;
            pages = span / PAGE > pages ? span / PAGE : pages;
        }
    }
    return pages;
}

bool nicstride_touch_pays(const onic_layout_t *l)
{
    const uint64_t pieces = (uint64_t)(l->ub - l->lb) / NICSTRIDE_AROUND;

    return l->nruns == 0 && l->nlevels > 0 && pieces > 0 && count_pages(l) / PAGES_MIN >= pieces;
}

uint64_t nicstride_touch_parts(uint64_t size, uint64_t from, uint64_t to)
{
    const uint64_t part = size / 64 + 1;
    const uint64_t first = from / part, last = (to - 1) / part;

    return UINT64_MAX << first & UINT64_MAX >> (63 - last);
}
