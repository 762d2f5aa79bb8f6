/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Where the parts of a node's processes lie in the memory that they share. Parts that all
 *  begin at a page fall into the same sets of the caches, and so do the columns that a stencil code
 *  copies from one to another where its rows have a power of two of bytes. Parts that begin some
 *  cache lines apart make such a copy about twice as fast. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define NICSTRIDE_LINE 64

/** How the parts of a window lie. */
typedef enum nicstride_parts {
    NICSTRIDE_PARTS_SHIFTED,   /**< each on pages of its own, at a cache line of its own */
    NICSTRIDE_PARTS_ON_PAGES,  /**< each from the begin of a page */
    NICSTRIDE_PARTS_CONTIGUOUS /**< one behind another */
} nicstride_parts_t;

/** Bytes of a part that lie before it in its first page: an odd number of cache lines, another one
 *  for each of 32 processes in a row, as the factor is odd, and 6 to 26 lines off those of the
 *  neighbours and theirs. */
static inline size_t nicstride_shift(nicstride_parts_t parts, int index)
{
    return parts == NICSTRIDE_PARTS_SHIFTED ? NICSTRIDE_LINE * (2 * ((unsigned)index * 13 % 32) + 1)
                                            : 0;
}

typedef struct nicstride_part {
    uint64_t from;
    uint64_t to; /**< where the next one may begin */
} nicstride_part_t;

/** The part of process `index` of the node, of `size` bytes; the one before has ended `at`. */
static inline nicstride_part_t nicstride_place(nicstride_parts_t parts, size_t page, uint64_t at,
                                               int index, uint64_t size)
{
    const uint64_t from = size > 0 ? at + nicstride_shift(parts, index) : at;

    if (parts == NICSTRIDE_PARTS_CONTIGUOUS)
        return (nicstride_part_t){from, from + size};
    return (nicstride_part_t){from, (from + size + page - 1) / page * page};
}

/** Does an info value, a power of two, ask for memory aligned to more than a cache line? */
static inline bool nicstride_wants_pages(const char *alignment)
{
    char *end;
    const unsigned long long n = strtoull(alignment, &end, 10);

    return *end == '\0' && n > NICSTRIDE_LINE && (n & (n - 1)) == 0;
}

/* ---- tables -------------------------------------------------------------------------------------
 *
 * What a window keeps by the number of its ranks, and what making it sends. What all ranks have
 * sent alike is kept once; what differs once for each node, in shared memory. */

/** What is kept of what each rank sends the others about its part of the window. No gaps. */
typedef struct nicstride_rank_info {
    uint64_t size; /**< bytes; 0 for dynamic windows */
    uint32_t disp_unit;
    uint32_t win;         /**< its name for the window */
    uint32_t align;       /**< the last bits of its memory's address, below NICSTRIDE_LINE */
    uint32_t granularity; /**< bytes that an accumulate locks at once, as the program has asked for
                               this rank's memory (protocol/discipline.h); 0: no wish */
} nicstride_rank_info_t;

/** Which parts of that must be kept for each rank. */
typedef struct nicstride_per_rank {
    bool rows;  /**< nicstride_rank_info_t: ranks have sent different things */
    bool names; /**< the ranks are not processes of one job that follow one another */
} nicstride_per_rank_t;

/** Bytes of that, for each node. */
static inline size_t nicstride_per_rank_bytes(const nicstride_per_rank_t *kept, size_t ranks)
{
    return ranks * (kept->rows * sizeof(nicstride_rank_info_t) + kept->names * sizeof(uint64_t));
}

/** Bytes that each process keeps for each rank: where its peer is, and its state in the epoch. */
static inline size_t nicstride_rank_bytes(size_t ranks)
{
    return ranks * (sizeof(void *) + sizeof(uint8_t));
}

/** The same for each node: its first rank. */
static inline size_t nicstride_node_bytes(size_t nodes)
{
    return nodes * sizeof(int);
}
