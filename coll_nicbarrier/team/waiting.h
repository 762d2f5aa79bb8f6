/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * What a thread that waits for a barrier does, by turns: yield, call Open MPI's progress, or sleep.
 *
 * A thread that spins keeps the processes away for which it waits, and one that sleeps answers
 * none: neither is right everywhere, so a waiting thread draws conclusions from its yields.
 *
 * - *Short*: it yields, and now and then calls Open MPI's progress and reads the clock: where
 *   processors are shared, this is what a barrier costs.
 * - *Awake*, after NICBARRIER_PHASE_NSEC: it mostly calls Open MPI's progress, since others may be
 *   waiting for what that answers (one-sided communication, long messages).
 * - *Asleep*, where others want its processor: in the kernel, where it costs them nothing; it wakes
 *   up now and then for Open MPI's progress. After some naps it is awake for a while again.
 *
 * Pure: time and what the kernel counts are arguments.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/** Nanoseconds of a phase. */
#define NICBARRIER_PHASE_NSEC 100000U
/** Short: one yield in so many comes with Open MPI's progress. */
#define NICBARRIER_YIELDS_PER_PROGRESS 8U
/** Awake: so many calls of Open MPI's progress to one yield. */
#define NICBARRIER_PROGRESS_PER_YIELD 4U
/** Asleep: naps before it looks whether its processor is still wanted. */
#define NICBARRIER_NAPS 16U
/** A yield that took longer than this, in nanoseconds, has most likely let another process run. */
#define NICBARRIER_SHARED_NSEC 900U

/** What to do, as bits, from the lowest to the highest. Behind each: is the barrier over? */
typedef enum nicbarrier_wait_action {
    NICBARRIER_WAIT_PROGRESS = 1, /**< call Open MPI's progress */
    NICBARRIER_WAIT_YIELD = 2,
    NICBARRIER_WAIT_SLEEP = 4,
    NICBARRIER_WAIT_TIME = 8 /**< read the clock: nicbarrier_waiting_is_due */
} nicbarrier_wait_action_t;

/** One wait of one thread. Zero-initialise. */
typedef struct nicbarrier_waiting {
    enum { NICBARRIER_SHORT, NICBARRIER_AWAKE, NICBARRIER_ASLEEP } phase;
    unsigned count; /**< actions in this phase: of the short one, yields */
    uint64_t start; /**< of the phase, in nanoseconds; 0: not known yet */
    long displaced; /**< as the kernel counts it, at the start of the phase */
} nicbarrier_waiting_t;

/** @return the next actions (nicbarrier_wait_action_t) */
static inline unsigned nicbarrier_waiting_next(nicbarrier_waiting_t *w)
{
    const unsigned n = ++w->count;

    switch (w->phase) {
    case NICBARRIER_AWAKE:
        return n % NICBARRIER_PROGRESS_PER_YIELD != 0
                   ? NICBARRIER_WAIT_PROGRESS
                   : NICBARRIER_WAIT_PROGRESS | NICBARRIER_WAIT_YIELD | NICBARRIER_WAIT_TIME;
    case NICBARRIER_ASLEEP:
        return NICBARRIER_WAIT_PROGRESS | NICBARRIER_WAIT_SLEEP |
               (n % NICBARRIER_NAPS != 0 ? 0U : NICBARRIER_WAIT_TIME);
    default:
        return n % NICBARRIER_YIELDS_PER_PROGRESS != 0
                   ? NICBARRIER_WAIT_YIELD
                   : NICBARRIER_WAIT_PROGRESS | NICBARRIER_WAIT_YIELD | NICBARRIER_WAIT_TIME;
    }
}

/** @return true where the phase is over: nicbarrier_waiting_turn must follow */
static inline bool nicbarrier_waiting_is_due(nicbarrier_waiting_t *w, uint64_t now)
{
    if (w->start == 0)
        w->start = now;
    return now - w->start > NICBARRIER_PHASE_NSEC;
}

/** Begins the next phase. A thread sleeps where others ran in its place at every other yield of the
 *  last phase, at least. `displaced`: how often the kernel has let another thread run in place of
 *  this one, which wanted to go on; it only grows. */
static inline void nicbarrier_waiting_turn(nicbarrier_waiting_t *w, uint64_t now, long displaced)
{
    const long yields = (long)(w->count / NICBARRIER_PROGRESS_PER_YIELD);
    const bool wanted = w->phase == NICBARRIER_AWAKE && 2 * (displaced - w->displaced) >= yields;

    w->phase = wanted ? NICBARRIER_ASLEEP : NICBARRIER_AWAKE;
    w->count = 0;
    w->start = now;
    w->displaced = displaced;
}

/** Of a wait that began at `start` != 0 and is over: should the next one yield at once, since
 *  spinning is harmful? A wrong yes costs little.
 *  @return 1 or 0; -1: this wait says nothing about it */
static inline int nicbarrier_waiting_is_shared(const nicbarrier_waiting_t *w, uint64_t now)
{
    if (w->phase != NICBARRIER_SHORT || w->count == 0)
        return -1;
    return (now - w->start) / w->count > NICBARRIER_SHARED_NSEC;
}
