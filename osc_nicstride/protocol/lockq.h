/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The lock queue of one target of one window: fair (first come, first served), shared and
 *  exclusive, without pointers so that it can live in memory shared by the processes of a node.
 *  Another one is that of the window's own lock, between MPI_Win_lock_all and exclusive locks of
 *  single targets: window_lock.h.
 *
 *  Where processes hold locks and ask for others, being fair could make a circle of waits that no
 *  lock makes: P holds A shared and waits for R, which holds B; R asks for A shared, too, behind Q,
 *  which wants A exclusively and waits for P. So a request that others can share the lock with says
 *  whether its process holds another lock of the window, and then waits for none that only waits.
 *  Of exclusive requests no such rule is needed: what those before them wait for is what they would
 *  wait for themselves. What remains are circles of processes each of which holds what the next
 *  must not have beside it.
 *
 *  Pure. The caller serialises all calls and delivers the grants. Origins are ranks 0 .. n-1 of the
 *  window; each has at most one request or lock at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** All but the exclusive one are shared by those who have asked for the same. */
typedef enum nicstride_lock_type {
    NICSTRIDE_LOCK_SHARED = 1,
    NICSTRIDE_LOCK_EXCLUSIVE = 2,
    /* Of the window's own lock (window_lock.h); who has it stays until asked to leave. */
    NICSTRIDE_LOCK_OF_ALL = 3, /**< by MPI_Win_lock_all */
    NICSTRIDE_LOCK_OF_SOME = 4 /**< by a process with exclusive locks of single targets */
} nicstride_lock_type_t;

static inline bool nicstride_lock_is_of_window(uint32_t type)
{
    return type == NICSTRIDE_LOCK_OF_ALL || type == NICSTRIDE_LOCK_OF_SOME;
}

/** State of one origin. */
typedef struct nicstride_lockq_entry {
    uint32_t next;  /**< next waiter, or next of those who stay, + 1; or 0 */
    uint32_t state; /**< idle, waiting or holding, and the type */
} nicstride_lockq_entry_t;

typedef struct nicstride_lockq {
    uint32_t n;       /**< origins */
    uint32_t holders; /**< origins that hold the lock now */
    uint32_t type;    /**< that they hold, if there are any */
    uint32_t head;    /**< first waiter + 1, or 0 */
    uint32_t tail;    /**< last waiter + 1, or 0 */
    uint32_t stays; /**< first of the holders who stay and were not yet asked to leave, + 1, or 0 */
    nicstride_lockq_entry_t entry[];
} nicstride_lockq_t;

/** Bytes of a queue for `n` origins. */
size_t nicstride_lockq_size(uint32_t n);

void nicstride_lockq_init(nicstride_lockq_t *q, uint32_t n);

/** Asks for the lock. A later request queues behind those that wait, except one that is not
 *  exclusive of a process that `holds` another lock of the window. True where the origin has the
 *  lock; else it waits, and a later next_grant will name it. */
bool nicstride_lockq_request(nicstride_lockq_t *q, uint32_t origin, uint32_t type, bool holds);

/** Takes the lock where it is free for the origin now. False, nothing changed, where it is not. */
bool nicstride_lockq_try(nicstride_lockq_t *q, uint32_t origin, uint32_t type, bool holds);

/** Gives the lock back. False where the origin does not hold it. Follow with next_grant. */
bool nicstride_lockq_release(nicstride_lockq_t *q, uint32_t origin);

/** The origin is gone for good: gives back what it holds, or takes it out of the line. False where
 *  it does neither. Follow with next_grant. */
bool nicstride_lockq_forget(nicstride_lockq_t *q, uint32_t origin);

/** Takes the next waiter that can hold the lock now. Call until it returns false. */
bool nicstride_lockq_next_grant(nicstride_lockq_t *q, uint32_t *origin_p);

/** Takes the next holder who stays and is to be asked to leave, since somebody waits. Each is named
 *  once. Call after next_grant until it returns false. */
bool nicstride_lockq_next_to_leave(nicstride_lockq_t *q, uint32_t *origin_p);

/** True where the origin holds the lock. */
bool nicstride_lockq_holds(const nicstride_lockq_t *q, uint32_t origin);
