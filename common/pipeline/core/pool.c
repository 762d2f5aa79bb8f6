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
/* Releases after which waiting processes are counted anew. */
#define FORGET_AFTER 64
/* An owner's number: the process id, below 2^22 on Linux, above its start time. */
#define BEGAN_BITS 42
#define BEGAN_MASK ((UINT64_C(1) << BEGAN_BITS) - 1)

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
    atomic_store(&pool->words->waiting, 0);
    atomic_store(&pool->words->next_lease, 0);
    atomic_store(&pool->words->releases, 0);
    atomic_store(&pool->words->uses, 0);
    atomic_store(&pool->words->round,
                 pool->nbuffers < ONIC_POOL_ROUND ? pool->nbuffers : ONIC_POOL_ROUND);
    for (unsigned i = 0; i < pool->nbuffers; i++)
        atomic_store(&pool->buffer[i].owner, 0);
    atomic_store(&pool->words->free, onic_pool_all(pool));
}

/* ---- waiting processes -------------------------------------------------------------------------
 */

static bool is_counted(const onic_pool_wait_t *wait, uint64_t waiting)
{
    return wait->waits && wait->count == (uint32_t)(waiting >> 32);
}

static void begin_to_wait(const onic_pool_t *pool, onic_pool_wait_t *wait)
{
    uint64_t waiting = atomic_load_explicit(&pool->words->waiting, memory_order_relaxed);

    do {
        if (is_counted(wait, waiting) || (uint32_t)waiting >= ONIC_RX_BUFFERS_MAX)
            return;
    } while (!atomic_compare_exchange_weak_explicit(&pool->words->waiting, &waiting, waiting + 1,
                                                    memory_order_relaxed, memory_order_relaxed));
    wait->waits = true;
    wait->count = (uint32_t)(waiting >> 32);
}

static void end_wait(const onic_pool_t *pool, onic_pool_wait_t *wait)
{
    uint64_t waiting = atomic_load_explicit(&pool->words->waiting, memory_order_relaxed);

    while (is_counted(wait, waiting) && (uint32_t)waiting > 0 &&
           !atomic_compare_exchange_weak_explicit(&pool->words->waiting, &waiting, waiting - 1,
                                                  memory_order_relaxed, memory_order_relaxed)) {
    }
    wait->waits = false;
}

static void forget_waiting(const onic_pool_t *pool)
{
    uint64_t waiting = atomic_load_explicit(&pool->words->waiting, memory_order_relaxed);

    if ((uint32_t)waiting > 0)
        (void)atomic_compare_exchange_strong(&pool->words->waiting, &waiting,
                                             ((waiting >> 32) + 1) << 32);
}

/* ---- taking ---------------------------------------------------------------------------------- */

