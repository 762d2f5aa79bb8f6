/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Sieving: reads the range that covers many blocks at once and gathers them here, if reading
 *  each block by itself would cost more than reading the bytes between them. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/layout/layout.h"

/** One piece to read: `bytes` packed bytes, all in [lo, lo + len). */
typedef struct nicstride_cover {
    int64_t lo;
    uint64_t len;
    uint64_t bytes;
} nicstride_cover_t;

/** The cover of the next piece at the cursor, which is not at the end: as many blocks as fit into
 *  `piece` (at least 1) bytes, without gaps longer than `gap_max` bytes, at most INT64_MAX. If not
 *  even one block fits, it covers part of a block. */
nicstride_cover_t nicstride_sieve_next(const onic_cursor_t *at, uint64_t piece, uint64_t gap_max);

/** The most bytes read per wanted byte. */
#define NICSTRIDE_SIEVE_SPARSE 4

/** Gaps of up to this many bytes are cheaper to read than to skip by another system call. */
#define NICSTRIDE_SIEVE_GAP 4096

/** True if such a layout can be sieved: reading a layout that is too sparse costs more than any
 *  other method. */
static inline bool nicstride_sieve_takes(const onic_layout_t *l)
{
    return l->nruns == 0 && l->size > 0 &&
           (uint64_t)(l->ub - l->lb) / NICSTRIDE_SIEVE_SPARSE <= l->size;
}
