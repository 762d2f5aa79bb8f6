/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Where the parts of a node's processes lie in their shared memory. If all parts begin at a
 *  page, they fall into the same cache sets, and so do the columns that a stencil code copies
 *  between them if the size of its rows is a power of two. Such a copy is about twice as fast if
 *  the parts begin some cache lines apart. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define NICSTRIDE_LINE 64

/** How the parts of a window lie. */
typedef enum nicstride_parts {
    NICSTRIDE_PARTS_SHIFTED, /**< each on its own pages, shifted by its own number of cache lines */
    NICSTRIDE_PARTS_ON_PAGES,  /**< each at the beginning of a page */
    NICSTRIDE_PARTS_CONTIGUOUS /**< one behind another */
} nicstride_parts_t;

/** The offset of a part in its first page, in bytes. It is an odd number of cache lines; it differs
 *  between 32 consecutive processes because the factor is odd; and it is 6 to 26 lines from the
 *  offsets of the neighbours and their neighbours. */
static inline size_t nicstride_shift(nicstride_parts_t parts, int index)
{
    return parts == NICSTRIDE_PARTS_SHIFTED ? NICSTRIDE_LINE * (2 * ((unsigned)index * 13 % 32) + 1)
                                            : 0;
}

typedef struct nicstride_part {
    uint64_t from;
    uint64_t to; /**< where the next one may begin */
} nicstride_part_t;

/** The part of process `index` of the node, of `size` bytes; the previous part ends `at`. */
static inline nicstride_part_t nicstride_place(nicstride_parts_t parts, size_t page, uint64_t at,
                                               int index, uint64_t size)
{
    const uint64_t from = size > 0 ? at + nicstride_shift(parts, index) : at;

    if (parts == NICSTRIDE_PARTS_CONTIGUOUS)
        return (nicstride_part_t){from, from + size};
    return (nicstride_part_t){from, (from + size + page - 1) / page * page};
}

/** True if an info value, a power of two, asks for memory aligned to more than a cache line. */
static inline bool nicstride_wants_pages(const char *alignment)
{
    char *end;
    const unsigned long long n = strtoull(alignment, &end, 10);

    return *end == '\0' && n > NICSTRIDE_LINE && (n & (n - 1)) == 0;
}

/* ---- tables -------------------------------------------------------------------------------------
 *
 * What a window exchanges to be made. */

/** What each rank sends the others about its part of the window, as each node keeps it once in
 *  shared memory. No padding. */
typedef struct nicstride_rank_info {
    uint64_t size; /**< bytes; 0 for dynamic windows */
    uint64_t name; /**< of its process (common/transport/peer.h) */
    uint32_t disp_unit;
    uint32_t win;         /**< the rank's name for the window */
    uint32_t align;       /**< the lowest bits of its memory's address, below NICSTRIDE_LINE */
    uint32_t granularity; /**< bytes that an accumulate locks at once, as the program asked for this
                             rank's memory (protocol/discipline.h); 0: not given */
} nicstride_rank_info_t;
