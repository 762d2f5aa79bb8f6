/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "coll_nicbarrier/agree/ring.h"

#include "coll_nicbarrier/agree/message.h"

int nicbarrier_fingers(int32_t n)
{
    int k = 0;

    while ((int64_t)1 << k < n)
        k++;
    return k;
}

uint32_t nicbarrier_ring_rank(const nicbarrier_ring_t *ring, int32_t index)
{
    const int64_t above = ((int64_t)index - ring->me + ring->n) % ring->n;
    const int fingers = nicbarrier_fingers(ring->n);

    for (int k = 0; k < fingers; k++) {
        if (above == (int64_t)1 << k)
            return ring->up[k];
        if (ring->n - above == (int64_t)1 << k)
            return ring->down[k];
    }
    return NICBARRIER_NO_RANK;
}
