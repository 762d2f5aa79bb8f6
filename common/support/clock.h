/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The clock. */
#pragma once

#include <stdint.h>
#include <time.h>

/** Nanoseconds of a clock that does not go back, has left 0, and is the same for all processes of a
 *  node and time namespace. Any thread; takes some tens of nanoseconds. */
static inline uint64_t onic_now_nsec(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

/** As a time to wait. */
static inline struct timespec onic_timespec(uint64_t nsec)
{
    return (struct timespec){(time_t)(nsec / UINT64_C(1000000000)),
                             (long)(nsec % UINT64_C(1000000000))};
}
