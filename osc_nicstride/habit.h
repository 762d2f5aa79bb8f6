/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Does a program flush each operation by itself, or several together? Lone operations take the way
 * that is over first, several the way on which they overlap. As it was between the last two
 * flushes, so it is thought to be until the next.
 *
 * Pure; inlined, since it comes with every operation and flush. Threads that meet here may lose a
 * count or two, nothing else.
 */
#ifndef NICSTRIDE_HABIT_H
#define NICSTRIDE_HABIT_H

#include <stdbool.h>
#include <stdint.h>

/** What is known of a window. All zero: nothing yet, which counts as several. */
typedef struct nicstride_habit {
    uint32_t since_flush; /**< operations since the last flush */
    bool alone;           /**< exactly one came between the last two flushes that had any */
} nicstride_habit_t;

/** Another operation begins. */
static inline void nicstride_habit_operation(nicstride_habit_t *h)
{
    const uint32_t n = __atomic_load_n(&h->since_flush, __ATOMIC_RELAXED);

    __atomic_store_n(&h->since_flush, n + 1, __ATOMIC_RELAXED);
}

/** Will the next operation stand alone, if it goes on as before? */
static inline bool nicstride_habit_alone(const nicstride_habit_t *h)
{
    return __atomic_load_n(&h->alone, __ATOMIC_RELAXED) &&
           __atomic_load_n(&h->since_flush, __ATOMIC_RELAXED) == 0;
}

/** A flush of any kind begins. One without operations says nothing. */
static inline void nicstride_habit_flush(nicstride_habit_t *h)
{
    const uint32_t n = __atomic_load_n(&h->since_flush, __ATOMIC_RELAXED);

    if (n == 0)
        return;
    __atomic_store_n(&h->alone, n == 1, __ATOMIC_RELAXED);
    __atomic_store_n(&h->since_flush, 0, __ATOMIC_RELAXED);
}

#endif
