/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file When a process that waits for a peer wakes the peer's helper thread: at once when the peer
 *  seems to be away from MPI. But it may only have lost its processor, or be busy in one long call,
 *  and then that thread merely takes a processor away. So it is woken again only after a pause,
 *  which grows. Pure; times are ticks of any clock. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/** Microseconds without a sign of life after which a peer counts as away. A peer that waits in MPI
 *  gives one every few microseconds, unless its progress functions are slow. */
#define NICSTRIDE_PATIENCE_AWAY 15
/** Microseconds from the first wake-up to the second, and the most between two. */
#define NICSTRIDE_PATIENCE_FIRST 50
#define NICSTRIDE_PATIENCE_LAST  1000

/** One wait for one peer. */
typedef struct nicstride_patience {
    uint64_t woken; /**< when the peer was last woken */
    uint64_t pause; /**< ticks until the next wake-up; 0: it has not been woken yet */
} nicstride_patience_t;

/** Begins a wait. */
static inline void nicstride_patience_begin(nicstride_patience_t *w)
{
    w->pause = 0;
}

/** True if the peer would be woken now if it were away. Only then is it worth checking that. */
static inline bool nicstride_patience_ends(const nicstride_patience_t *w, uint64_t now)
{
    return w->pause == 0 || now - w->woken >= w->pause;
}

/** Notes that the peer is away and is being woken. `usec`: ticks per microsecond. */
static inline void nicstride_patience_wake(nicstride_patience_t *w, uint64_t now, double usec)
{
    const uint64_t last = (uint64_t)(NICSTRIDE_PATIENCE_LAST * usec);

    w->woken = now;
    if (w->pause == 0)
        w->pause = (uint64_t)(NICSTRIDE_PATIENCE_FIRST * usec);
    else
        w->pause = 2 * w->pause < last ? 2 * w->pause : last;
}
