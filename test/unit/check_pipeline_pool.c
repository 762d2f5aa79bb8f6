/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The pool of buffers: no buffer is leased twice, and none is lost. */
#include "common/pipeline/core/pool.h"

#include <string.h>

#include "test/unit/unit.h"

typedef struct memory {
    onic_pool_words_t words;
    onic_rx_buffer_words_t buffer[ONIC_RX_BUFFERS_MAX];
} memory_t;

static onic_pool_t pool_of(memory_t *m, unsigned nbuffers)
{
    const onic_pool_t pool = {&m->words, m->buffer, nbuffers};

    memset(m, 0, sizeof(*m));
    onic_pool_init(&pool);
    return pool;
}

static unsigned count(uint64_t mask)
{
    return (unsigned)__builtin_popcountll(mask);
}

START_TEST(cuts)
{
    unit_random_t r = {unit_seed()};

    for (int i = 0; i < 20000; i++) {
        const size_t rx_pool = unit_random64(&r) >> unit_below(&r, 64);
        const size_t buffer = unit_once_in(&r, 2) ? 0 : unit_random64(&r) >> unit_below(&r, 64);
        const onic_pool_shape_t s = onic_pool_cut(rx_pool, buffer);

        UNIT_CHECK(s.nbuffers >= 1 && s.nbuffers <= ONIC_RX_BUFFERS_MAX);
        UNIT_CHECK(s.buffer_bytes >= 4096 && s.buffer_bytes <= ONIC_RX_BUFFER_BYTES_MAX);
        UNIT_CHECK(s.buffer_bytes % 4096 == 0);
        UNIT_CHECK((uint64_t)s.nbuffers * s.buffer_bytes <= (rx_pool > 4096 ? rx_pool : 4096));
    }
    UNIT_CHECK(onic_pool_cut(2 << 20, 0).buffer_bytes == 32 << 10);
    UNIT_CHECK(onic_pool_cut(2 << 20, 0).nbuffers == 64);
    UNIT_CHECK(onic_pool_cut(64 << 10, 0).nbuffers == 4);
    UNIT_CHECK(onic_pool_cut(0, 0).nbuffers == 1);
    UNIT_CHECK(onic_pool_cut(16 << 20, 0).buffer_bytes == 256 << 10);
}
END_TEST

/* ---- random takers and givers ---------------------------------------------------------------- */

enum { OWNERS = 12 };

typedef struct naive {
    uint64_t has[OWNERS];
} naive_t;

static uint64_t all_held(const naive_t *n)
{
    uint64_t held = 0;

    for (unsigned i = 0; i < OWNERS; i++) {
        UNIT_CHECK((held & n->has[i]) == 0);
        held |= n->has[i];
    }
    return held;
}

static void spoil(const onic_pool_t *pool, uint64_t buffers)
{
    for (; buffers != 0; buffers &= buffers - 1) {
        const unsigned s = (unsigned)__builtin_ctzll(buffers);
        UNIT_CHECK(atomic_load(&pool->buffer[s].word) == 0);
        UNIT_CHECK(atomic_load(&pool->buffer[s].acknowledged) == 0);
        atomic_store(&pool->buffer[s].word, UINT64_MAX);
        atomic_store(&pool->buffer[s].acknowledged, UINT64_MAX);
    }
}

static void take_some(unit_random_t *r, const onic_pool_t *pool, naive_t *n, unsigned i)
{
    const unsigned want = 1 + (unsigned)unit_below(r, 70);
    const uint64_t held = all_held(n), got = onic_pool_take(pool, want);

    UNIT_CHECK((got & held) == 0 && (got & ~onic_pool_all(pool)) == 0);
    UNIT_CHECK(count(got) <= want);
    /* At most half, and at least one if there are some. */
    const unsigned free = pool->nbuffers - count(held);
    UNIT_CHECK(count(got) <= 1 || count(got) <= free / 2);
    UNIT_CHECK(got != 0 || free == 0);
    spoil(pool, got);
    n->has[i] |= got;
}

static void give_some(unit_random_t *r, const onic_pool_t *pool, naive_t *n, unsigned i)
{
    const uint64_t buffers = n->has[i] & unit_random64(r);
    const unsigned in_use = count(all_held(n));

    UNIT_CHECK(onic_pool_release(pool, buffers) == in_use);
    n->has[i] &= ~buffers;
}

