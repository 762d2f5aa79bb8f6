/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Room for replies: what the gets and fetches of a process have asked for, of all targets
 *  and in all windows, is never more than it has for that. It reserves the bytes of a reply before
 *  it asks, and gives them back when they have come.
 *
 *  A request that finds no room stands in line, and none passes it: short replies that keep coming
 *  would keep a long one away for ever. What is first in line goes as soon as it fits.
 *
 *  Why nobody waits for ever. Targets answer without waiting for anything that the origin does, so
 *  what is out comes back, or is given back when its target is lost. What is kept with a lock has
 *  reserved before it is sent, and is sent with the next progress (lazy_lock.h).
 *
 *  Pure; the caller serialises. */
#ifndef NICSTRIDE_REPLIES_H
#define NICSTRIDE_REPLIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "osc_nicstride/protocol/limits.h"

/** A peer that replies are asked of, in some order of its own. Zero-initialise. */
typedef struct nicstride_asker {
    struct nicstride_asker *next;
    uint64_t bytes; /**< for which it stands in line; 0: it does not */
} nicstride_asker_t;

/** Zero-initialise but for `limit`, in bytes, at least four times NICSTRIDE_INLINE_MAX. */
typedef struct nicstride_replies {
    uint64_t limit;
    uint64_t out; /**< reserved */
    nicstride_asker_t *first, *last;
} nicstride_replies_t;

/** The most bytes to be asked for at a time. */
static inline uint64_t nicstride_reply_piece(const nicstride_replies_t *r)
{
    return r->limit / 2 < NICSTRIDE_GET_PIECE ? r->limit / 2 : NICSTRIDE_GET_PIECE;
}

static inline bool nicstride_reply_fits(const nicstride_replies_t *r, uint64_t bytes)
{
    return r->out + bytes <= r->limit;
}

/** Takes one that does not ask any more out of the line. */
static inline void nicstride_reply_leave(nicstride_replies_t *r, nicstride_asker_t *a)
{
    nicstride_asker_t *before = NULL;

    if (a->bytes == 0)
        return;
    for (nicstride_asker_t *other = r->first; other != a; other = other->next)
        before = other;
    *(before != NULL ? &before->next : &r->first) = a->next;
    if (r->last == a)
        r->last = before;
    a->bytes = 0;
}

/** May it ask for `bytes` of reply now, from 1 to nicstride_reply_piece? If not it stands in line
 *  from now on; if so it does not any more, and is to reserve them. */
static inline bool nicstride_reply_may_ask(nicstride_replies_t *r, nicstride_asker_t *a,
                                           uint64_t bytes)
{
    if ((r->first == NULL || r->first == a) && nicstride_reply_fits(r, bytes)) {
        nicstride_reply_leave(r, a);
        return true;
    }
    if (a->bytes == 0) {
        a->next = NULL;
        *(r->last != NULL ? &r->last->next : &r->first) = a;
        r->last = a;
    }
    a->bytes = bytes;
    return false;
}

/** The first in line, where there is room for what it wants: it is to ask again now, or leave. */
static inline nicstride_asker_t *nicstride_reply_next(const nicstride_replies_t *r)
{
    return r->first != NULL && nicstride_reply_fits(r, r->first->bytes) ? r->first : NULL;
}

#endif
