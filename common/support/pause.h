/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What a loop does in each turn that waits for memory to change. Pure. */
#pragma once

#include <sched.h>

/** In each turn of such a loop: leaves the core to its other thread for some tens of cycles. The
 *  compiler reads memory again behind it; it orders nothing for the processor. */
static inline void onic_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield" : : : "memory");
#else
    __asm__ volatile("" : : : "memory");
#endif
}

/** The same in turn `n` of a wait for a spin lock, whose holder may have lost its processor. */
static inline void onic_pause_for_holder(unsigned n)
{
    if (n % 64 == 0)
        sched_yield();
    else
        onic_pause();
}