START_TEST(one_owner_each)
{
    static memory_t m;
    unit_random_t r = {unit_seed()};

    for (int round = 0; round < 300; round++) {
        const onic_pool_t pool = pool_of(&m, 1 + (unsigned)unit_below(&r, ONIC_RX_BUFFERS_MAX));
        naive_t n = {0};

        for (int step = 0; step < 300; step++) {
            const unsigned i = (unsigned)unit_below(&r, OWNERS);

            if (unit_once_in(&r, 2))
                take_some(&r, &pool, &n, i);
            else
                give_some(&r, &pool, &n, i);
            UNIT_CHECK(atomic_load(&m.words.free) == (onic_pool_all(&pool) & ~all_held(&n)));
            UNIT_CHECK(onic_pool_has_leased(&pool, n.has[i]) == (n.has[i] != 0));
            UNIT_CHECK(!onic_pool_has_leased(&pool, n.has[i] | atomic_load(&m.words.free)) ||
                       atomic_load(&m.words.free) == 0);
        }
    }
}
END_TEST

/** Takes two buffers for two chunks, so many times, and counts which. */
static void go_round(const onic_pool_t *pool, int leases, unsigned *used)
{
    for (int i = 0; i < leases; i++) {
        const uint64_t got = onic_pool_take(pool, 2);
        ck_assert_uint_eq(count(got), 2);
        for (uint64_t rest = got; rest != 0; rest &= rest - 1)
            used[__builtin_ctzll(rest)]++;
        onic_pool_release(pool, got);
    }
}

/* Lowest buffers first would use the same lines again and again, all buffers memory that nobody
 * needs.
 */
START_TEST(goes_round)
{
    enum { BUFFERS = 4 * ONIC_POOL_ROUND };
    static memory_t m;
    const onic_pool_t pool = pool_of(&m, BUFFERS);

    for (unsigned round = ONIC_POOL_ROUND; round <= BUFFERS; round *= 2) {
        unsigned used[BUFFERS] = {0};

        ck_assert_uint_eq(atomic_load(&m.words.round), round);
        go_round(&pool, 16 * (int)round, used);
        for (unsigned i = 0; i < BUFFERS; i++)
            ck_assert_uint_eq(used[i], i < round ? 32 : 0);
    }
    ck_assert_uint_eq(atomic_load(&m.words.round), BUFFERS);
}
END_TEST

/* Who finds all of the round in use has one of the others at once. */
START_TEST(more_than_the_round)
{
    static memory_t m;
    const onic_pool_t pool = pool_of(&m, 2 * ONIC_POOL_ROUND);
    uint64_t held = 0;

    for (unsigned i = 0; i < 2 * ONIC_POOL_ROUND; i++) {
        const uint64_t got = onic_pool_take(&pool, 1);

        UNIT_CHECK(count(got) == 1 && (got & held) == 0);
        UNIT_CHECK((got >> ONIC_POOL_ROUND == 0) == (i < ONIC_POOL_ROUND));
        held |= got;
    }
}
END_TEST

/* Masks and counts from another process may be anything. */
START_TEST(garbage)
{
    static memory_t m;
    unit_random_t r = {unit_seed() + 6};

    for (int round = 0; round < 2000; round++) {
        const onic_pool_t pool = pool_of(&m, 1 + (unsigned)unit_below(&r, ONIC_RX_BUFFERS_MAX));
        atomic_store(&m.words.free, unit_random64(&r));
        atomic_store(&m.words.next_lease, (uint32_t)unit_random64(&r));
        atomic_store(&m.words.round, (uint32_t)unit_random64(&r) >> unit_below(&r, 32));
        atomic_store(&m.words.uses, (uint32_t)unit_random64(&r));
        const uint64_t got = onic_pool_take(&pool, 64);
        UNIT_CHECK((got & ~onic_pool_all(&pool)) == 0);
        onic_pool_release(&pool, UINT64_MAX);
        UNIT_CHECK(!onic_pool_has_leased(&pool, UINT64_MAX));
    }
}
END_TEST

int main(void)
{
    return UNIT_RUN("pipeline pool", UNIT_ONCE(cuts), UNIT_ONCE(one_owner_each),
                    UNIT_ONCE(goes_round), UNIT_ONCE(more_than_the_round), UNIT_ONCE(garbage));
}
