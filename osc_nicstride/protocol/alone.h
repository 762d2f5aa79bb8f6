/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Whether a long transfer to private memory of the node is the only one before a call
 *  synchronises. A transfer that is waited for alone is best moved in another way than one of many:
 *  with the wrong way, 64 KiB to 1 MiB in blocks of 64 to 512 bytes take 1.2 to 1.7 times as long.
 *  A transfer counts as alone if the one before the last such call was alone. Threads that run at
 *  the same time may miscount once. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/** All zero: nothing was begun. */
typedef struct nicstride_alone {
    uint32_t begun; /**< transfers begun since a call last waited for them */
    bool one;       /**< there was exactly one before that */
} nicstride_alone_t;

/** Counts a transfer that begins. True if it is the first, and the one before it was alone. */
static inline bool nicstride_alone_begin(nicstride_alone_t *a)
{
    const uint32_t begun = __atomic_load_n(&a->begun, __ATOMIC_RELAXED);

    __atomic_store_n(&a->begun, begun + 1, __ATOMIC_RELAXED);
    return begun == 0 && __atomic_load_n(&a->one, __ATOMIC_RELAXED);
}

/** Notes that everything begun, if anything, was waited for. */
static inline void nicstride_alone_wait(nicstride_alone_t *a)
{
    const uint32_t begun = __atomic_load_n(&a->begun, __ATOMIC_RELAXED);

    if (begun == 0)
        return;
    __atomic_store_n(&a->one, begun == 1, __ATOMIC_RELAXED);
    __atomic_store_n(&a->begun, 0, __ATOMIC_RELAXED);
}
