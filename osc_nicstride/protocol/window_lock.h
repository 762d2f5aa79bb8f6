/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The lock of a window: either processes are in MPI_Win_lock_all, or others have exclusive
 *  locks of single targets. A process takes it before anything else of such an epoch, and that is
 *  all that MPI_Win_lock_all takes. So who is in MPI_Win_lock_all waits for nobody, and nobody can
 *  wait for it in a circle. Shared locks of single targets have nothing to do with it.
 *
 *  It is a lock queue (lockq.h) of rank 0. That would cost each epoch a round trip; therefore a
 *  process that has got the lock stays in it, whether it uses it or not, until it is asked to
 *  leave, because somebody wants it for the other purpose. A program that only ever calls
 *  MPI_Win_lock_all, or never, asks once for each process and window.
 *
 *  A word of each process says whether it uses the lock. Processes that share memory with rank 0
 *  ask one another by this word, without the help of the one that is asked; others are asked by
 *  message.
 *
 *  Pure. Any thread; the calls of one process that begin or end a use do not overlap. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/** Zero-initialise. The type that the process stays in, or 0, and these. */
typedef _Atomic uint32_t nicstride_stay_t;

#define NICSTRIDE_STAY_TYPE  0x0fu
#define NICSTRIDE_STAY_USED  0x10u
#define NICSTRIDE_STAY_LEAVE 0x20u /**< it is to leave after that */

/** The lock was granted, and is used. */
static inline void nicstride_stay_granted(nicstride_stay_t *s, uint32_t type)
{
    atomic_fetch_or(s, type | NICSTRIDE_STAY_USED);
}

/** Does the process use it? */
static inline bool nicstride_stay_is_used(nicstride_stay_t *s)
{
    return (atomic_load(s) & NICSTRIDE_STAY_USED) != 0;
}

/** Uses it where the process has stayed in it. False where it must be asked for. */
static inline bool nicstride_stay_use(nicstride_stay_t *s, uint32_t type)
{
    uint32_t idle = type;

    return atomic_compare_exchange_strong(s, &idle, type | NICSTRIDE_STAY_USED);
}

/** It is used no more. False where it must be given back. */
static inline bool nicstride_stay_end(nicstride_stay_t *s)
{
    const uint32_t type = atomic_load(s) & NICSTRIDE_STAY_TYPE;
    uint32_t used = type | NICSTRIDE_STAY_USED;

    if (atomic_compare_exchange_strong(s, &used, type))
        return true;
    atomic_store(s, 0);
    return false;
}

/** Marks that the process is to leave when it has used the lock, or the next grant. False where it
 *  has stayed without. */
static inline bool nicstride_stay_mark(nicstride_stay_t *s)
{
    uint32_t was = atomic_load(s);

    while ((was & NICSTRIDE_STAY_TYPE) == 0 || (was & NICSTRIDE_STAY_USED) != 0)
        if (atomic_compare_exchange_weak(s, &was, was | NICSTRIDE_STAY_LEAVE))
            return true;
    return false;
}

/** Leaves where the process has stayed and does not use it. True: then it is to be given back. */
static inline bool nicstride_stay_leave_idle(nicstride_stay_t *s)
{
    uint32_t was = atomic_load(s);

    while ((was & NICSTRIDE_STAY_TYPE) != 0 && (was & NICSTRIDE_STAY_USED) == 0)
        if (atomic_compare_exchange_weak(s, &was, 0))
            return true;
    return false;
}

/** The process is asked to leave. True where it does not use it: then whoever has called this gives
 *  it back. A grant that is on its way is used once. */
static inline bool nicstride_stay_leave(nicstride_stay_t *s)
{
    /* In between its use may begin, or end. */
    do
        if (nicstride_stay_leave_idle(s))
            return true;
    while (!nicstride_stay_mark(s));
    return false;
}
