/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What remains of groups; see tombstone.h. */
#include "coll_nicbarrier/engines/datagram/tombstone.h"

void nicbarrier_tombstones_add(nicbarrier_tombstones_t *t, uint64_t key, uint64_t last)
{
    const uint64_t i = t->n++ % NICBARRIER_TOMBSTONES;

    t->ring[i].key = key;
    t->ring[i].last = last;
}

bool nicbarrier_tombstones_answer(const nicbarrier_tombstones_t *t, uint64_t key, uint64_t epoch,
                                  uint64_t *word_p)
{
    const uint64_t kept = t->n < NICBARRIER_TOMBSTONES ? t->n : NICBARRIER_TOMBSTONES;

    for (uint64_t i = 0; i < kept; i++) {
        if (t->ring[i].key == key) {
            *word_p = t->ring[i].last;
            /* With the failure bit it is more than any epoch. */
            return epoch <= t->ring[i].last;
        }
    }
    *word_p = epoch;
    return t->n > NICBARRIER_TOMBSTONES;
}
