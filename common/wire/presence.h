/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Signs of life that the other processes of a node can read: is a process in MPI now?
 *
 * Who could copy by itself (single copy by the kernel) or let the target help (messages) wants to
 * know whether the target looks. Every process has one page in memory, of an anonymous file that
 * peers open through /proc, which the kernel allows to those whom it allows single copy. Nothing
 * of it is left when a process dies. Who waits for a process that is away knocks at its server
 * thread, through a pipe that is opened in the same way.
 */
#ifndef ONIC_PRESENCE_H
#define ONIC_PRESENCE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/support/clock.h"
#include "common/node/node.h"
#include "common/support/export.h"

typedef struct onic_peer onic_peer_t;

/** The page. Each member is alone in its cache line: the first changes all the time, the second
 *  seldom, so that readers keep it in their caches. */
typedef struct onic_presence {
    /** onic_ticks() when an MPI thread last progressed the wire. */
    _Alignas(64) atomic_uint_fast64_t ticks;
    /** The server thread stands in for the MPI threads. */
    _Alignas(64) atomic_bool away;
    /** There is a server thread. */
    atomic_bool helped;
    /** It sleeps while it stands in, for the so-many-th time, until it is knocked at or something
     *  comes by the network; else 0. */
    atomic_uint parked;
    /** Whose ticks: onic_ticks_clock(). Who has another cannot read them. */
    uint64_t clock;
    /** Memory that this process offers to others, once `offers` is set: the mover's area. */
    _Alignas(64) atomic_bool offers;
    onic_segment_key_t offer;
} onic_presence_t;

/** A process that waits in MPI, or calls it again and again, marks its page this often. */
#define ONIC_PRESENCE_USEC 5

/**
 * The page of a peer, or NULL where it cannot be had: on another node, where single copy is not
 * allowed, or where the peer counts ticks of another clock. Mapped once, and until the wire is
 * closed. The wire lock must be held.
 */
ONIC_EXPORT const onic_presence_t *onic_peer_presence(onic_peer_t *peer);

/** The rule: is what happened at tick `then` less than `ticks` ago at tick `now`? Clocks of two
 *  processors may differ a little: it may be of the future, and is recent then. Pure. */
static inline bool onic_presence_is_recent(uint64_t then, uint64_t now, uint64_t ticks)
{
    return (int64_t)(now - then) < (int64_t)ticks;
}

/** Was the peer in MPI less than so many ticks before `now`? A guess: it may leave at any time. No
 *  lock. Costs a cache miss for each call. */
static inline bool onic_presence_is_fresh(const onic_presence_t *presence, uint64_t now,
                                          uint64_t ticks)
{
    return onic_presence_is_recent(atomic_load_explicit(&presence->ticks, memory_order_relaxed),
                                   now, ticks);
}

/** Has the peer been away from MPI for long? No lock; seldom a cache miss. */
static inline bool onic_presence_is_away(const onic_presence_t *presence)
{
    return atomic_load_explicit(&presence->away, memory_order_relaxed);
}

/** Does the peer have a server thread that we can knock at, and can we see whether there is need
 * to? Once there is one it stays until the wire is closed. Opens a file, the first time. The wire
 * lock must be held. */
ONIC_EXPORT bool onic_peer_can_wake(onic_peer_t *peer);

/** Has the peer's server thread do what there is for the peer to do. A system call; no lock. Only
 *  where onic_peer_can_wake was true. */
ONIC_EXPORT void onic_peer_wake(const onic_peer_t *peer);

/** Shows this process's peers where its memory is to be found, or, with NULL, no longer. MPI thread
 *  that holds the wire open. */
ONIC_EXPORT void onic_presence_offer(const onic_segment_key_t *key);

/** What another process offers; false where it offers nothing (yet). Its pointer is that of
 *  onic_peer_presence. */
static inline bool onic_presence_offers(const onic_presence_t *presence, onic_segment_key_t *key)
{
    if (!atomic_load_explicit(&presence->offers, memory_order_acquire)) {
        return false;
    }
    *key = presence->offer;
    key->name[sizeof(key->name) - 1] = '\0';
    return true;
}

/** An MPI thread is in MPI now. Called by every progress of the wire, which is where all waits of
 *  MPI come by, and by waits that do not, on entering, now and then, and on leaving. Reads the
 * clock and stores to a line that this process owns unless a peer has just looked. */
ONIC_EXPORT void onic_presence_mark(void);

#endif
