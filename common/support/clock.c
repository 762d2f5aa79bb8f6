/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "common/support/clock.h"

#include "common/support/life.h"
#include "common/support/peer_file.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#define CLOCKSOURCE "/sys/devices/system/clocksource/clocksource0/current_clocksource"

atomic_bool onic_ticks_counted;

static uint64_t start_ticks, start_nsec, clock_of_ticks;

/** True if the processor has a counter that onic_ticks can read, and that never stops. */
static bool has_invariant_counter(void)
{
#if defined(__x86_64__)
    unsigned a, b, c, d;

    return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & 1u << 8) != 0;
#else
    return false;
#endif
}

void onic_ticks_start(void)
{
    char name[64];

    if (start_nsec != 0)
        return;
    (void)onic_file_text(CLOCKSOURCE, name, sizeof(name));
    clock_of_ticks =
        onic_clock_pick(name, has_invariant_counter(), onic_life_mine().time_namespace);
    atomic_store(&onic_ticks_counted, clock_of_ticks == ONIC_CLOCK_COUNTER);
    start_ticks = onic_ticks();
    start_nsec = onic_now_nsec();
}

uint64_t onic_ticks_clock(void)
{
    return clock_of_ticks;
}

double onic_ticks_per_usec(void)
{
    if (!atomic_load_explicit(&onic_ticks_counted, memory_order_relaxed))
        return 1000;
    const double usec = (double)(onic_now_nsec() - start_nsec) / 1000;
    const double ticks = (double)(onic_ticks() - start_ticks);
    return usec > 0 && ticks > usec ? ticks / usec : 1;
}
