/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The lock queue of one target of one window: fair (first come, first served), shared and
 *  exclusive, without pointers so that it can live in memory shared by the processes of a node.
 *
 *  MPI_Win_lock_all asks for its shared locks one by one, in any order, while it holds others. In
 *  the line that could end in a circle: P holds A and stands at B behind an exclusive request,
 *  which waits for R, which holds B and stands at A behind another, which waits for P. So such a
 *  request says since when its process has been in MPI_Win_lock_all, and passes the exclusive ones
 *  that wait unless that is later than `since` of the queue: when the first of them became the
 *  first, which is later than anything a request had said by then. Along a circle of such waits
 *  these times would grow without end. What remains are circles of processes each of which holds
 *  what the next must not have beside it. An exclusive request is passed only by a process that has
 *  been in MPI_Win_lock_all since before it was the first of its kind: it starves only where such
 *  processes never leave that. The times may be of any clocks.
 *
 *  Pure. The caller serialises all calls and delivers the grants. Origins are ranks 0 .. n-1 of the
 *  window; each has at most one request or lock at a time. What comes from a peer and does not fit
 *  the state is refused and changes nothing. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum nicstride_lock_type {
    NICSTRIDE_LOCK_SHARED = 1,
    NICSTRIDE_LOCK_EXCLUSIVE = 2
} nicstride_lock_type_t;

/** State of one origin. */
typedef struct nicstride_lockq_entry {
    uint32_t next;  /**< next waiter + 1, or 0 */
    uint32_t state; /**< idle, waiting or holding, and the type */
} nicstride_lockq_entry_t;

typedef struct nicstride_lockq {
    uint32_t n;         /**< origins */
    uint32_t holders;   /**< origins that hold the lock now */
    uint32_t exclusive; /**< 1 while the holder is exclusive */
    uint32_t head;      /**< first waiter + 1, or 0 */
    uint32_t tail;      /**< last waiter + 1, or 0 */
    uint32_t writers;   /**< exclusive waiters */
    uint32_t passing;   /**< waiters that go before the next of these that becomes the first */
    uint64_t latest;    /**< no request has said more */
    uint64_t since;     /**< when the first exclusive waiter became the first of these */
    nicstride_lockq_entry_t entry[];
} nicstride_lockq_t;

typedef enum nicstride_lockq_result {
    NICSTRIDE_LOCKQ_GRANTED, /**< the origin holds the lock */
    NICSTRIDE_LOCKQ_QUEUED,  /**< it waits; a later next_grant will name it */
    NICSTRIDE_LOCKQ_REFUSED  /**< origin or type out of range, or already waiting or holding */
} nicstride_lockq_result_t;

/** Bytes of a queue for `n` origins. */
size_t nicstride_lockq_size(uint32_t n);

void nicstride_lockq_init(nicstride_lockq_t *q, uint32_t n);

/** Asks for the lock. A shared request behind a waiting exclusive one queues, but for one of
 *  MPI_Win_lock_all that may pass it: `since` is when its process came into that, else 0. */
nicstride_lockq_result_t nicstride_lockq_request(nicstride_lockq_t *q, uint32_t origin,
                                                 uint32_t type, uint64_t since);

/** Takes the lock where it is free for the origin now. False, nothing changed, where it is not. */
bool nicstride_lockq_try(nicstride_lockq_t *q, uint32_t origin, uint32_t type, uint64_t since);

/** Gives the lock back. False where the origin does not hold it. Follow with next_grant. */
bool nicstride_lockq_release(nicstride_lockq_t *q, uint32_t origin);

/** The origin is gone for good: gives back what it holds, or takes it out of the line. False where
 *  it does neither. Follow with next_grant. */
bool nicstride_lockq_forget(nicstride_lockq_t *q, uint32_t origin);

/** Takes the next waiter that can hold the lock now. Call until it returns false. */
bool nicstride_lockq_next_grant(nicstride_lockq_t *q, uint32_t *origin_p);

/** The origin, which holds the lock, holds it as a shared one from now on. Follow with next_grant.
 */
void nicstride_lockq_share(nicstride_lockq_t *q, uint32_t origin);

/** Does anybody wait? */
static inline bool nicstride_lockq_has_waiters(const nicstride_lockq_t *q)
{
    return q->head != 0;
}

/** True where the origin holds the lock. */
bool nicstride_lockq_holds(const nicstride_lockq_t *q, uint32_t origin);
