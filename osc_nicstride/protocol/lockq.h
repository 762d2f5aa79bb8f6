/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The lock queue of one target of one window: fair (first come, first served), shared and
 *  exclusive, and without pointers, so that it can lie in memory shared by the processes of a node.
 *  Another instance implements the window's own lock, between MPI_Win_lock_all and exclusive locks
 *  of single targets: window_lock.h.
 *
 *  If processes hold locks while they ask for others, fairness alone could cause a deadlock. P
 *  holds A shared and waits for R, which holds B; R asks for A shared, too, and queues behind Q,
 *  which wants A exclusively and waits for P. So a request for a lock that can be shared says
 *  whether its process holds another lock of the window; if it does, it waits for holders only, not
 *  for waiters. Exclusive requests need no such rule: they would have to wait for what the requests
 *  before them wait for anyway. The remaining deadlocks are the program's own: each process holds
 *  what the next one needs.
 *
 *  Pure. The caller serialises all calls and delivers the grants. Origins are ranks 0 .. n-1 of the
 *  window; each has at most one request or lock at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Types of locks. All but the exclusive one can be shared by holders of the same type. */
typedef enum nicstride_lock_type {
    NICSTRIDE_LOCK_SHARED = 1,
    NICSTRIDE_LOCK_EXCLUSIVE = 2,
    /* Types of the window's own lock (window_lock.h). Holders stay in it until asked to leave. */
    NICSTRIDE_LOCK_OF_ALL = 3, /**< by MPI_Win_lock_all */
    NICSTRIDE_LOCK_OF_SOME = 4 /**< by a process with exclusive locks of single targets */
} nicstride_lock_type_t;

static inline bool nicstride_lock_is_of_window(uint32_t type)
{
    return type == NICSTRIDE_LOCK_OF_ALL || type == NICSTRIDE_LOCK_OF_SOME;
}

/** State of one origin. */
typedef struct nicstride_lockq_entry {
    uint32_t next;  /**< next waiter, or next staying holder, + 1; or 0 */
    uint32_t state; /**< idle, waiting or holding, and the type */
} nicstride_lockq_entry_t;

typedef struct nicstride_lockq {
    uint32_t holders; /**< origins that hold the lock now */
    uint32_t type;    /**< the type that they hold, if there are any */
    uint32_t head;    /**< first waiter + 1, or 0 */
    uint32_t tail;    /**< last waiter + 1, or 0 */
    uint32_t stays;   /**< the first staying holder not yet asked to leave, + 1, or 0 */
    nicstride_lockq_entry_t entry[];
} nicstride_lockq_t;

/** Bytes of a queue for `n` origins. */
size_t nicstride_lockq_size(uint32_t n);

void nicstride_lockq_init(nicstride_lockq_t *q, uint32_t n);

/** Asks for the lock. A request queues behind those that wait, unless it is not exclusive and its
 *  process `holds` another lock of the window. True if the origin has the lock now; otherwise it
 *  waits, and a later next_grant will name it. */
bool nicstride_lockq_request(nicstride_lockq_t *q, uint32_t origin, uint32_t type, bool holds);

/** Gives the lock back. False if the origin does not hold it. Call next_grant afterwards. */
bool nicstride_lockq_release(nicstride_lockq_t *q, uint32_t origin);

/** Removes an origin that is gone for good: gives back what it holds, or takes it out of the queue.
 *  False if neither applies. Call next_grant afterwards. */
bool nicstride_lockq_forget(nicstride_lockq_t *q, uint32_t origin);

/** Takes the next waiter that can hold the lock now. Call it until it returns false. */
bool nicstride_lockq_next_grant(nicstride_lockq_t *q, uint32_t *origin_p);

/** Takes the next staying holder that must be asked to leave because somebody waits. Each is named
 *  once. Call it after next_grant, until it returns false. */
bool nicstride_lockq_next_to_leave(nicstride_lockq_t *q, uint32_t *origin_p);

/** True if the origin holds the lock. */
bool nicstride_lockq_holds(const nicstride_lockq_t *q, uint32_t origin);
