/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The lock of a window: either processes are in MPI_Win_lock_all, or other processes hold
 *  exclusive locks of single targets. A process takes it before everything else in such an epoch;
 *  MPI_Win_lock_all takes nothing else. So a process in MPI_Win_lock_all waits for nobody, and
 *  cannot be part of a deadlock. Shared locks of single targets do not involve this lock.
 *
 *  It is a lock queue (lockq.h) of rank 0. That would cost each epoch a round trip; therefore a
 *  process that has got the lock stays in it, whether it uses it or not, until it is asked to leave
 *  because somebody wants it for the other purpose. A program that always, or never, calls
 *  MPI_Win_lock_all asks only once for each process and window.
 *
 *  A word of each process says whether it uses the lock. Processes that share memory with rank 0
 *  ask one another to leave through this word, without help of the process that is asked; others
 *  are asked by message.
 *
 *  Pure. Any thread; the calls of one process that begin or end a use do not overlap. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/** The type in which the process stays, or 0, with the flags below. Zero-initialise. */
typedef _Atomic uint32_t nicstride_stay_t;

#define NICSTRIDE_STAY_TYPE  0x0fu
#define NICSTRIDE_STAY_USED  0x10u
#define NICSTRIDE_STAY_LEAVE 0x20u /**< it must leave after its use */

/** Notes that the lock was granted and is in use. */
static inline void nicstride_stay_granted(nicstride_stay_t *s, uint32_t type)
{
    atomic_fetch_or(s, type | NICSTRIDE_STAY_USED);
}

/** True if the process uses the lock. */
static inline bool nicstride_stay_is_used(nicstride_stay_t *s)
{
    return (atomic_load(s) & NICSTRIDE_STAY_USED) != 0;
}

/** Uses the lock if the process has stayed in it. False if it must be asked for. */
static inline bool nicstride_stay_use(nicstride_stay_t *s, uint32_t type)
{
    uint32_t idle = type;

    return atomic_compare_exchange_strong(s, &idle, type | NICSTRIDE_STAY_USED);
}

/** Ends a use. False if the lock must be given back. */
static inline bool nicstride_stay_end(nicstride_stay_t *s)
{
    const uint32_t type = atomic_load(s) & NICSTRIDE_STAY_TYPE;
    uint32_t used = type | NICSTRIDE_STAY_USED;

    if (atomic_compare_exchange_strong(s, &used, type))
        return true;
    atomic_store(s, 0);
    return false;
}

/** Leaves if the process stays without using the lock. True: the caller must give the lock back. */
static inline bool nicstride_stay_leave_idle(nicstride_stay_t *s)
{
    uint32_t was = atomic_load(s);

    while ((was & NICSTRIDE_STAY_TYPE) != 0 && (was & NICSTRIDE_STAY_USED) == 0)
        if (atomic_compare_exchange_weak(s, &was, 0))
            return true;
    return false;
}

/** Asks the process to leave. True if it stays without using the lock: then the caller gives the
 *  lock back. Otherwise it leaves after its use; a grant that is under way is used once. */
static inline bool nicstride_stay_leave(nicstride_stay_t *s)
{
    uint32_t was = atomic_load(s);
    bool idle;

    do
        idle = (was & NICSTRIDE_STAY_TYPE) != 0 && (was & NICSTRIDE_STAY_USED) == 0;
    while (!atomic_compare_exchange_weak(s, &was, idle ? 0 : was | NICSTRIDE_STAY_LEAVE));
    return idle;
}
