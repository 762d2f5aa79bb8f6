/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Credit: who may send payload along with a message before it is known that a receive waits for it.
 * It bounds the memory of payload that waits (unexpected, held or parked) to one pool of each
 * process, whatever its peers do.
 *
 * A sender that has no credit sends the header alone, and the payload when the receiver asks for
 * it: nobody ever waits for credit. Headers, and messages with tags below 0, need none.
 *
 * Both sides count bytes since the beginning. The receiver tells a sender its limit, up to which it
 * may send in all; the sender counts what it has sent. What a sender holds of the pool is its limit
 * less what of its payload has come and gone again: credit that it has not used, payload under way,
 * payload that waits. All held together is never more than the pool.
 *
 * Shares. With the sender itself among n that hold something, its limit is raised until it holds
 * 1/(n+1) of what the others leave. If all take what they can get, each has 1/(2n) of the pool, and
 * half of it is free for those who come next. If senders take it one after another and never give
 * anything back, being stopped, then the first n of them leave 1/(n+1) of the pool, and the next
 * one gets 1/(n+2) of that: nobody is starved. Senders that hold more than their share, since they
 * were here first, and do not use it, are asked to give it back (superpipe_pool_recall).
 *
 * No message is needed to ask for credit: a header without its payload says it. Counts are sums, so
 * it does not matter which of the messages overtake each other.
 *
 * Pure. Peers' values are not trusted. The caller serialises: one lock for each superpipe_credit_t,
 * one for the pool with all its senders.
 */
#ifndef SUPERPIPE_CREDIT_H
#define SUPERPIPE_CREDIT_H

#include <stdbool.h>
#include <stdint.h>

/* ---- the sender's side ----------------------------------------------------------------------- */

/** What this process may send to one peer. Zero at first. Bytes since the beginning. */
typedef struct superpipe_credit {
    uint64_t sent;  /**< or given back */
    uint64_t limit; /**< at least sent */
} superpipe_credit_t;

/** May so many bytes of payload go along with their header? Then they are counted. Not to be asked
 *  for messages with tags below 0, which need no credit. */
static inline bool superpipe_credit_take(superpipe_credit_t *c, uint64_t bytes)
{
    if (c->limit - c->sent < bytes)
        return false;
    c->sent += bytes;
    return true;
}

/** The peer has told the limit; one that was told before and comes later changes nothing. */
static inline void superpipe_credit_told(superpipe_credit_t *c, uint64_t limit)
{
    if (limit > c->limit)
        c->limit = limit;
}

/** The peer asks for up to `most` bytes back. Returns how many it gets, to be told also if that is
 *  none. */
static inline uint64_t superpipe_credit_give_back(superpipe_credit_t *c, uint64_t most)
{
    const uint64_t unused = c->limit - c->sent, bytes = most < unused ? most : unused;

    c->sent += bytes;
    return bytes;
}

/* ---- the receiver's side --------------------------------------------------------------------- */

/** What one peer may send to this process. The caller's record, zero at first; must stay where it
 *  is until superpipe_pool_forget, and until all of its payload is freed. Bytes since the
 * beginning.
 */
typedef struct superpipe_sender {
    struct superpipe_sender *next, *prev; /**< round those that hold something; NULL: not there */
    uint64_t limit;                       /**< that it was told */
    uint64_t arrived;                     /**< payload that came, and credit that it gave back */
    uint64_t freed;                       /**< payload that is gone, and the same credit */
    bool recalled;                        /**< it was asked to give back, and has not answered */
    bool lost;
} superpipe_sender_t;

typedef struct superpipe_pool {
    uint64_t bytes;             /**< of the pool */
    uint64_t held;              /**< by all senders, at most bytes */
    uint64_t holders;           /**< senders that hold something */
    superpipe_sender_t *holder; /**< one of them, the next to be looked at; NULL: none */
} superpipe_pool_t;

void superpipe_pool_init(superpipe_pool_t *p, uint64_t bytes);

/** What a sender holds, bytes. */
static inline uint64_t superpipe_pool_holds(const superpipe_sender_t *s)
{
    return s->limit - s->freed;
}

/** Raises a sender's limit as far as its share allows; returns it, to be told. When one of the
 *  functions below says so; also when a peer is met, that its first message may have payload. */
uint64_t superpipe_pool_grant(superpipe_pool_t *p, superpipe_sender_t *s);

/** Payload of so many bytes came, by credit. False where that is more than the sender may send:
 *  nothing has changed, and the peer is broken. */
static inline bool superpipe_pool_arrived(superpipe_pool_t *p, superpipe_sender_t *s,
                                          uint64_t bytes)
{
    (void)p;
    if (bytes > s->limit - s->arrived)
        return false;
    s->arrived += bytes;
    return true;
}

/** superpipe_pool_freed, but for the most frequent case. */
bool superpipe_pool_follow_freed(superpipe_pool_t *p, superpipe_sender_t *s, uint64_t bytes);

/** Payload that had arrived by credit is gone: received or discarded. True where the sender should
 *  get a new limit now. */
static inline bool superpipe_pool_freed(superpipe_pool_t *p, superpipe_sender_t *s, uint64_t bytes)
{
    /* No share is more than half of the pool, and who holds half of its share gets nothing new. */
    if (superpipe_pool_holds(s) <= p->bytes / 4 + bytes)
        return superpipe_pool_follow_freed(p, s, bytes);
    s->freed += bytes;
    p->held -= bytes;
    return false;
}

/** A header came without its payload of so many bytes, for want of credit. True where the sender
 *  should get a new limit now. */
bool superpipe_pool_asked(superpipe_pool_t *p, const superpipe_sender_t *s, uint64_t bytes);

/**
 * A sender that is to be asked to give credit back, and how much at most; NULL where none is found
 * among the few that are looked at. To be called when superpipe_pool_asked is, after the grant.
 */
superpipe_sender_t *superpipe_pool_recall(superpipe_pool_t *p, uint64_t *most_p);

/** A sender has answered a recall, and gives back so many bytes. False where it has not got as
 * many, or was not asked: nothing has changed. Then true, and it may get a new limit when it asks.
 */
bool superpipe_pool_given_back(superpipe_pool_t *p, superpipe_sender_t *s, uint64_t bytes);

/** A sender is lost: nothing comes from it any more, and it gets nothing. What of its payload waits
 *  is still held until freed; the rest is free. */
void superpipe_pool_forget(superpipe_pool_t *p, superpipe_sender_t *s);

#endif
