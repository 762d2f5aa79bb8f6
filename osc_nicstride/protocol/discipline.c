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
    const onic_stride_t *outer = l->nlevels > 0 ? &l->level[l->nlevels - 1] : NULL;
    const bool regular = l->nruns == 0;

    *from_p = regular && outer == NULL ? l->offset + (int64_t)pos : l->lb;
    *to_p = regular && outer == NULL ? *from_p + (int64_t)len : l->ub;
    if (outer == NULL)
        return;
    /* The passes of the outermost level that the bytes begin and end in, and those between. */
    const uint64_t pass = l->size / outer->count;
    const int64_t before = (int64_t)(pos / pass) * outer->stride,
                  behind = (int64_t)(outer->count - 1 - (pos + len - 1) / pass) * outer->stride;

    *from_p += outer->stride > 0 ? before : -behind;
    *to_p -= outer->stride > 0 ? behind : -before;
}
