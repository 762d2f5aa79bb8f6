/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "common/verbs/strided.h"

/** Where the i-th block of the levels below the outermost one begins. */
static int64_t offset_of(const onic_layout_t *l, uint64_t i)
{
    int64_t offset = l->offset;

    for (uint32_t k = 0; k + 1 < l->nlevels; k++) {
        offset += (int64_t)(i % l->level[k].count) * l->level[k].stride;
        i /= l->level[k].count;
    }
    return offset;
}

bool onic_strided_describe(onic_strided_t *d, const onic_layout_t *l)
{
    uint64_t n = 1;

    if (l->nruns > 0 || l->nlevels == 0)
        return false;
    for (uint32_t k = 0; k + 1 < l->nlevels; k++) {
        if (l->level[k].count > ONIC_STRIDED_PIECES / n)
            return false;
        n *= l->level[k].count;
    }
    const onic_stride_t *outer = &l->level[l->nlevels - 1];

    if (outer->stride < 0 || outer->stride > UINT16_MAX || l->block > (uint64_t)outer->stride ||
        outer->count > UINT32_MAX)
        return false;
    d->repeats = (uint32_t)outer->count;
    d->n = (uint16_t)n;
    for (uint64_t i = 0; i < n; i++)
        d->piece[i] = (onic_strided_piece_t){offset_of(l, i), (uint32_t)l->block,
                                             (uint32_t)((uint64_t)outer->stride - l->block)};
    return true;
}
