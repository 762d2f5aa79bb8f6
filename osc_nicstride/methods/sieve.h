/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Sieving: reading the extent that covers many blocks at once and gathering them here, where
 *  each block by itself would cost more than the bytes between the blocks. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/layout/layout.h"

/** One piece to read: `bytes` packed bytes, all inside [lo, lo + len). */
typedef struct nicstride_cover {
    int64_t lo;
    uint64_t len;
    uint64_t bytes;
} nicstride_cover_t;

/** The cover of the next piece of a stride-form layout at packed position `pos` (below its size):
 *  as many whole passes as fit in `piece` bytes (at least 1), without reading gaps of more than
 *  `gap_max` bytes at once. Where not even one block fits, part of a block. */
nicstride_cover_t nicstride_sieve_next(const onic_layout_t *l, uint64_t pos, uint64_t piece,
                                       uint64_t gap_max);

/** Most bytes read for one that is wanted. */
#define NICSTRIDE_SIEVE_SPARSE 4

/** A gap up to this many bytes is cheaper to read than to skip by another system call. */
#define NICSTRIDE_SIEVE_GAP 4096

/** True if such a layout can be read so: what is too sparse costs more to read than any other
 * method. */
static inline bool nicstride_sieve_takes(const onic_layout_t *l)
{
    return l->nruns == 0 && l->size > 0 &&
           (uint64_t)(l->ub - l->lb) / NICSTRIDE_SIEVE_SPARSE <= l->size;
}
