/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "osc_nicstride/methods/sieve.h"

/** Extent and data of the levels below `k`, and the number of levels that a cover may include. */
typedef struct spans {
    uint64_t extent[ONIC_LAYOUT_MAX_LEVELS + 1];
    uint64_t size[ONIC_LAYOUT_MAX_LEVELS + 1];
    unsigned levels; /* whole levels without a large gap */
} spans_t;

static void measure(const onic_layout_t *l, uint64_t gap_max, spans_t *s)
{
    s->extent[0] = s->size[0] = l->block;
    s->levels = 0;
    for (unsigned k = 0; k < l->nlevels; k++) {
        uint64_t step = onic_magnitude(l->level[k].stride);

        s->extent[k + 1] = s->extent[k] + step * (l->level[k].count - 1);
        s->size[k + 1] = s->size[k] * l->level[k].count;
        if (s->levels == k && (step <= s->extent[k] || step - s->extent[k] <= gap_max))
            s->levels = k + 1;
    }
}

/** The highest level of which one whole pass fits into a piece. */
static unsigned fitting_level(const spans_t *s, uint64_t piece)
{
    unsigned k = s->levels;

    while (k > 0 && s->extent[k] > piece)
        k--;
    return k;
}

/** The number of passes of level `k` that fit into a piece. */
static uint64_t fitting_passes(const onic_layout_t *l, const spans_t *s, unsigned k, uint64_t piece)
{
    uint64_t step = onic_magnitude(l->level[k].stride);

    if (k >= s->levels)
        return 1;
    return step == 0 ? l->level[k].count : (piece - s->extent[k]) / step + 1;
}

nicstride_cover_t nicstride_sieve_next(const onic_layout_t *l, uint64_t pos, uint64_t piece,
                                       uint64_t gap_max)
{
    nicstride_cover_t c;
    spans_t s;
    unsigned k;
    uint64_t unit, passes, rest, low = 0;
    int64_t first = l->offset;

    measure(l, gap_max, &s);
    k = fitting_level(&s, piece);
    /* From a position inside a pass or a block, the block is finished first. */
    while (k > 0 && pos % s.size[k] != 0)
        k--;
    unit = s.size[k];
    for (unsigned i = 0; i < l->nlevels; i++)
        first += (int64_t)(pos / s.size[i] % l->level[i].count) * l->level[i].stride;
    if (k == 0 && (pos % unit != 0 || s.extent[0] > piece)) {
        uint64_t in = pos % unit;

        c.lo = first + (int64_t)in;
        c.len = unit - in < piece ? unit - in : piece;
        c.bytes = c.len;
        return c;
    }
    if (k == l->nlevels) {
        passes = 1;
    } else {
        passes = fitting_passes(l, &s, k, piece);
        rest = l->level[k].count - pos / unit % l->level[k].count;
        if (passes > rest)
            passes = rest;
        if (l->level[k].stride < 0)
            low = onic_magnitude(l->level[k].stride) * (passes - 1);
    }
    for (unsigned i = 0; i < k; i++)
        if (l->level[i].stride < 0)
            low += onic_magnitude(l->level[i].stride) * (l->level[i].count - 1);
    c.lo = first - (int64_t)low;
    c.len = s.extent[k];
    if (k < l->nlevels)
        c.len += onic_magnitude(l->level[k].stride) * (passes - 1);
    c.bytes = unit * passes;
    return c;
}
