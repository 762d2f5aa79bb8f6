/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "osc_nicstride/protocol/discipline.h"

/* Stripes of less than a cache line would only share it. A window is divided among all stripes as
 * long as these stay small enough that several processes seldom meet. */
#define SHIFT_MIN 6
#define SHIFT_MAX 20

/** The exponent of the least power of two that is at least `bytes`. */
static unsigned log2_up(uint64_t bytes)
{
    return bytes <= 1 ? 0 : 64 - (unsigned)__builtin_clzll(bytes - 1);
}

static uint8_t clamp(unsigned shift, unsigned most)
{
    return (uint8_t)(shift < SHIFT_MIN ? SHIFT_MIN : shift > most ? most : shift);
}

uint8_t nicstride_stripe(uint64_t bytes, uint32_t granularity)
{
    return granularity == 0 ? clamp(log2_up(bytes / NICSTRIDE_STRIPES + 1), SHIFT_MAX)
                            : clamp(log2_up(granularity), 30);
}

void nicstride_reach_of(const onic_layout_t *l, uint64_t pos, uint64_t len, int64_t *from_p,
                        int64_t *to_p)
{
    onic_cursor_t first, last;
    int64_t low, high;
    uint32_t top = 0;

    if (l->nruns != 0) {
        *from_p = l->lb;
        *to_p = l->ub;
        return;
    }
    onic_cursor_init(&first, l, pos);
    onic_cursor_init(&last, l, pos + len - 1);
    for (uint32_t i = 0; i < l->nlevels; i++)
        if (first.index[i] != last.index[i])
            top = i + 1;
    if (top == 0) {
        *from_p = first.leaf + (int64_t)first.in_block;
        *to_p = last.leaf + (int64_t)last.in_block + 1;
        return;
    }
    /* The levels below the highest one that advances are covered in full. That one is between its
     * positions at both ends. */
    low = first.leaf;
    for (uint32_t i = 0; i + 1 < top; i++)
        low -= (int64_t)first.index[i] * l->level[i].stride;
    high = last.leaf;
    for (uint32_t i = 0; i + 1 < top; i++)
        high -= (int64_t)last.index[i] * l->level[i].stride;
    if (low > high) {
        const int64_t swap = low;

        low = high;
        high = swap;
    }
    for (uint32_t i = 0; i + 1 < top; i++) {
        const int64_t all = (int64_t)(l->level[i].count - 1) * l->level[i].stride;

        low += all < 0 ? all : 0;
        high += all > 0 ? all : 0;
    }
    *from_p = low;
    *to_p = high + (int64_t)l->block;
}