/** The number of `free` buffers that a process may take. */
static unsigned share(unsigned free, unsigned want, bool counted, uint32_t waiting)
{
    /* One buffer is left for each other waiting process. */
    const uint32_t others = waiting - (counted && waiting > 0 ? 1 : 0);
    const unsigned left = free > others ? free - others : counted && free > 0 ? 1 : 0;
    const unsigned most = left > 1 ? left / 2 : left;

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

/** Takes bits out of the mask. */
static uint64_t choose(const onic_pool_t *pool, unsigned want, const onic_pool_wait_t *wait)
{
    const uint64_t waiting = atomic_load_explicit(&pool->words->waiting, memory_order_relaxed);
    const bool counted = is_counted(wait, waiting);
    const unsigned round = round_of(pool);
    const unsigned from =
        atomic_load_explicit(&pool->words->next_lease, memory_order_relaxed) % round;
    uint64_t free = atomic_load_explicit(&pool->words->free, memory_order_relaxed), chosen;

    do {
        uint64_t mask = free & onic_pool_all(pool) & onic_buffers_first(round);
        unsigned n = share((unsigned)__builtin_popcountll(mask), want, counted, (uint32_t)waiting);
        if (n == 0) {
            mask = free & onic_pool_all(pool);
            n = share((unsigned)__builtin_popcountll(mask), want, counted, (uint32_t)waiting);
        }
        if (n == 0)
            return 0;
        chosen = first_from(mask, from, n);
    } while (!atomic_compare_exchange_weak_explicit(&pool->words->free, &free, free & ~chosen,
                                                    memory_order_acquire, memory_order_relaxed));
    atomic_store_explicit(&pool->words->next_lease, from + (unsigned)__builtin_popcountll(chosen),
                          memory_order_relaxed);
    lengthen(pool, round, want);
    return chosen;
}

static uint64_t own(const onic_pool_t *pool, uint64_t owner, uint64_t chosen)
{
    uint64_t owned = 0;

    for (uint64_t left = chosen; left != 0; left &= left - 1)
        __builtin_prefetch(&pool->buffer[__builtin_ctzll(left)], 1);
    for (uint64_t left = chosen; left != 0; left &= left - 1) {
        onic_rx_buffer_words_t *s = &pool->buffer[__builtin_ctzll(left)];
        uint64_t nobody = 0;

        /* Another process owns the buffer, because the mask was mended too early. */
        if (!atomic_compare_exchange_strong_explicit(&s->owner, &nobody, owner,
                                                     memory_order_acquire, memory_order_relaxed))
            continue;
        atomic_store_explicit(&s->word, 0, memory_order_relaxed);
        if (atomic_load_explicit(&s->acknowledged, memory_order_relaxed) != 0)
            atomic_store_explicit(&s->acknowledged, 0, memory_order_relaxed);
        owned |= left & -left;
    }
    return owned;
}

uint64_t onic_pool_take(const onic_pool_t *pool, uint64_t owner, unsigned want,
                        onic_pool_wait_t *wait)
{
    const uint64_t chosen = choose(pool, want, wait);
    const uint64_t owned = chosen != 0 ? own(pool, owner, chosen) : 0;

    if (owned == 0)
        begin_to_wait(pool, wait);
    else if (wait->waits)
        end_wait(pool, wait);
    return owned;
}

/* ---- releasing ----------------------------------------------------------------------------- */

unsigned onic_pool_release(const onic_pool_t *pool, uint64_t owner, uint64_t buffers)
{
    uint64_t released = 0;

    for (uint64_t left = buffers & onic_pool_all(pool); left != 0; left &= left - 1) {
        uint64_t expected = owner;
        if (atomic_compare_exchange_strong_explicit(&pool->buffer[__builtin_ctzll(left)].owner,
                                                    &expected, 0, memory_order_release,
                                                    memory_order_relaxed))
            released |= left & -left;
    }
    if (released == 0)
        return 0;
    const uint64_t before =
        atomic_fetch_or_explicit(&pool->words->free, released, memory_order_release);
    if (atomic_fetch_add_explicit(&pool->words->releases, 1, memory_order_relaxed) % FORGET_AFTER ==
        FORGET_AFTER - 1)
        forget_waiting(pool);
    return (unsigned)__builtin_popcountll(onic_pool_all(pool) & ~before);
}

bool onic_pool_has(const onic_pool_t *pool, uint64_t owner, uint64_t buffers)
{
    if (buffers == 0 || owner == 0 || (buffers & ~onic_pool_all(pool)) != 0)
        return false;
    for (uint64_t left = buffers; left != 0; left &= left - 1)
        if (onic_pool_owner(pool, (unsigned)__builtin_ctzll(left)) != owner)
            return false;
    return true;
}

uint64_t onic_pool_mend(const onic_pool_t *pool, uint64_t *lost)
{
    /* The mask is read first, because a release clears the owner word and then sets the bit. */
    uint64_t missing =
        onic_pool_all(pool) & ~atomic_load_explicit(&pool->words->free, memory_order_acquire);
    uint64_t owned = 0;

    for (unsigned i = 0; i < pool->nbuffers; i++)
        if (onic_pool_owner(pool, i) != 0)
            owned |= UINT64_C(1) << i;
    missing &= ~owned;
    if ((missing & *lost) != 0)
        atomic_fetch_or_explicit(&pool->words->free, missing & *lost, memory_order_release);
    *lost = missing & ~*lost;
    return owned;
}

/* ---- owners ---------------------------------------------------------------------------------- */

uint64_t onic_owner_of(const onic_life_t *life)
{
    if (life->pid <= 0 || life->pid >= INT64_C(1) << (64 - BEGAN_BITS))
        return 0;
    return (uint64_t)life->pid << BEGAN_BITS | (life->began & BEGAN_MASK);
}

onic_life_t onic_owner_life(uint64_t owner, const onic_life_t *mine)
{
    return (onic_life_t){.pid = (int64_t)(owner >> BEGAN_BITS),
                         .began = owner & BEGAN_MASK,
                         .pid_namespace = mine->pid_namespace,
                         .time_namespace = mine->time_namespace};
}
