/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file How accumulates exclude each other on memory that several processes map. Each process
 *  derives it from what the target has said when the window was made, so all agree.
 *
 *  Elements are updated under locks. There are NICSTRIDE_STRIPES of them for each target; which one
 *  it is depends on the address of the element's first byte. Stripes are consecutive bytes, and
 * take turns in having each lock. Where the program wishes it aligned elements are updated by the
 *  processor's atomics instead: a counter takes 0.1 us then, and 0.19 under a lock, but 16 KiB take
 *  ten times as long. Which way it is depends on the element's type and address alone. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/layout/layout.h"

/** Locks of a target: as many as bits of a set of them. */
#define NICSTRIDE_STRIPES 64

/** The largest wish that counts, bytes. */
#define NICSTRIDE_GRANULARITY_MAX (1u << 30)

typedef struct nicstride_discipline {
    uint8_t shift; /**< log2 of the bytes of a stripe */
    bool atomics;  /**< aligned elements of up to 8 bytes go by atomics */
} nicstride_discipline_t;

/** The discipline of a target that has `bytes` of memory and has asked for locks of `granularity`
 *  bytes each: 0: no wish; up to 8: single elements; else up to NICSTRIDE_GRANULARITY_MAX. */
nicstride_discipline_t nicstride_discipline(uint64_t bytes, uint32_t granularity);

/** That of memory that only its own process updates: one lock. */
static inline nicstride_discipline_t nicstride_discipline_of_one(void)
{
    return (nicstride_discipline_t){.shift = 63};
}

/** True if aligned elements of `size` bytes, `extent` apart, go by atomics. */
static inline bool nicstride_by_atomics(nicstride_discipline_t d, uint64_t size, uint64_t extent)
{
    return d.atomics && size == extent && size <= 8 && (size & (size - 1)) == 0;
}

/** A set of locks: bit i is that of lock i. */
typedef uint64_t nicstride_stripes_t;

/** The locks of the elements that begin in bytes [from, to) of the target's memory, from < to. */
static inline nicstride_stripes_t nicstride_stripes(nicstride_discipline_t d, uint64_t from,
                                                    uint64_t to)
{
    const uint64_t first = from >> d.shift, last = (to - 1) >> d.shift;

    if (first == last)
        return UINT64_C(1) << first % NICSTRIDE_STRIPES;
    if (last - first >= NICSTRIDE_STRIPES - 1)
        return ~UINT64_C(0);
    const uint64_t ones = (UINT64_C(1) << (last - first + 1)) - 1;
    const unsigned by = first % NICSTRIDE_STRIPES;
    return by == 0 ? ones : ones << by | ones >> (NICSTRIDE_STRIPES - by);
}

/** Bytes [*from_p, *to_p) that cover `len` > 0 packed bytes of a layout from `pos` on: no more than
 *  all that the layout covers, and little more than needed where it is regular. */
void nicstride_reach_of(const onic_layout_t *l, uint64_t pos, uint64_t len, int64_t *from_p,
                        int64_t *to_p);
