/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Records of freed groups; see freed.h. */
#include "coll_nicbarrier/engines/datagram/freed.h"

void nicbarrier_freed_add(nicbarrier_freed_t *f, uint64_t key, uint64_t word)
{
    const uint64_t i = f->n++ % NICBARRIER_FREED_MAX;

    f->ring[i].key = key;
    f->ring[i].word = word;
}

bool nicbarrier_freed_answer(const nicbarrier_freed_t *f, uint64_t key, uint64_t epoch,
                             uint64_t *word_p)
{
    const uint64_t known = f->n < NICBARRIER_FREED_MAX ? f->n : NICBARRIER_FREED_MAX;

    for (uint64_t i = 0; i < known; i++) {
        if (f->ring[i].key == key) {
            *word_p = f->ring[i].word;
            /* With the failure bit it is more than any epoch. */
            return epoch <= f->ring[i].word;
        }
    }
    *word_p = epoch;
    return f->n > NICBARRIER_FREED_MAX;
}
