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

#include <stdatomic.h>
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

/** Likewise: one that computes. */
#define NICBARRIER_SLICE_NSEC 500000U
/** Where others compute on its processor a thread spins for so long, in nanoseconds, before it
 * yields. */
#define NICBARRIER_SPIN_NSEC 4000000U
/** After so many of these in turn in which others had the processor it yields at once. */
#define NICBARRIER_SPINS_IN_VAIN 8U
/** Of these when it is tried again. */
#define NICBARRIER_TRIES 2U
/** For so many nanoseconds; each time in turn for twice as long, up to the other one. */
#define NICBARRIER_REST_NSEC      10000000U
#define NICBARRIER_LONG_REST_NSEC 160000000U

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

/** What a yield has shown of the processor. */
typedef enum nicbarrier_yielded {
    NICBARRIER_YIELDED_UNKNOWN, /**< this wait says nothing about it */
    NICBARRIER_YIELDED_ALONE,   /**< nobody else wants it */
    NICBARRIER_YIELDED_BRIEFLY, /**< others have it briefly, such as those that wait like this */
    NICBARRIER_YIELDED_LONG     /**< others compute on it */
} nicbarrier_yielded_t;

/** Of a wait that began at `start` != 0 and is over. */
static inline nicbarrier_yielded_t nicbarrier_waiting_yielded(const nicbarrier_waiting_t *w,
                                                              uint64_t now)
{
    if (w->phase != NICBARRIER_SHORT || w->count == 0)
        return NICBARRIER_YIELDED_UNKNOWN;
    const uint64_t each = (now - w->start) / w->count;
    return each <= NICBARRIER_SHARED_NSEC  ? NICBARRIER_YIELDED_ALONE
           : each <= NICBARRIER_SLICE_NSEC ? NICBARRIER_YIELDED_BRIEFLY
                                           : NICBARRIER_YIELDED_LONG;
}

/** How the waits of a process begin. A yield where another program computes costs a time slice. It
 *  pays where those for which one waits are kept from this processor, not where they run elsewhere.
 */
typedef struct nicbarrier_spinning {
    _Atomic enum {
        NICBARRIER_FREE,      /**< nobody else wants the processor: spin for a little */
        NICBARRIER_CONTENDED, /**< another program computes on it: spin for NICBARRIER_SPIN_NSEC */
        NICBARRIER_SHARED     /**< yield at once */
    } mode;
    _Atomic unsigned vain;  /**< spins in turn in which another thread has had the processor */
    _Atomic uint64_t rest;  /**< nanoseconds that it stays shared by these */
    _Atomic uint64_t until; /**< likewise: the time */
} nicbarrier_spinning_t;

/** A wait has ended in a spin in which this thread had its processor. */
static inline void nicbarrier_spinning_helped(nicbarrier_spinning_t *s)
{
    if (s->vain != 0)
        s->vain = 0;
    if (s->rest != 0)
        s->rest = 0;
}

/** A long spin is over. `displaced`: has the kernel let another thread run in place of this one? */
static inline void nicbarrier_spinning_spun(nicbarrier_spinning_t *s, bool displaced, uint64_t now)
{
    if (!displaced) {
        nicbarrier_spinning_helped(s);
    } else if (++s->vain >= NICBARRIER_SPINS_IN_VAIN) {
        const uint64_t rest = 2 * s->rest;

        s->rest = rest < NICBARRIER_REST_NSEC        ? NICBARRIER_REST_NSEC
                  : rest < NICBARRIER_LONG_REST_NSEC ? rest
                                                     : NICBARRIER_LONG_REST_NSEC;
        s->until = now + s->rest;
        s->mode = NICBARRIER_SHARED;
    }
}

/** Draws a conclusion from the yields of a wait. `crowded`: the ranks here are more than the
 *  processors. */
static inline void nicbarrier_spinning_yielded(nicbarrier_spinning_t *s,
                                               nicbarrier_yielded_t yielded, bool crowded,
                                               uint64_t now)
{
    if (yielded == NICBARRIER_YIELDED_ALONE) {
        s->mode = NICBARRIER_FREE;
        s->rest = 0;
    } else if (yielded == NICBARRIER_YIELDED_BRIEFLY || (yielded != 0 && crowded)) {
        s->mode = NICBARRIER_SHARED;
    } else if (yielded == NICBARRIER_YIELDED_LONG && s->mode != NICBARRIER_CONTENDED &&
               now >= s->until) {
        s->mode = NICBARRIER_CONTENDED;
        s->vain = s->rest == 0 ? 0 : NICBARRIER_SPINS_IN_VAIN - NICBARRIER_TRIES;
    }
}
