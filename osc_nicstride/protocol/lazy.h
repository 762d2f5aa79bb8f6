/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file A lock that is held back: MPI_Win_lock has returned, but the target, which must be asked
 *  by message, is asked later, together with the first short operation and, where that stays the
 *  only one, with the release.
 *
 *      epoch                            round trips: held back   asked for at once
 *      lock, put, unlock                             1           2
 *      lock, put, flush, unlock                      1           2
 *      lock, get, flush, put, unlock                 2           3
 *
 *  What was sent together the target does if it can have the lock there and then; it acknowledges
 *  the operation, which also says that the lock was granted. If not it queues the request and drops
 *  the rest; the grant that comes in the end says that the rest is to be sent again. Pure; the
 *  caller serialises and sends. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "osc_nicstride/protocol/limits.h"

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
    unsigned type;   /**< of the lock */
    uint64_t since;  /**< as in lockq.h */
    bool release;    /**< the lock is given back with the operation */
    uint64_t number; /**< acknowledged once the operation is done; 0: there is no operation */
    size_t len;
    unsigned char operation[NICSTRIDE_LAZY_MAX];
} nicstride_lazy_t;

/** MPI_Win_lock, or the first use of a target after MPI_Win_lock_all. Nothing may be held back. */
static inline void nicstride_lazy_begin(nicstride_lazy_t *h, unsigned type, uint64_t since)
{
    h->state = NICSTRIDE_LAZY_WAITING;
    h->type = type;
    h->since = since;
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
