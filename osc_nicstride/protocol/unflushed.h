/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Operations since the last flush: does a program flush each by itself, or several together? One
 * that stands alone takes the way that is over first, several take the one on which they overlap.
 * As it was between the last two flushes, so it is thought to be until the next.
 *
 * Pure; inlined, since it comes with every operation and flush. Threads that meet here may lose a
 * count or two, nothing else.
 */
#ifndef NICSTRIDE_UNFLUSHED_H
#define NICSTRIDE_UNFLUSHED_H

#include <stdbool.h>
#include <stdint.h>

/** What is known of a window. All zero: nothing yet, which counts as several. */
typedef struct nicstride_unflushed {
    uint32_t operations; /**< since the last flush */
    bool alone;          /**< exactly one came between the last two flushes that had any */
} nicstride_unflushed_t;

/** Another operation begins. */
static inline void nicstride_unflushed_add(nicstride_unflushed_t *u)
{
    const uint32_t n = __atomic_load_n(&u->operations, __ATOMIC_RELAXED);

    __atomic_store_n(&u->operations, n + 1, __ATOMIC_RELAXED);
}

/** Will the next operation stand alone, if it goes on as before? */
static inline bool nicstride_unflushed_alone(const nicstride_unflushed_t *u)
{
    return __atomic_load_n(&u->alone, __ATOMIC_RELAXED) &&
           __atomic_load_n(&u->operations, __ATOMIC_RELAXED) == 0;
}

/** A flush of any kind begins. One without operations says nothing. */
static inline void nicstride_unflushed_end(nicstride_unflushed_t *u)
{
    const uint32_t n = __atomic_load_n(&u->operations, __ATOMIC_RELAXED);

    if (n == 0)
        return;
    __atomic_store_n(&u->alone, n == 1, __ATOMIC_RELAXED);
    __atomic_store_n(&u->operations, 0, __ATOMIC_RELAXED);
}

#endif
