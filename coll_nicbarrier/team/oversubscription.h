/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Do others want the processor on which a thread waits? Pure.
 *
 * Who spins keeps those away for whom he waits, and who sleeps answers nobody: neither is right
 * everywhere, so a thread that waits draws conclusions from its yields.
 */
#ifndef NICBARRIER_OVERSUBSCRIPTION_H
#define NICBARRIER_OVERSUBSCRIPTION_H

#include <stdbool.h>
#include <stdint.h>

/** A yield that took longer than this, in nanoseconds, has most likely let somebody else run. */
#define NICBARRIER_SHARED_NSEC 900U

/** Short waits, where reading a clock twice is all that may be spent: is spinning harmful, after
 *  `yields` > 0 yields that took `nsec` nanoseconds together? A wrong yes costs little. */
static inline bool nicbarrier_is_shared(uint64_t nsec, unsigned yields)
{
    return nsec / yields > NICBARRIER_SHARED_NSEC;
}

/** Long waits: may the thread sleep, after `yields` > 0 yields and `displaced` times that the
 * kernel let somebody else run in its place? Where that was at every other yield at least. How long
 * a yield takes would not tell: it may cost most of a microsecond by itself; and a wrong yes makes
 * all wait whom the thread's progress would answer. */
static inline bool nicbarrier_is_wanted(long displaced, long yields)
{
    return displaced >= yields - displaced;
}

#endif
