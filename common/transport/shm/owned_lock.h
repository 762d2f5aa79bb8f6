/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file A lock in memory that processes share, which names its owner, so that processes that wait
 *  can find out that it has died. No process takes it from a dead owner: what it guards may be half
 *  done. One that waits spins, then yields, then sleeps for longer and longer: a stopped owner
 *  needs its processor. Pure. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/** 0 while free, else the number of its owner + 1. All zero is a good one. */
typedef _Atomic uint32_t onic_owned_lock_t;

/** Takes the lock for process `me` if it is free. Never waits: for handlers. Any thread of the
 *  process; two of them exclude each other, too. */
static inline bool onic_owned_try(onic_owned_lock_t *lock, uint32_t me)
{
    uint32_t none = 0;

    /* Looked at first: a failed exchange takes the cache line from the owner. */
    return atomic_load_explicit(lock, memory_order_relaxed) == 0 &&
           atomic_compare_exchange_strong_explicit(lock, &none, me + 1, memory_order_acquire,
                                                   memory_order_relaxed);
}

static inline void onic_owned_release(onic_owned_lock_t *lock)
{
    atomic_store_explicit(lock, 0, memory_order_release);
}

/** The owner of the lock; -1: none. */
static inline int64_t onic_owned_by(onic_owned_lock_t *lock)
{
    return (int64_t)atomic_load_explicit(lock, memory_order_acquire) - 1;
}

/* ---- waiting --------------------------------------------------------------------------------- */

/** Turns of the processor's pause between two yields, and yields before the first nap: some 300
 *  microseconds, of which a living owner needs far fewer. */
#define ONIC_OWNED_SPINS  128u
#define ONIC_OWNED_YIELDS 64u
/** Microseconds of the first and the longest nap. */
#define ONIC_OWNED_NAP_FIRST 50u
#define ONIC_OWNED_NAP_LAST  1000u
/** Microseconds of naps between two looks at the owner, which cost some 10 each. */
#define ONIC_OWNED_LOOK 4000u

/** One wait; all zero at its beginning. */
typedef struct onic_owned_wait {
    uint32_t spins;
    uint32_t yields;
    uint32_t nap;   /**< the last one */
    uint32_t slept; /**< microseconds since the owner was last looked at */
} onic_owned_wait_t;

/** What a process that has not got the lock does before the next try. */
typedef enum onic_owned_step {
    ONIC_OWNED_SPIN,
    ONIC_OWNED_YIELD,
    ONIC_OWNED_NAP,          /**< `nap` microseconds */
    ONIC_OWNED_LOOK_AT_OWNER /**< is it dead? */
} onic_owned_step_t;

static inline onic_owned_step_t onic_owned_next(onic_owned_wait_t *w)
{
    if (w->yields < ONIC_OWNED_YIELDS) {
        if (++w->spins % ONIC_OWNED_SPINS != 0)
            return ONIC_OWNED_SPIN;
        w->yields++;
        return ONIC_OWNED_YIELD;
    }
    if (w->slept >= ONIC_OWNED_LOOK) {
        w->slept = 0;
        return ONIC_OWNED_LOOK_AT_OWNER;
    }
    if (w->nap == 0)
        w->nap = ONIC_OWNED_NAP_FIRST;
    else
        w->nap = 2 * w->nap < ONIC_OWNED_NAP_LAST ? 2 * w->nap : ONIC_OWNED_NAP_LAST;
    w->slept += w->nap;
    return ONIC_OWNED_NAP;
}
