/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "common/model/table.h"

#include <math.h>

void onic_example(unsigned shape, unsigned size, onic_layout_t *l)
{
    const uint64_t bytes = (uint64_t)ONIC_SIZE_LEAST << size >> 1;
    /* For the shortest blocks an element of 8 bytes is taken. */
    const uint64_t block =
        shape == ONIC_SHAPES - 1 ? 8 : UINT64_C(16384) >> 2 * (shape > 0 ? shape - 1 : 0);

    (void)onic_layout_contig(l, 0, shape == 0 || block > bytes ? bytes : block);
    if (shape > 0 && block < bytes)
        (void)onic_layout_repeat(l, bytes / block, (int64_t)(2 * block));
}

onic_order_t onic_order(const double cost[ONIC_CHOICES + 1], unsigned last)
{
    onic_order_t order = 0;
    unsigned taken = 0;

    for (unsigned n = 0; n < ONIC_ORDERED; n++) {
        unsigned best = last;

        for (unsigned c = 1; c <= ONIC_CHOICES && n < ONIC_ORDERED - 1; c++)
            if ((taken >> c & 1) == 0 && !isinf(cost[c]) &&
                (cost[c] < cost[best] || (cost[c] == cost[best] && c < best)))
                best = c;
        order |= best << 4 * n;
        taken |= 1U << best;
        if (best == last)
            break;
    }
    return order;
}
