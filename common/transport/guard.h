/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The lock of the transport. While the program has less than MPI_THREAD_MULTIPLE and no
 *  server thread was ever started only one thread can be here, and takes the lock without an atomic
 *  exchange, which would take longer than the rest of a short message's way. The word says whether
 *  it is held. Pure. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

typedef struct onic_guard {
    _Alignas(64) atomic_uint held; /**< 1 while somebody holds the lock */
    /** A server thread was started. Set with the lock held and never cleared: a thread that forks
     *  may have seen it. */
    atomic_bool helped;
    pthread_t helper;    /**< the last such thread, with `helped`; lock held */
    const bool *threads; /**< true if several threads of the program may be in MPI */
} onic_guard_t;

/** True if the lock must be taken by an atomic exchange. For threads that may be in MPI, and
 *  helpers. */
static inline bool onic_guard_is_shared(const onic_guard_t *g)
{
    return *g->threads || atomic_load_explicit(&g->helped, memory_order_relaxed);
}

/** True in the server thread, whichever way it took the lock. May be true in a thread that was
 *  started after the server thread had ended. The lock is held. */
static inline bool onic_guard_is_helper(const onic_guard_t *g)
{
    return atomic_load_explicit(&g->helped, memory_order_relaxed) &&
           pthread_equal(pthread_self(), g->helper) != 0;
}

/** Takes the lock if it is free. Not recursive. For the same threads. */
static inline bool onic_guard_try(onic_guard_t *g)
{
    if (atomic_load_explicit(&g->held, memory_order_relaxed) != 0)
        return false;
    if (onic_guard_is_shared(g))
        return atomic_exchange_explicit(&g->held, 1, memory_order_acquire) == 0;
    atomic_store_explicit(&g->held, 1, memory_order_relaxed);
    return true;
}

static inline void onic_guard_release(onic_guard_t *g)
{
    atomic_store_explicit(&g->held, 0, memory_order_release);
}

/** What a thread that is about to fork finds. */
typedef enum onic_guard_fork {
    ONIC_GUARD_TAKEN, /**< it has taken the lock */
    ONIC_GUARD_BUSY,  /**< another thread holds the lock */
    ONIC_GUARD_ALONE  /**< only one thread uses the lock: others must leave it alone */
} onic_guard_fork_t;

/** Takes the lock if it is free and shared. Any thread, also one that never calls MPI. */
static inline onic_guard_fork_t onic_guard_try_fork(onic_guard_t *g)
{
    /* A thread that sees the helper also sees a lock that was held when the helper was started. */
    if (!*g->threads && !atomic_load_explicit(&g->helped, memory_order_acquire))
        return ONIC_GUARD_ALONE;
    return onic_guard_try(g) ? ONIC_GUARD_TAKEN : ONIC_GUARD_BUSY;
}
