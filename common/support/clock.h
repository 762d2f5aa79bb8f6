/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The clock, and ticks, which cost less to read: the processor's counter where the kernel
 *  itself uses that, having compared those of all processors; elsewhere nanoseconds. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include "common/support/export.h"

/** Nanoseconds of a clock that does not go back, has left 0, and is the same for all processes of a
 *  node. Any thread; takes some tens of nanoseconds. */
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

/* ---- ticks ----------------------------------------------------------------------------------- */

/** onic_ticks_clock where ticks come from the processor's counter; no inode has this number. */
#define ONIC_CLOCK_COUNTER 1

/** Which clock a process's ticks come from. Two processes of a machine may compare theirs if the
 *  results are equal: ONIC_CLOCK_COUNTER or the time namespace (its inode, 0 where it has none).
 *  `clocksource` is the kernel's; `invariant`: the counter never stops nor changes its rate. Pure.
 */
static inline uint64_t onic_clock_pick(const char *clocksource, bool invariant,
                                       uint64_t time_namespace)
{
    const size_t len = strcspn(clocksource, "\n");
    const bool tsc = len == strlen("tsc") && memcmp(clocksource, "tsc", len) == 0;

    return tsc && invariant ? ONIC_CLOCK_COUNTER : time_namespace;
}

/** Picks the clock of onic_ticks, until then the kernel's; once, whatever the kernel finds out
 *  later. One thread at a time; reads a file the first time. */
ONIC_EXPORT void onic_ticks_start(void);

/** Whose ticks they are, as by onic_clock_pick. After onic_ticks_start. */
ONIC_EXPORT uint64_t onic_ticks_clock(void);

/** True if ticks come from the counter. For onic_ticks alone. */
ONIC_EXPORT extern atomic_bool onic_ticks_counted;

/** A clock whose unit is that of onic_ticks_per_usec. Between processes as onic_clock_pick says. */
static inline uint64_t onic_ticks(void)
{
#if defined(__x86_64__)
    if (atomic_load_explicit(&onic_ticks_counted, memory_order_relaxed))
        return __builtin_ia32_rdtsc();
#endif
    return onic_now_nsec();
}

/** Ticks in a microsecond, never 0; of the counter as measured so far. Any thread. */
ONIC_EXPORT double onic_ticks_per_usec(void);
