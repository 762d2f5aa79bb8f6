/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file How accumulates exclude each other on memory that several processes map. Each process
 *  derives this from the target's facts, which were exchanged when the window was made, so all
 *  agree.
 *
 *  Elements are updated under locks. Each target has NICSTRIDE_STRIPES of them; the address of an
 *  element's first byte selects one. Stripes are consecutive ranges of bytes, to which the locks
 *  are assigned in turn. Pure. */
#pragma once

#include <stdint.h>

#include "common/layout/layout.h"

/** The number of locks of a target, which is that of bits in a set of them. */
#define NICSTRIDE_STRIPES 64

/** The largest granularity that is honoured, bytes. */
#define NICSTRIDE_GRANULARITY_MAX (1u << 30)

/** The length of a stripe of a target with `bytes` of memory, as its log2. The program may have
 * asked for a lock for `granularity` bytes, up to NICSTRIDE_GRANULARITY_MAX; 0: it has not. */
uint8_t nicstride_stripe(uint64_t bytes, uint32_t granularity);

/** The same for memory that only its own process updates, which has one lock. */
#define NICSTRIDE_STRIPE_OF_ONE 63

/** A set of locks: bit i stands for lock i. */
typedef uint64_t nicstride_stripes_t;

/** The locks of the elements that begin in bytes [from, to) of the target's memory, from < to. */
static inline nicstride_stripes_t nicstride_stripes(uint8_t stripe, uint64_t from, uint64_t to)
{
    const uint64_t first = from >> stripe, last = (to - 1) >> stripe;

    if (first == last)
        return UINT64_C(1) << first % NICSTRIDE_STRIPES;
    if (last - first >= NICSTRIDE_STRIPES - 1)
        return ~UINT64_C(0);
    const uint64_t ones = (UINT64_C(1) << (last - first + 1)) - 1;
    const unsigned by = first % NICSTRIDE_STRIPES;
    return by == 0 ? ones : ones << by | ones >> (NICSTRIDE_STRIPES - by);
}

/** Finds a range [*from_p, *to_p) of bytes that covers `len` > 0 packed bytes of a layout from
 *  `pos` on: whole passes of its outermost level; without levels just these bytes, or all of a
 *  list. */
void nicstride_reach_of(const onic_layout_t *l, uint64_t pos, uint64_t len, int64_t *from_p,
                        int64_t *to_p);
