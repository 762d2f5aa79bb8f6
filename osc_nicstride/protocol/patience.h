/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file When a process that waits for a peer wakes its helper thread: at once when the peer is
 *  seen to be away from MPI. But it may also have lost its processor, or be busy in one long call;
 *  then that thread only takes a processor. So it is woken again after a pause, which grows. Pure;
 *  times are ticks of any clock. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/** A peer without a sign of life for so many microseconds is taken to be away. One that waits in
 *  MPI gives one within a few of them, unless its progress functions are slow. */
#define NICSTRIDE_PATIENCE_AWAY 15
/** Microseconds from the first time to the second, and the most between two. */
#define NICSTRIDE_PATIENCE_FIRST 50
#define NICSTRIDE_PATIENCE_LAST  1000

/** One wait for one peer. */
typedef struct nicstride_patience {
    uint64_t woken; /**< when the peer was last woken */
    uint64_t pause; /**< until the next time; 0: it has not been yet */
} nicstride_patience_t;

/** A wait begins. */
static inline void nicstride_patience_begin(nicstride_patience_t *w)
{
    w->pause = 0;
}

/** True if the peer would be woken now if it were away. Only then is that worth looking for. */
static inline bool nicstride_patience_ends(const nicstride_patience_t *w, uint64_t now)
{
    return w->pause == 0 || now - w->woken >= w->pause;
}

/** The peer is away, and is woken. `usec` is the ticks of a microsecond. */
static inline void nicstride_patience_wake(nicstride_patience_t *w, uint64_t now, double usec)
{
    const uint64_t last = (uint64_t)(NICSTRIDE_PATIENCE_LAST * usec);

    w->woken = now;
    if (w->pause == 0)
        w->pause = (uint64_t)(NICSTRIDE_PATIENCE_FIRST * usec);
    else
        w->pause = 2 * w->pause < last ? 2 * w->pause : last;
}
