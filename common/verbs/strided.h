/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file A layout as one strided memory key ("interleaved" in mlx5dv.h): the adapter then takes the
 * bytes of the layout, in their order, for the bytes of the key from 0 on, so that one request
 * moves all of them. Pure.
 *
 *  A key has some pieces, which repeat all together, each with a stride of its own. Lengths and
 *  strides of pieces are numbers of 16 bits, without a sign. So a layout fits whose outermost level
 *  repeats upwards, by 65535 bytes at most and without overlap, what is inside it: few blocks. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/layout/layout.h"

/** Most pieces of a key here: with its head they make 128 bytes of a request. */
#define ONIC_STRIDED_PIECES 7

typedef struct onic_strided_piece {
    int64_t offset; /**< as in the layout */
    uint32_t bytes; /**< 1 .. 65535 */
    uint32_t skip; /**< from its end to where it begins the next time; with `bytes` 65535 at most */
} onic_strided_piece_t;

typedef struct onic_strided {
    uint32_t repeats; /**< at least 2 */
    uint16_t n;       /**< pieces, at least 1 */
    onic_strided_piece_t piece[ONIC_STRIDED_PIECES];
} onic_strided_t;

/** Where the i-th block of the levels below the outermost one begins. */
static inline int64_t onic_strided_offset(const onic_layout_t *l, uint64_t i)
{
    int64_t offset = l->offset;

    for (uint32_t k = 0; k + 1 < l->nlevels; k++) {
        offset += (int64_t)(i % l->level[k].count) * l->level[k].stride;
        i /= l->level[k].count;
    }
    return offset;
}

/** Describes a layout; false where it does not fit, and `*d` is undefined then. */
static inline bool onic_strided_describe(onic_strided_t *d, const onic_layout_t *l)
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
        d->piece[i] = (onic_strided_piece_t){onic_strided_offset(l, i), (uint32_t)l->block,
                                             (uint32_t)((uint64_t)outer->stride - l->block)};
    return true;
}
