/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Credit: what a process may send another before it knows that the receiver is done with
 *  what it has sent before. One credit for each peer, in bytes, for the messages of all components.
 *
 *  Only messages that a receiver may keep take credit: their payload, their records and those of
 *  the library. What a handler is done with when it returns takes none; the ring, or UCX, holds its
 *  sender back. Nor do control messages, replies and acknowledgements: a reply goes straight into a
 *  buffer that waits for it, and is paid for with its request at the process that makes it. So
 *  nothing that gives credit back waits for credit.
 *
 *  Each process of a job has the same part of the receiver's memory, its window, for good: what it
 *  has sent and the receiver is not done with is no more than that. The window is published with
 *  the receiver's address. Both sides count bytes since the beginning, and the receiver tells a
 *  sender its limit, up to which it may send in all: what it is done with, and the window. Limits
 *  may come in any order; messages of one sender that take credit arrive in theirs.
 *
 *  Who is done with a message? Of a one-sided operation the receiver is, by progress alone. What
 *  comes before its receive waits for the user, who may wait for an operation of the same sender
 *  first. So messages that may wait for a receive leave the last ONIC_CREDIT_FLOOR bytes to the
 *  others, and without credit only their header goes, and the payload when the receiver asks.
 *
 *  Why no operation waits for ever. Take a sender whose operations have all come and gone, and
 *  that has less than half a floor left. The messages that wait for receives left a whole floor
 *  when they were sent, so the limit can grow by more than half of one, and has been told
 *  (onic_credit_freed): a message of half the floor has credit again, whatever the user does.
 *
 *  Pure. The caller serialises. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Credit that messages which may wait for a receive leave to all others. Half of it has room for
 *  any single one of these (osc_nicstride/protocol/limits.h). */
#define ONIC_CREDIT_FLOOR 12288

/** The least window: twice the floor. */
#define ONIC_CREDIT_LEAST (2 * ONIC_CREDIT_FLOOR)

/** The window of each of so many processes, at least 1, that share so many bytes. */
static inline uint64_t onic_credit_window(uint64_t bytes, uint64_t processes)
{
    const uint64_t part = bytes / processes;

    return part > ONIC_CREDIT_LEAST ? part : ONIC_CREDIT_LEAST;
}

/* ---- the sender's side ----------------------------------------------------------------------- */

/** What this process may send to one peer, at first the window that has published. Bytes in all. */
typedef struct onic_credit {
    uint64_t sent;
    uint64_t limit; /**< at least sent */
} onic_credit_t;

/** Bytes for which there is credit now, for messages that leave `floor` of it to others. */
static inline uint64_t onic_credit_left(const onic_credit_t *c, uint64_t floor)
{
    const uint64_t left = c->limit - c->sent;

    return left > floor ? left - floor : 0;
}

/** True if a message of that cost may go; then it is counted. `floor`: 0, or ONIC_CREDIT_FLOOR. */
static inline bool onic_credit_take(onic_credit_t *c, uint64_t bytes, uint64_t floor)
{
    if (onic_credit_left(c, floor) < bytes)
        return false;
    c->sent += bytes;
    return true;
}

/** Gives back the credit of a message that was not sent. */
static inline void onic_credit_return(onic_credit_t *c, uint64_t bytes)
{
    c->sent -= bytes;
}

/** Takes over a limit from the peer. An older one that comes late changes nothing. */
static inline void onic_credit_raise(onic_credit_t *c, uint64_t limit)
{
    if (limit > c->limit)
        c->limit = limit;
}

/* ---- the receiver's side --------------------------------------------------------------------- */

/** What one peer may send to this process. Bytes since the beginning, but for the first. */
typedef struct onic_credit_user {
    uint64_t window;  /**< at least ONIC_CREDIT_LEAST; no less than the peer knows of */
    uint64_t arrived; /**< what came by credit */
    uint64_t freed;   /**< what of that is gone */
    uint64_t told;    /**< the limit that the peer knows: at first its window */
} onic_credit_user_t;

/** What had arrived by credit is gone. True where the sender should be told its new limit: it can
 *  grow by half of what may wait for receives, or the sender may lack credit. */
static inline bool onic_credit_freed(onic_credit_user_t *s, uint64_t bytes)
{
    s->freed += bytes;
    const uint64_t more = s->freed + s->window - s->told;

    return more >= (s->window - ONIC_CREDIT_FLOOR) / 2 ||
           (more >= ONIC_CREDIT_FLOOR / 2 && s->told - s->arrived < ONIC_CREDIT_FLOOR);
}

/** The new limit, which is told now. */
static inline uint64_t onic_credit_limit(onic_credit_user_t *s)
{
    return s->told = s->freed + s->window;
}

/* ---- both ------------------------------------------------------------------------------------ */

/** What one peer and this process may send each other. */
typedef struct onic_account {
    onic_credit_t credit;      /**< what this process may send */
    onic_credit_user_t sender; /**< what the peer may */
} onic_account_t;

/** What a limit travels in: its sender's name, as in all messages that name it. */
typedef struct onic_credit_limit {
    uint64_t name;
    uint64_t limit;
} onic_credit_limit_t;
