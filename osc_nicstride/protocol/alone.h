/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Is a transfer the only one until a call synchronises? One that others follow at once is
 *  best moved in another way than one that is waited for: so a transfer counts as alone where the
 *  one before the last such call was. Threads that meet may miscount once. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/** All zero: nothing was begun. */
typedef struct nicstride_alone {
    uint32_t begun; /**< since what was begun was last waited for */
    bool one;       /**< it was one before that */
} nicstride_alone_t;

/** Would a transfer that begins now be the first, and was the one before it alone? */
static inline bool nicstride_alone_would(const nicstride_alone_t *a)
{
    return __atomic_load_n(&a->begun, __ATOMIC_RELAXED) == 0 &&
           __atomic_load_n(&a->one, __ATOMIC_RELAXED);
}

/** It begins. As above. */
static inline bool nicstride_alone_begin(nicstride_alone_t *a)
{
    const bool alone = nicstride_alone_would(a);

    __atomic_store_n(&a->begun, __atomic_load_n(&a->begun, __ATOMIC_RELAXED) + 1, __ATOMIC_RELAXED);
    return alone;
}

/** What was begun, if anything, is waited for. */
static inline void nicstride_alone_wait(nicstride_alone_t *a)
{
    const uint32_t begun = __atomic_load_n(&a->begun, __ATOMIC_RELAXED);

    if (begun == 0)
        return;
    __atomic_store_n(&a->one, begun == 1, __ATOMIC_RELAXED);
    __atomic_store_n(&a->begun, 0, __ATOMIC_RELAXED);
}
