/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Where the parts of a node's processes lie in the memory that they share. Parts that all
 *  begin at a page fall into the same sets of the caches, and so do the columns that a stencil code
 *  copies from one to another where its rows have a power of two of bytes. Parts that begin some
 *  cache lines apart make such a copy about twice as fast. Pure. */
#ifndef NICSTRIDE_PLACE_H
#define NICSTRIDE_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NICSTRIDE_LINE 64

/** How the parts of a window lie. */
typedef enum nicstride_parts {
    NICSTRIDE_PARTS_SHIFTED,   /**< each on pages of its own, at a cache line of its own */
    NICSTRIDE_PARTS_ON_PAGES,  /**< each from the begin of a page */
    NICSTRIDE_PARTS_CONTIGUOUS /**< one behind another */
} nicstride_parts_t;

/** Bytes of a part that lie before it in its first page: an odd number of cache lines, another one
 *  for each of 32 processes in a row, and some lines off that of the neighbours. */
size_t nicstride_shift(nicstride_parts_t parts, int index);

typedef struct nicstride_part {
    uint64_t from;
    uint64_t to; /**< where the next one may begin */
} nicstride_part_t;

/** The part of process `index` of the node, of `size` bytes; the one before has ended `at`. */
nicstride_part_t nicstride_place(nicstride_parts_t parts, size_t page, uint64_t at, int index,
                                 uint64_t size);

/** Does an info value, a power of two, ask for memory aligned to more than a cache line? */
bool nicstride_wants_pages(const char *alignment);

#endif
