/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The free buffers of a receive pool, in memory shared by the processes of a node, so that a
 *  sender leases buffers without a message. Pure.
 *
 *  A process gets at most half of the free buffers, but at least one. One that gets none sends by
 *  other means. Buffers stay leased if their sender dies before its message has left, or if it has
 *  written a word that cannot be.
 *
 *  Leases rotate through the receive pool, because a buffer that was just used is still in the
 *  caches of its receiver. But a buffer that was never used has no memory yet, and allocating that
 *  takes longer than ten transfers gain. So leases rotate among the first buffers only, unless all
 *  of these are in use, and among twice as many each time these have been used often enough. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/pipeline/core/pipe.h"
#include "common/support/export.h"

/** The number of buffers among which leases rotate at first. */
#define ONIC_POOL_ROUND 8

/** The words of the whole pool. */
typedef struct onic_pool_words {
    _Alignas(64) _Atomic uint64_t free; /**< a bit for each free buffer */
    _Atomic uint32_t next_lease;        /**< where the next lease begins: a hint */
    _Atomic uint32_t round;             /**< number of buffers among which leases rotate: a hint */
    _Atomic uint32_t uses;              /**< uses of these since their number last grew */
} onic_pool_words_t;

/** The words of a buffer: one cache line written by its sender, and one written by its receiver. */
typedef struct onic_rx_buffer_words {
    _Alignas(64) _Atomic uint64_t word; /**< the sender's (pipe.h) */
    _Alignas(64) _Atomic uint64_t acknowledged;
} onic_rx_buffer_words_t;

/** A pool as one process sees it. */
typedef struct onic_pool {
    onic_pool_words_t *words;
    onic_rx_buffer_words_t *buffer;
    unsigned nbuffers; /**< 1 .. ONIC_RX_BUFFERS_MAX; not read from shared memory */
} onic_pool_t;

/** How the memory of a receive pool is divided. */
typedef struct onic_pool_shape {
    unsigned nbuffers;
    uint32_t buffer_bytes;
} onic_pool_shape_t;

/** Divides `rx_pool` bytes into buffers of `buffer` bytes. If that is 0, of 32 KiB, or longer if
 *  there would be more than ONIC_RX_BUFFERS_MAX, or shorter if fewer than 4. Sizes are multiples of
 *  4 KiB; there is at least 1 buffer. */
ONIC_EXPORT onic_pool_shape_t onic_pool_cut(size_t rx_pool, size_t buffer);

/** Makes all buffers free. Called by the receiver, before others see the memory. */
ONIC_EXPORT void onic_pool_init(const onic_pool_t *pool);

/** Leases up to `want` > 0 buffers, with all words 0, and returns them as a mask; 0 if there is
 *  none now. Any thread of any process. */
ONIC_EXPORT uint64_t onic_pool_take(const onic_pool_t *pool, unsigned want);

/** Frees leased buffers. Called by the receiver, or by the leaseholder before anyone else knows of
 *  the lease. Returns how many buffers of the pool were in use just before. */
ONIC_EXPORT unsigned onic_pool_release(const onic_pool_t *pool, uint64_t buffers);

/** The mask of the first `n` buffers. */
static inline uint64_t onic_buffers_first(unsigned n)
{
    return n < 64 ? (UINT64_C(1) << n) - 1 : UINT64_MAX;
}

/** How many buffers would hold `bytes` > 0, at most all that a pool can have. */
static inline unsigned onic_buffers_for(uint64_t bytes, uint32_t buffer_bytes)
{
    const uint64_t n = (bytes - 1) / buffer_bytes + 1;

    return n < ONIC_RX_BUFFERS_MAX ? (unsigned)n : ONIC_RX_BUFFERS_MAX;
}

static inline uint64_t onic_pool_all(const onic_pool_t *pool)
{
    return onic_buffers_first(pool->nbuffers);
}

/** True if all of `buffers`, which are at least one, exist and are leased. */
static inline bool onic_pool_has_leased(const onic_pool_t *pool, uint64_t buffers)
{
    const uint64_t free = atomic_load_explicit(&pool->words->free, memory_order_relaxed);

    return buffers != 0 && (buffers & (free | ~onic_pool_all(pool))) == 0;
}
