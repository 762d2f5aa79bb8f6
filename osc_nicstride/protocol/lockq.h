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
#include <string.h>

#include "osc_nicstride/protocol/limits.h"

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

/** Asks for the lock. Who comes later queues behind those who wait, but for a request that is not
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

/* ---- locks that are asked for by message --------------------------------------------------------
 *
 * What an origin has asked for, of a target or of rank 0. An answer that comes when it is not
 * waited for any more, as after a loss, has no effect. Pure; the caller serialises. */

/** Zero-initialise. */
typedef struct nicstride_asked {
    bool waits;  /**< for the answer */
    int refused; /**< the lock will not be had: why, or 0 */
} nicstride_asked_t;

static inline void nicstride_asked_begin(nicstride_asked_t *a)
{
    *a = (nicstride_asked_t){.waits = true};
}

/** The lock is granted, or, where `error` is not 0, will not be. False, and nothing has changed,
 *  where that is not waited for. */
static inline bool nicstride_asked_answer(nicstride_asked_t *a, int error)
{
    if (!a->waits)
        return false;
    *a = (nicstride_asked_t){.refused = error};
    return true;
}

/** The answer is not waited for any more. 0: the lock is had; else an error, `none` where there was
 *  no answer. */
static inline int nicstride_asked_end(nicstride_asked_t *a, int none)
{
    const int error = a->waits ? none : a->refused;

    *a = (nicstride_asked_t){0};
    return error;
}

/* ---- locks that are held back -------------------------------------------------------------------
 *
 * A lock that is held back: MPI_Win_lock has returned, but the target, which must be asked
 * by message, is asked later, together with the first short operation and, where that stays the
 * only one, with the release.
 *
 *     epoch                            round trips: held back   asked for at once
 *     lock, put, unlock                             1           2
 *     lock, put, flush, unlock                      1           2
 *     lock, get, flush, put, unlock                 2           3
 *
 * What was sent together the target does if it can have the lock there and then; it acknowledges
 * the operation, which also says that the lock was granted. If not it queues the request and drops
 * the rest; the grant that comes in the end says that the rest is to be sent again. Pure; the
 * caller serialises and sends. */

typedef enum nicstride_lazy_state {
    NICSTRIDE_LAZY_NOT, /**< nothing is held back, the lock is held, or given back as others are */
    NICSTRIDE_LAZY_WAITING, /**< the target knows nothing yet */
    NICSTRIDE_LAZY_ASKED    /**< it was asked */
} nicstride_lazy_state_t;

/** What is to be sent, in this order. */
enum {
    NICSTRIDE_LAZY_SEND_LOCK = 1,
    NICSTRIDE_LAZY_SEND_OPERATION = 2,
    NICSTRIDE_LAZY_SEND_RELEASE = 4
};

/** Zero-initialise. */
typedef struct nicstride_lazy {
    nicstride_lazy_state_t state;
    unsigned type; /**< of the lock; holds: as of a request */
    bool holds;
    bool release;    /**< the lock is given back with the operation */
    uint64_t number; /**< acknowledged once the operation is done; 0: there is no operation */
    size_t len;
    unsigned char operation[NICSTRIDE_LAZY_MAX];
} nicstride_lazy_t;

/** MPI_Win_lock. Nothing may be held back. */
static inline void nicstride_lazy_begin(nicstride_lazy_t *h, unsigned type, bool holds)
{
    h->state = NICSTRIDE_LAZY_WAITING;
    h->type = type;
    h->holds = holds;
    h->release = false;
    h->number = 0;
    h->len = 0;
}

/** Can an operation wait with the lock? */
static inline bool nicstride_lazy_has_room(const nicstride_lazy_t *h)
{
    return h->state == NICSTRIDE_LAZY_WAITING && h->number == 0;
}

/** It does. `number`, not 0, is acknowledged once it is done, for which the message asks. False,
 *  and nothing has changed, where there is no room. */
static inline bool nicstride_lazy_keep(nicstride_lazy_t *h, const void *message, size_t len,
                                       uint64_t number)
{
    if (!nicstride_lazy_has_room(h) || len > sizeof(h->operation) || number == 0)
        return false;
    memcpy(h->operation, message, len);
    h->len = len;
    h->number = number;
    return true;
}

/** The target is to be asked now, if it was not yet; with `release` for an epoch that is over,
 *  which must have an operation. Returns what is to be sent together, 0 for nothing. */
static inline unsigned nicstride_lazy_ask(nicstride_lazy_t *h, bool release)
{
    if (h->state != NICSTRIDE_LAZY_WAITING || (release && h->number == 0))
        return 0;
    h->state = NICSTRIDE_LAZY_ASKED;
    h->release = release;
    return NICSTRIDE_LAZY_SEND_LOCK | (h->number != 0 ? NICSTRIDE_LAZY_SEND_OPERATION : 0) |
           (release ? NICSTRIDE_LAZY_SEND_RELEASE : 0);
}

/** The target grants the lock, and has dropped the rest. Returns what is to be sent now. */
static inline unsigned nicstride_lazy_granted(nicstride_lazy_t *h)
{
    if (h->state != NICSTRIDE_LAZY_ASKED)
        return 0;
    h->state = NICSTRIDE_LAZY_NOT;
    return (h->number != 0 ? NICSTRIDE_LAZY_SEND_OPERATION : 0) |
           (h->release ? NICSTRIDE_LAZY_SEND_RELEASE : 0);
}

/** The target has acknowledged what has numbers up to `acked`. */
static inline void nicstride_lazy_acknowledged(nicstride_lazy_t *h, uint64_t acked)
{
    if (h->state == NICSTRIDE_LAZY_ASKED && h->number != 0 && acked >= h->number)
        h->state = NICSTRIDE_LAZY_NOT;
}
