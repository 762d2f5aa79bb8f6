/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Signs of life that the other processes of a node can read, and a pipe by which they wake a
 *  process's server thread. A process's signs stand at the beginning of its inbox (inbox.h), whose
 *  file peers open through /proc, which the kernel allows where it allows single copy. The pipe is
 *  opened likewise. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/transport/shm/node.h"
#include "common/support/clock.h"
#include "common/support/export.h"

/** The page. Each member is alone in its cache line: the first changes all the time, the second
 *  seldom, so that readers keep it in their caches. */
typedef struct onic_presence {
    /** onic_now_nsec() when an MPI thread last progressed the transport. */
    _Alignas(64) atomic_uint_fast64_t seen;
    /** The server thread stands in for the MPI threads. */
    _Alignas(64) atomic_bool away;
    /** There is a server thread. */
    atomic_bool helped;
    /** The number of its present sleep while it stands in; 0 while it is awake. */
    atomic_uint parked;
    /** Memory that this process offers to others, once `offers` is set: the pipeline's receive
     *  pool. */
    _Alignas(64) atomic_bool offers;
    onic_segment_key_t offer;
} onic_presence_t;

/** A process that waits in MPI, or calls it again and again, marks its page this often. */
#define ONIC_PRESENCE_NSEC 5000

/* ---- another process's page ---------------------------------------------------------------- */

/** Nanoseconds for which the peer had not been in MPI by `now`, as far as is seen here: a guess,
 *  since it may leave at any time. 0 where it was in it after that. No lock. Costs a cache miss for
 *  each call. */
static inline uint64_t onic_presence_unseen(const onic_presence_t *presence, uint64_t now)
{
    const uint64_t seen = atomic_load_explicit(&presence->seen, memory_order_relaxed);

    return now > seen ? now - seen : 0;
}

/** True if the peer has been away from MPI for long. No lock; seldom a cache miss. */
static inline bool onic_presence_is_away(const onic_presence_t *presence)
{
    return atomic_load_explicit(&presence->away, memory_order_relaxed);
}

/** What another process offers; false where it offers nothing (yet). */
static inline bool onic_presence_offers(const onic_presence_t *presence, onic_segment_key_t *key)
{
    if (!atomic_load_explicit(&presence->offers, memory_order_acquire))
        return false;
    *key = presence->offer;
    key->name[sizeof(key->name) - 1] = '\0';
    return true;
}

/* ---- this process's page ------------------------------------------------------------------- */

/** Takes a zeroed page for this process's signs. NULL: no process looks, and the functions below
 *  have no effect. */
void onic_presence_use(onic_presence_t *page);

/** This process's page, to be written; never NULL. Any thread. */
onic_presence_t *onic_presence_mine(void);

/** An MPI thread is in MPI now. Any thread. */
ONIC_EXPORT void onic_presence_mark(void);

/** Shows this process's peers where its memory is, or, with NULL, no longer. MPI thread. */
ONIC_EXPORT void onic_presence_offer(const onic_segment_key_t *key);

/* ---- the pipe ------------------------------------------------------------------------------ */

/** What is written to it: by another process, or by the thread's own. */
enum { ONIC_WAKE_PEER = 'p', ONIC_WAKE_SELF = 's' };

/** Opens this process's pipe: its server thread reads what it and others write; -1: there is none.
 *  One descriptor has both ends. */
int onic_wake_pipe_open(void);
void onic_wake_pipe_close(int fd);

/** Ends the sleep of the thread that polls the other end. A system call; any thread. */
void onic_wake_pipe_write(int fd, char what);

/** True if this process can open another one's pipe. System calls. */
bool onic_wake_can(const onic_file_key_t *pipe);

/** Ends the sleep of that process's server thread: opens its pipe for that, so that no descriptor
 *  stands for each peer. System calls; any thread. */
void onic_wake_peer(const onic_file_key_t *pipe);

/** Reads what was written; true if another process has written. Does not wait. */
bool onic_wake_pipe_read(int fd);
