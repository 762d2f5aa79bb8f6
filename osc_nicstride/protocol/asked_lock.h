/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The lock of a target on another node, which an origin asks for by message.
 *
 *  The request is held back until the first operation, which goes along if it
 *  is short. The release goes along, too, if the epoch ends before the request has left. A target
 *  that can grant the lock at once handles these as well, and its grant says so. Otherwise it drops
 *  all but the request, which it queues; the origin sends the rest again when it has the lock. So a
 *  target keeps nothing for an origin without the lock. Nothing else is done under a lock before it
 *  is granted. Round trips to another node, and messages:
 *
 *                                  with the first operation   the lock is waited for first
 *      lock, put, unlock                    1, 2                       2, 5
 *      lock, get, flush, put, unlock        2, 5                       3, 7
 *
 *  An answer that comes when none is waited for, as after a loss, has no effect. Pure; the caller
 *  serialises, except for nicstride_asked_is_had. */
#pragma once

#include <stdbool.h>

typedef enum nicstride_asked_state {
    NICSTRIDE_ASKED_HAD,  /**< nothing is wanted, or the request was answered */
    NICSTRIDE_ASKED_HELD, /**< the request is held back */
    NICSTRIDE_ASKED_WAITS /**< the request was sent */
} nicstride_asked_state_t;

/** What an answer means for the operations of the epoch: the one that went with the request, and
 *  those that wait for the lock. */
typedef enum nicstride_answer {
    NICSTRIDE_ANSWER_NONE,  /**< all is well, or nobody waits for this answer */
    NICSTRIDE_ANSWER_AGAIN, /**< what went with the request must be sent again */
    NICSTRIDE_ANSWER_LOST   /**< the lock was refused: none will be done */
} nicstride_answer_t;

/** Zero-initialise. */
typedef struct nicstride_asked {
    nicstride_asked_state_t state;
    bool carries;  /**< an operation goes with the request */
    bool released; /**< the release goes with it, too */
    int refused;   /**< why the lock will never be granted, or 0 */
} nicstride_asked_t;

static inline void nicstride_asked_enter(nicstride_asked_t *a, nicstride_asked_state_t state)
{
    __atomic_store_n(&a->state, state, __ATOMIC_RELAXED);
}

/** Notes that the lock is wanted, but not yet asked for. */
static inline void nicstride_asked_hold(nicstride_asked_t *a)
{
    *a = (nicstride_asked_t){0};
    nicstride_asked_enter(a, NICSTRIDE_ASKED_HELD);
}

/** Notes that the lock is asked for; `carries`: an operation goes with the request. */
static inline void nicstride_asked_begin(nicstride_asked_t *a, bool carries)
{
    *a = (nicstride_asked_t){.carries = carries};
    nicstride_asked_enter(a, NICSTRIDE_ASKED_WAITS);
}

/** Notes that the release goes along, as the request has not left yet. */
static inline void nicstride_asked_release(nicstride_asked_t *a)
{
    a->released = a->carries;
}

/** True if nothing is held back or waited for. Any thread. If others ask for the lock meanwhile,
 *  false may be outdated. */
static inline bool nicstride_asked_is_had(const nicstride_asked_t *a)
{
    return __atomic_load_n(&a->state, __ATOMIC_RELAXED) == NICSTRIDE_ASKED_HAD;
}

/** Notes that the lock is granted, or, if `error` is not 0, refused. `done`: the operation was
 *  done. */
static inline nicstride_answer_t nicstride_asked_answer(nicstride_asked_t *a, int error, bool done)
{
    const bool again = a->carries && !done;

    if (a->state != NICSTRIDE_ASKED_WAITS)
        return NICSTRIDE_ANSWER_NONE;
    a->refused = error;
    a->carries = false;
    nicstride_asked_enter(a, NICSTRIDE_ASKED_HAD);
    return error != 0 ? NICSTRIDE_ANSWER_LOST
           : again    ? NICSTRIDE_ANSWER_AGAIN
                      : NICSTRIDE_ANSWER_NONE;
}

/** 0 if the lock is held; otherwise an error, which is `none` if there was no answer. */
static inline int nicstride_asked_error(const nicstride_asked_t *a, int none)
{
    return a->state == NICSTRIDE_ASKED_HAD ? a->refused : none;
}

/** Ends the epoch: no answer is waited for. */
static inline void nicstride_asked_end(nicstride_asked_t *a)
{
    *a = (nicstride_asked_t){0};
}
