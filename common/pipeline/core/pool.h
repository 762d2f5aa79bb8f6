/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The owners of the buffers of a receive pool, in memory that the processes of a node share,
 *  so that a sender leases buffers without a message. Pure.
 *
 *  Each buffer has an owner word, which is the truth: a process that changes it from 0 to its own
 *  number has the buffer. The mask of free buffers is there to find one fast. A process that dies
 *  between the two leaves a buffer that nobody owns and that is not in the mask; the receiver puts
 *  it back (onic_pool_mend), and a taker that was only slow loses it.
 *
 *  Shares. A process gets at most half of what is free; at least one. One that gets nothing is
 *  counted as waiting, and for each of those all others leave one free buffer, so it gets a buffer
 *  after those ahead of it. The count is forgotten now and then, because some that waited send by
 *  other means.
 *
 *  Leases go round in the receive pool: a buffer that was used a moment ago still sits in the
 *  caches of its receiver. But a buffer that was never used has no memory yet, and giving it some
 *  takes longer than ten transfers gain; so they go round among the first buffers alone, unless all
 *  of these are in use, and among twice as many each time that these have been used often
 *  enough. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/pipeline/core/pipe.h"
#include "common/support/export.h"
#include "common/support/life.h"

/** Leases go round among so many buffers at first. */
#define ONIC_POOL_ROUND 8

/** The words of the whole pool. */
typedef struct onic_pool_words {
    _Alignas(64) _Atomic uint64_t free;    /**< a bit for each free buffer */
    _Atomic uint32_t next_lease;           /**< where the next lease begins: a hint */
    _Atomic uint32_t round;                /**< buffers among which leases go round: a hint */
    _Atomic uint32_t uses;                 /**< of these, since they have become so many */
    _Atomic uint32_t releases;             /**< leases that were released */
    _Alignas(64) _Atomic uint64_t waiting; /**< upper half: which count; lower half: the count */
} onic_pool_words_t;

/** The words of a buffer: a line that its sender writes, and one that its receiver writes. */
typedef struct onic_rx_buffer_words {
    _Alignas(64) _Atomic uint64_t owner; /**< 0: nobody */
    _Atomic uint64_t word;               /**< of the sender (pipe.h) */
    _Alignas(64) _Atomic uint64_t acknowledged;
} onic_rx_buffer_words_t;

/** A pool as one process sees it. */
typedef struct onic_pool {
    onic_pool_words_t *words;
    onic_rx_buffer_words_t *buffer;
    unsigned nbuffers; /**< 1 .. ONIC_RX_BUFFERS_MAX; not read from shared memory */
} onic_pool_t;

/** What a process keeps of a pool between two attempts. All 0 at first. */
typedef struct onic_pool_wait {
    bool waits;
    uint32_t count; /**< which count it is in */
} onic_pool_wait_t;

/** How the memory of a receive pool is cut. */
typedef struct onic_pool_shape {
    unsigned nbuffers;
    uint32_t buffer_bytes;
} onic_pool_shape_t;

/** Cuts `rx_pool` bytes into buffers of `buffer` bytes, or, where that is 0, of 32 KiB, longer
 *  where there would be more than ONIC_RX_BUFFERS_MAX, and shorter where fewer than 4. In pages of
 *  4 KiB, at least 1. */
ONIC_EXPORT onic_pool_shape_t onic_pool_cut(size_t rx_pool, size_t buffer);

/** All buffers are free, nobody waits. By the receiver, before others see the memory. */
ONIC_EXPORT void onic_pool_init(const onic_pool_t *pool);

/** Leases up to `want` > 0 buffers for `owner` (not 0), all words 0, and returns them as a mask; 0
 *  where there is none now. Any thread of any process; one at a time for each `wait`. */
ONIC_EXPORT uint64_t onic_pool_take(const onic_pool_t *pool, uint64_t owner, unsigned want,
                                    onic_pool_wait_t *wait);

/** Frees those of `buffers` that `owner` has. By the receiver, or by the owner before anybody knows
 *  of the lease. Returns how many buffers of the pool were in use just before; 0: none was
 *  freed. */
ONIC_EXPORT unsigned onic_pool_release(const onic_pool_t *pool, uint64_t owner, uint64_t buffers);

/** True if `owner` has all of `buffers`, and there is at least one. */
ONIC_EXPORT bool onic_pool_has(const onic_pool_t *pool, uint64_t owner, uint64_t buffers);

/** Bits of the first `n` buffers. */
static inline uint64_t onic_buffers_first(unsigned n)
{
    return n < 64 ? (UINT64_C(1) << n) - 1 : UINT64_MAX;
}

static inline uint64_t onic_pool_all(const onic_pool_t *pool)
{
    return onic_buffers_first(pool->nbuffers);
}

/** By the receiver, one thread at a time, some milliseconds apart: puts buffers back that stood
 *  outside the mask without an owner in the call before, too (`lost`, 0 at first). Returns those
 *  with owners. */
ONIC_EXPORT uint64_t onic_pool_mend(const onic_pool_t *pool, uint64_t *lost);

/** The owner of this buffer; 0: nobody. */
static inline uint64_t onic_pool_owner(const onic_pool_t *pool, unsigned buffer)
{
    return atomic_load_explicit(&pool->buffer[buffer].owner, memory_order_acquire);
}

/* ---- owners ---------------------------------------------------------------------------------- */

/** A process as the owner of buffers; 0 where it is not known. */
ONIC_EXPORT uint64_t onic_owner_of(const onic_life_t *life);

/** The process of that number, in the namespaces of `mine`, which share the memory. */
ONIC_EXPORT onic_life_t onic_owner_life(uint64_t owner, const onic_life_t *mine);
