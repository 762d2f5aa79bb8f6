/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Credit: what a process may send before it is known that a receive waits for it. It bounds
 *  the memory of messages that wait with their data to one pool of each process, whatever its peers
 *  do, with their records and those of the library. Without credit the header goes alone, and the
 *  payload when the receiver asks for it. Headers cost nothing: each has a request of its user or a
 *  copy at its sender, which are bounded there.
 *
 *  Both sides count bytes since the beginning. The receiver sends a sender its limit, up to which
 *  it may send in all. What a sender holds of the pool is its limit less what of its messages has
 *  come and gone again. All held together is never more than the pool.
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
 *  Counts are sums, so it does not matter which messages overtake each other. Pure. The caller
 *  serialises: one lock for each superpipe_credit_t, one for the pool. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/** Bytes that a message costs beside its payload: its record at a receiver that does not want it
 *  yet, with its part of the tables there. Both sides must have the same. */
#define SUPERPIPE_RECORD 320

/* ---- the sender's side ----------------------------------------------------------------------- */

/** What this process may send to one peer, at first what that has published. Bytes in all. */
typedef struct superpipe_credit {
    uint64_t sent;
    uint64_t limit; /**< at least sent */
} superpipe_credit_t;

/** May a message of that cost go? Then it is counted. */
static inline bool superpipe_credit_take(superpipe_credit_t *c, uint64_t bytes)
{
    if (c->limit - c->sent < bytes)
        return false;
    c->sent += bytes;
    return true;
}

/** A limit has come from the peer; an older one that comes later changes nothing. */
static inline void superpipe_credit_raise(superpipe_credit_t *c, uint64_t limit)
{
    if (limit > c->limit)
        c->limit = limit;
}

/* ---- the receiver's side --------------------------------------------------------------------- */

/** What one peer may send to this process. Zero until superpipe_pool_meet; must stay where it is
 *  until all that it has sent is freed. Bytes since the beginning. */
typedef struct superpipe_sender {
    uint64_t limit;   /**< that was sent to it */
    uint64_t arrived; /**< what came */
    uint64_t freed;   /**< what of that is gone */
    uint64_t look;    /**< when so much is freed it may be worth a new limit */
    bool lost;
} superpipe_sender_t;

typedef struct superpipe_pool {
    uint64_t bytes;     /**< of the pool */
    uint64_t fair;      /**< most that a sender gets that does not lack credit; 0: its share */
    uint64_t first;     /**< what each process may send from the beginning */
    uint64_t set_aside; /**< for those of the job that have not been met */
    uint64_t held;      /**< by all senders; with what is set aside at most bytes */
    uint64_t holders;   /**< senders that hold something */
} superpipe_pool_t;

/** A pool of so many bytes; more where that is too little for a job of so many processes, at least
 *  1. `p->first` is what is to be published. */
void superpipe_pool_init(superpipe_pool_t *p, uint64_t bytes, uint64_t processes);

/** A sender is met, before anything of it arrives: it has the first credit. */
void superpipe_pool_meet(superpipe_pool_t *p, superpipe_sender_t *s, bool of_job);

/** What a sender holds, bytes. */
static inline uint64_t superpipe_pool_holds(const superpipe_sender_t *s)
{
    return s->limit - s->freed;
}

/** Raises a sender's limit as far as its share allows; returns it, to be sent. When one of the
 *  functions below returns true, and when a peer is met. `lacks`: it lacks credit. */
uint64_t superpipe_pool_grant(superpipe_pool_t *p, superpipe_sender_t *s, bool lacks);

/** A message of that cost came, by credit. */
static inline void superpipe_pool_arrived(superpipe_sender_t *s, uint64_t bytes)
{
    s->arrived += bytes;
}

/** superpipe_pool_freed, but for the most frequent case. */
bool superpipe_pool_follow_freed(superpipe_pool_t *p, superpipe_sender_t *s, uint64_t bytes);

/** What had arrived by credit is gone. True where the sender should get a new limit now. */
static inline bool superpipe_pool_freed(superpipe_pool_t *p, superpipe_sender_t *s, uint64_t bytes)
{
    if (s->freed + bytes >= s->look)
        return superpipe_pool_follow_freed(p, s, bytes);
    s->freed += bytes;
    p->held -= bytes;
    return false;
}

/** A sender lacks credit for a message of that cost. True where it should get a new limit now. */
bool superpipe_pool_lacks(superpipe_pool_t *p, const superpipe_sender_t *s, uint64_t bytes);

/** A sender is lost: nothing comes from it any more, and it gets nothing. What it has sent and
 *  waits is still held until freed; the rest is free. */
void superpipe_pool_forget(superpipe_pool_t *p, superpipe_sender_t *s);
