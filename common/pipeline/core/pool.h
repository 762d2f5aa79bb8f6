/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Ownership of the buffers of a receive pool, in memory shared by the processes of a node,
 * so that a sender leases buffers without a message. Pure.
 *
 *  The owner word of each buffer is authoritative: a process that changes it from 0 to its own
 * number owns the buffer. The mask of free buffers only serves to find one fast. A process that
 * dies between the two steps leaves a buffer that nobody owns and that is not in the mask; the
 * receiver puts it back (onic_pool_mend), and a process that was only slow does not get it.
 *
 *  Shares. A process gets at most half of the free buffers, but at least one. A process that gets
 * none is counted as waiting, and all others leave one free buffer for each waiting process, so it
 * gets a buffer after those ahead of it. The count is reset now and then, because some waiting
 * processes send by other means.
 *
 *  Leases rotate through the receive pool, because a buffer that was just used is still in the
 * caches of its receiver. But a buffer that was never used has no memory yet, and allocating that
 * takes longer than ten transfers gain. So leases rotate among the first buffers only, unless all
 * of these are in use, and among twice as many each time these have been used often enough. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/pipeline/core/pipe.h"
#include "common/support/export.h"
#include "common/support/life.h"

/** The number of buffers among which leases rotate at first. */
#define ONIC_POOL_ROUND 8

/** The words of the whole pool. */
typedef struct onic_pool_words {
    _Alignas(64) _Atomic uint64_t free; /**< a bit for each free buffer */
    _Atomic uint32_t next_lease;        /**< where the next lease begins: a hint */
    _Atomic uint32_t round;             /**< number of buffers among which leases rotate: a hint */
    _Atomic uint32_t uses;              /**< uses of these since their number last grew */
    _Atomic uint32_t releases;          /**< leases that were released */
    _Alignas(64) _Atomic uint64_t waiting; /**< upper half: number of the count; lower: count */
} onic_pool_words_t;

/** The words of a buffer: one cache line written by its sender, and one written by its receiver. */
typedef struct onic_rx_buffer_words {
    _Alignas(64) _Atomic uint64_t owner; /**< 0: nobody */
    _Atomic uint64_t word;               /**< the sender's (pipe.h) */
    _Alignas(64) _Atomic uint64_t acknowledged;
} onic_rx_buffer_words_t;

/** A pool as one process sees it. */
typedef struct onic_pool {
    onic_pool_words_t *words;
    onic_rx_buffer_words_t *buffer;
    unsigned nbuffers; /**< 1 .. ONIC_RX_BUFFERS_MAX; not read from shared memory */
} onic_pool_t;

/** A process's state for a pool between two attempts. Initially all 0. */
typedef struct onic_pool_wait {
    bool waits;
    uint32_t count; /**< the number of the count that includes it */
} onic_pool_wait_t;

/** How the memory of a receive pool is divided. */
typedef struct onic_pool_shape {
    unsigned nbuffers;
    uint32_t buffer_bytes;
} onic_pool_shape_t;

/** Divides `rx_pool` bytes into buffers of `buffer` bytes. If that is 0, of 32 KiB, or longer if
 *  there would be more than ONIC_RX_BUFFERS_MAX, or shorter if fewer than 4. Sizes are multiples of
 *  4 KiB; there is at least 1 buffer. */
ONIC_EXPORT onic_pool_shape_t onic_pool_cut(size_t rx_pool, size_t buffer);

/** Makes all buffers free, with nobody waiting. Called by the receiver, before others see the
 *  memory. */
ONIC_EXPORT void onic_pool_init(const onic_pool_t *pool);

/** Leases up to `want` > 0 buffers for `owner` (not 0), with all words 0, and returns them as a
 *  mask; 0 if there is none now. Any thread of any process; one at a time for each `wait`. */
ONIC_EXPORT uint64_t onic_pool_take(const onic_pool_t *pool, uint64_t owner, unsigned want,
                                    onic_pool_wait_t *wait);

/** Frees those of `buffers` that `owner` has. Called by the receiver, or by the owner before anyone
 *  else knows of the lease. Returns how many buffers of the pool were in use just before; 0: none
 *  was freed. */
ONIC_EXPORT unsigned onic_pool_release(const onic_pool_t *pool, uint64_t owner, uint64_t buffers);

/** True if `owner` has all of `buffers`, which are at least one. */
ONIC_EXPORT bool onic_pool_has(const onic_pool_t *pool, uint64_t owner, uint64_t buffers);

/** The mask of the first `n` buffers. */
static inline uint64_t onic_buffers_first(unsigned n)
{
    return n < 64 ? (UINT64_C(1) << n) - 1 : UINT64_MAX;
}

static inline uint64_t onic_pool_all(const onic_pool_t *pool)
{
    return onic_buffers_first(pool->nbuffers);
}

/** Called by the receiver, by one thread at a time, some milliseconds apart: puts back buffers that
 *  were neither in the mask nor owned, both now and at the call before (`lost`, 0 at first).
 *  Returns the buffers with owners. */
ONIC_EXPORT uint64_t onic_pool_mend(const onic_pool_t *pool, uint64_t *lost);

/** The owner of this buffer; 0: nobody. */
static inline uint64_t onic_pool_owner(const onic_pool_t *pool, unsigned buffer)
{
    return atomic_load_explicit(&pool->buffer[buffer].owner, memory_order_acquire);
}

/* ---- owners ---------------------------------------------------------------------------------- */

/** The number of a process as an owner of buffers; 0 if the process is not known. */
ONIC_EXPORT uint64_t onic_owner_of(const onic_life_t *life);

/** The process with that number, in the namespaces of `mine`, which shares the memory. */
ONIC_EXPORT onic_life_t onic_owner_life(uint64_t owner, const onic_life_t *mine);
