/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Tables of choices: for each kind of transfer, by shape and size, the possible ways,
 * cheapest first. A cell is made when it is first needed, from costs that do not change, so the
 * same numbers always give the same choice; later it is read by an index.
 *
 *  Choices are numbers from 1 to ONIC_CHOICES. Pure. */
#pragma once

#include <stdint.h>

#include "common/layout/layout.h"
#include "common/support/export.h"

#define ONIC_CHOICES 9

/** Contiguous, and blocks of at least 16384, 4096, 1024, 256, 64, 16, 1 bytes. */
#define ONIC_SHAPES 8
/** Sizes below ONIC_SIZE_LEAST bytes are one class, powers of two from there on; the last class has
 *  all greater ones. */
#define ONIC_SIZES      18
#define ONIC_SIZE_LEAST 128

/** The shape of `bytes` in pieces of `block` bytes on average; both are positive. */
static inline unsigned onic_shape(uint64_t block, uint64_t bytes)
{
    uint64_t least = 16384;
    unsigned shape = 1;

    if (block >= bytes)
        return 0;
    for (; shape < ONIC_SHAPES - 1 && block < least; shape++)
        least /= 4;
    return shape;
}

/** The class of a size. */
static inline unsigned onic_size(uint64_t bytes)
{
    const uint64_t units = bytes / ONIC_SIZE_LEAST;
    const unsigned order = units > 0 ? 64U - (unsigned)__builtin_clzll(units) : 0;

    return order < ONIC_SIZES ? order : ONIC_SIZES - 1;
}

/** An example for all transfers of a shape and size: the smallest of them, since programs often use
 *  powers of two, in every other block of memory. Half of ONIC_SIZE_LEAST stands for smaller sizes.
 */
ONIC_EXPORT void onic_example(unsigned shape, unsigned size, onic_layout_t *l);

/** Choices, cheapest first, four bits each, from the lowest on; at most ONIC_ORDERED, then 0.
 */
typedef uint32_t onic_order_t;
#define ONIC_ORDERED 8

/** The choices in the order of their costs, on a tie the lower number first. cost[0] is ignored,
 *  and choices of infinite cost are left out. The order ends with `last`, which is always possible;
 *  choices that are dearer or for which there is no room are left out. */
ONIC_EXPORT onic_order_t onic_order(const double cost[ONIC_CHOICES + 1], unsigned last);

/** Takes out the first choice; 0 if there is none. */
static inline unsigned onic_order_take(onic_order_t *order)
{
    const unsigned first = *order & 15U;

    *order >>= 4;
    return first;
}
