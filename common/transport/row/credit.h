/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Credit: what a process may send another before it knows that the receiver is done with
 * what it has sent before. One credit for each peer, in bytes, for the messages of all components.
 * It bounds what all senders together can have a process keep to one pool, whatever they do.
 *
 *  Only messages that a receiver may keep take credit: their payload, their records and those of
 * the library. What a handler is done with when it returns takes none; the ring, or UCX, holds its
 *  sender back. Nor do control messages, replies and acknowledgements: a reply goes straight into a
 *  buffer that waits for it, and is paid for with its request at the process that makes it. So
 *  nothing that gives credit back waits for credit.
 *
 *  Who is done with a message? Of a one-sided operation the receiver is, by progress alone. What
 *  comes before its receive waits for the user, who may wait for an operation of the same sender
 *  first. So messages that may wait for a receive leave the last ONIC_CREDIT_FLOOR bytes to the
 *  others, and without credit only their header goes, and the payload when the receiver asks.
 *
 *  Both sides count bytes since the beginning. The receiver sends a sender its limit, up to which
 *  it may send in all. What a sender holds of the pool is its limit less what of its messages has
 *  come and gone again. All held together is never more than the pool. Messages of one sender that
 *  take credit arrive in their order; limits may come in any.
 *
 *  First credit. Every process has some from the beginning, published with the receiver's address.
 *  That of processes of the job that have not been met is set aside; that of others comes out of
 *  what is free when they are met, and makes the pool larger where nothing is.
 *
 *  Shares. With the sender itself among n that hold something, its limit is raised until it holds
 *  1/(n+1) of what the others leave: if all take what they can get, half of the pool is free for
 *  those who come next. If the first n senders are stopped they leave 1/(n+1), and the next one
 *  gets 1/(n+2) of that. A sender that does not lack credit gets no more than 1/(2n) of the pool
 *  for n processes of the job: most never use it.
 *
 *  Why nobody waits for ever. Take a sender whose operations have all come and gone. It holds what
 *  waits for receives, and what it may still send. Where the second is less than half the floor,
 * its limit is raised to a whole one, which always is its own (is_due, reserved). So a message of
 * half the floor has credit again, whatever the user does.
 *
 *  Pure. The caller serialises. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/support/export.h"

/** Credit that messages which may wait for a receive leave to all others. Half of it has room for
 *  any single one of these (osc_nicstride/protocol/limits.h). */
#define ONIC_CREDIT_FLOOR 12288

/* ---- the sender's side ----------------------------------------------------------------------- */

/** What this process may send to one peer, at first what that has published. Bytes in all. */
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

/** What one peer may send to this process. Zero until onic_credit_pool_meet; must stay where it is
 * until all that it has sent is freed. Bytes since the beginning, if not said otherwise. */
typedef struct onic_credit_user {
    uint64_t limit;   /**< that was sent to it */
    uint64_t arrived; /**< what came */
    uint64_t freed;   /**< what of that is gone */
    uint64_t look;    /**< when so much is freed it may be worth a new limit */
    uint64_t waits;   /**< bytes here that may wait for a receive */
    bool met;
    bool lost;
} onic_credit_user_t;

typedef struct onic_credit_pool {
    uint64_t bytes;     /**< of the pool */
    uint64_t fair;      /**< most that a sender gets that does not lack credit; 0: its share */
    uint64_t first;     /**< what each process may send from the beginning */
    uint64_t set_aside; /**< for those of the job that have not been met */
    uint64_t held;      /**< by all senders; with what is set aside at most bytes */
    uint64_t holders;   /**< senders that hold something */
} onic_credit_pool_t;

/** A pool of so many bytes; more where that is too little for a job of so many processes, at least
 *  1. `p->first` is what is to be published. */
ONIC_EXPORT void onic_credit_pool_init(onic_credit_pool_t *p, uint64_t bytes, uint64_t processes);

/** Enlarges the pool to so many bytes, unless it has as many. */
ONIC_EXPORT void onic_credit_pool_enlarge(onic_credit_pool_t *p, uint64_t bytes,
                                          uint64_t processes);

/** Counts a sender's first credit in, before anything of it arrives. */
ONIC_EXPORT void onic_credit_pool_meet(onic_credit_pool_t *p, onic_credit_user_t *s, bool of_job);

/** What a sender holds, bytes. */
static inline uint64_t onic_credit_pool_holds(const onic_credit_user_t *s)
{
    return s->limit - s->freed;
}

/** Raises a sender's limit as far as its share allows; returns it, to be sent. When one of the
 *  functions below returns true, and when a peer is met. `lacks`: it lacks credit. */
ONIC_EXPORT uint64_t onic_credit_pool_grant(onic_credit_pool_t *p, onic_credit_user_t *s,
                                            bool lacks);

/** The same for a sender that is known to be lost: it has what it had sent for so long. */
ONIC_EXPORT void onic_credit_pool_arrived_late(onic_credit_pool_t *p, onic_credit_user_t *s,
                                               uint64_t bytes);

/** A message of that cost came by credit; where `waits`, it may wait for a receive. */
static inline void onic_credit_pool_arrived(onic_credit_pool_t *p, onic_credit_user_t *s,
                                            uint64_t bytes, bool waits)
{
    if (s->lost)
        onic_credit_pool_arrived_late(p, s, bytes);
    s->arrived += bytes;
    s->waits += waits ? bytes : 0;
}

/** onic_credit_pool_freed, but for the most frequent case. */
ONIC_EXPORT bool onic_credit_pool_follow_freed(onic_credit_pool_t *p, onic_credit_user_t *s,
                                               uint64_t bytes, bool waits);

/** What had arrived by credit is gone. True where the sender should get a new limit now. */
static inline bool onic_credit_pool_freed(onic_credit_pool_t *p, onic_credit_user_t *s,
                                          uint64_t bytes, bool waits)
{
    const uint64_t freed = s->freed + bytes, waiting = s->waits - (waits ? bytes : 0);

    if (freed >= s->look || s->limit - freed < waiting + ONIC_CREDIT_FLOOR)
        return onic_credit_pool_follow_freed(p, s, bytes, waits);
    s->freed = freed;
    s->waits = waiting;
    p->held -= bytes;
    return false;
}

/** A sender lacks credit for a message of that cost, which leaves the floor to others. True where
 * it should get a new limit now. */
ONIC_EXPORT bool onic_credit_pool_lacks(onic_credit_pool_t *p, const onic_credit_user_t *s,
                                        uint64_t bytes);

/** A sender is lost: nothing comes from it any more, and it gets nothing. What it has sent and
 *  waits is still held until freed; the rest is free. */
ONIC_EXPORT void onic_credit_pool_forget(onic_credit_pool_t *p, onic_credit_user_t *s);

/* ---- both ------------------------------------------------------------------------------------ */

/** What one peer and this process may send each other. */
typedef struct onic_account {
    onic_credit_t credit;      /**< what this process may send */
    onic_credit_user_t sender; /**< what the peer may */
    uint64_t told;             /**< the limit that the peer was told last */
} onic_account_t;

/** What a limit travels in: its sender's name, as in all messages that name it. */
typedef struct onic_credit_limit {
    uint64_t name;
    uint64_t limit;
} onic_credit_limit_t;
