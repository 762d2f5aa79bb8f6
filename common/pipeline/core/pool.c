/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "common/pipeline/core/pool.h"

#define PAGE         ((size_t)4096)
#define BUFFER_BYTES ((size_t)32 << 10)
#define FEW_BUFFERS  4
/* Chunks per buffer of the round after which the round is doubled. */
#define ROUND_AFTER 32

static size_t whole_pages(size_t bytes)
{
    return (bytes + PAGE - 1) / PAGE * PAGE;
}

onic_pool_shape_t onic_pool_cut(size_t rx_pool, size_t buffer)
{
    rx_pool = rx_pool > PAGE ? rx_pool / PAGE * PAGE : PAGE;
    if (buffer == 0) {
        buffer = BUFFER_BYTES;
        if (rx_pool / buffer > ONIC_RX_BUFFERS_MAX)
            buffer = rx_pool / ONIC_RX_BUFFERS_MAX;
        if (rx_pool / buffer < FEW_BUFFERS)
            buffer = rx_pool / FEW_BUFFERS / PAGE * PAGE;
    }
    buffer = buffer < ONIC_RX_BUFFER_BYTES_MAX ? whole_pages(buffer) : ONIC_RX_BUFFER_BYTES_MAX;
    if (buffer == 0)
        buffer = PAGE;
    if (buffer > rx_pool)
        buffer = rx_pool < ONIC_RX_BUFFER_BYTES_MAX ? rx_pool : ONIC_RX_BUFFER_BYTES_MAX;
    const size_t n = rx_pool / buffer;

    return (onic_pool_shape_t){.nbuffers =
                                   n < ONIC_RX_BUFFERS_MAX ? (unsigned)n : ONIC_RX_BUFFERS_MAX,
                               .buffer_bytes = (uint32_t)buffer};
}

void onic_pool_init(const onic_pool_t *pool)
{
    atomic_store(&pool->words->next_lease, 0);
    atomic_store(&pool->words->uses, 0);
    atomic_store(&pool->words->round,
                 pool->nbuffers < ONIC_POOL_ROUND ? pool->nbuffers : ONIC_POOL_ROUND);
    atomic_store(&pool->words->free, onic_pool_all(pool));
}

/* ---- taking ---------------------------------------------------------------------------------- */

/** The number of `free` buffers that a process may take. */
static unsigned share(uint64_t free, unsigned want)
{
    const unsigned left = (unsigned)__builtin_popcountll(free), most = left > 1 ? left / 2 : left;

    return want < most ? want : most;
}

/** The first `n` bits of `mask` from bit `from` on, wrapping around. */
static uint64_t first_from(uint64_t mask, unsigned from, unsigned n)
{
    const uint64_t upper = mask >> from << from;
    uint64_t left = upper, chosen = 0;

    for (unsigned i = 0; i < n; i++) {
        if (left == 0)
            left = mask & ~upper;
        const uint64_t bit = left & -left;
        chosen |= bit;
        left &= ~bit;
    }
    return chosen;
}

/** The number of buffers among which leases rotate. */
static unsigned round_of(const onic_pool_t *pool)
{
    const uint32_t round = atomic_load_explicit(&pool->words->round, memory_order_relaxed);

    return round > 0 && round < pool->nbuffers ? round : pool->nbuffers;
}

/** Counts chunks that go through the round, and doubles the round in time. */
static void lengthen(const onic_pool_t *pool, unsigned round, unsigned chunks)
{
    uint32_t uses = atomic_load_explicit(&pool->words->uses, memory_order_relaxed) + chunks;

    if (round == pool->nbuffers)
        return;
    if (uses >= ROUND_AFTER * round) {
        atomic_store_explicit(&pool->words->round, 2 * round, memory_order_relaxed);
        uses = 0;
    }
    atomic_store_explicit(&pool->words->uses, uses, memory_order_relaxed);
}

uint64_t onic_pool_take(const onic_pool_t *pool, unsigned want)
{
    const unsigned round = round_of(pool);
    const unsigned from =
        atomic_load_explicit(&pool->words->next_lease, memory_order_relaxed) % round;
    uint64_t free = atomic_load_explicit(&pool->words->free, memory_order_relaxed), chosen;

    do {
        const uint64_t any = free & onic_pool_all(pool), first = any & onic_buffers_first(round);
        const uint64_t mask = first != 0 ? first : any;
        if (mask == 0)
            return 0;
        chosen = first_from(mask, from, share(mask, want));
    } while (!atomic_compare_exchange_weak_explicit(&pool->words->free, &free, free & ~chosen,
                                                    memory_order_acquire, memory_order_relaxed));
    atomic_store_explicit(&pool->words->next_lease, from + (unsigned)__builtin_popcountll(chosen),
                          memory_order_relaxed);
    lengthen(pool, round, want);
    for (uint64_t left = chosen; left != 0; left &= left - 1)
        __builtin_prefetch(&pool->buffer[__builtin_ctzll(left)], 1);
    for (uint64_t left = chosen; left != 0; left &= left - 1) {
        onic_rx_buffer_words_t *s = &pool->buffer[__builtin_ctzll(left)];

        atomic_store_explicit(&s->word, 0, memory_order_relaxed);
        if (atomic_load_explicit(&s->acknowledged, memory_order_relaxed) != 0)
            atomic_store_explicit(&s->acknowledged, 0, memory_order_relaxed);
    }
    return chosen;
}

unsigned onic_pool_release(const onic_pool_t *pool, uint64_t buffers)
{
    const uint64_t before =
        atomic_fetch_or_explicit(&pool->words->free, buffers, memory_order_release);

    return (unsigned)__builtin_popcountll(onic_pool_all(pool) & ~before);
}
