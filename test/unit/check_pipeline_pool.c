/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The pool of buffers: no buffer has two owners, none is lost, everybody has turns. */
#include "common/pipeline/core/pool.h"

#include <pthread.h>
#include <sched.h>
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
    onic_pool_wait_t wait[OWNERS];
} naive_t;

static uint64_t number(unsigned i)
{
    return 1000 + i;
}

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
    const uint64_t held = all_held(n), got = onic_pool_take(pool, number(i), want, &n->wait[i]);

    UNIT_CHECK((got & held) == 0 && (got & ~onic_pool_all(pool)) == 0);
    UNIT_CHECK(count(got) <= want);
    /* At most half, and one at least where there are some and nobody waits. */
    const unsigned free = pool->nbuffers - count(held);
    UNIT_CHECK(count(got) <= 1 || count(got) <= free / 2);
    spoil(pool, got);
    n->has[i] |= got;
}

static void give_some(unit_random_t *r, const onic_pool_t *pool, naive_t *n, unsigned i)
{
    const uint64_t buffers = unit_random64(r);
    const unsigned in_use = (n->has[i] & buffers) != 0 ? count(all_held(n)) : 0;

    /* Those of others stay. */
    UNIT_CHECK(onic_pool_release(pool, number(i), buffers) == in_use);
    n->has[i] &= ~buffers;
}

START_TEST(one_owner_each)
{
    static memory_t m;
    unit_random_t r = {unit_seed()};

    for (int round = 0; round < 300; round++) {
        const onic_pool_t pool = pool_of(&m, 1 + (unsigned)unit_below(&r, ONIC_RX_BUFFERS_MAX));
        naive_t n = {0};
        uint64_t lost = 0;

        for (int step = 0; step < 300; step++) {
            const unsigned i = (unsigned)unit_below(&r, OWNERS);

            if (unit_once_in(&r, 2))
                take_some(&r, &pool, &n, i);
            else
                give_some(&r, &pool, &n, i);
            UNIT_CHECK(atomic_load(&m.words.free) == (onic_pool_all(&pool) & ~all_held(&n)));
            UNIT_CHECK(onic_pool_has(&pool, number(i), n.has[i]) == (n.has[i] != 0));
            if (n.has[0] != 0)
                UNIT_CHECK(!onic_pool_has(&pool, number(1), n.has[0] | n.has[1]));
            if (unit_once_in(&r, 10))
                UNIT_CHECK(onic_pool_mend(&pool, &lost) == all_held(&n) && lost == 0);
        }
    }
}
END_TEST

/** Takes two buffers for two chunks, so many times, and counts which. */
static void go_round(const onic_pool_t *pool, int leases, unsigned *used)
{
    onic_pool_wait_t wait = {0};

    for (int i = 0; i < leases; i++) {
        const uint64_t got = onic_pool_take(pool, 7, 2, &wait);
        ck_assert_uint_eq(count(got), 2);
        for (uint64_t rest = got; rest != 0; rest &= rest - 1)
            used[__builtin_ctzll(rest)]++;
        onic_pool_release(pool, 7, got);
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
        onic_pool_wait_t wait = {0};
        const uint64_t got = onic_pool_take(&pool, number(i), 1, &wait);

        UNIT_CHECK(count(got) == 1 && (got & held) == 0);
        UNIT_CHECK((got >> ONIC_POOL_ROUND == 0) == (i < ONIC_POOL_ROUND));
        held |= got;
    }
}
END_TEST

/* ---- turns ----------------------------------------------------------------------------------- */

/* All want all there is, keep it for a random time and come again at once. Each of those that wait
 * looks now and then. Nobody waits for more than the others have a few turns each. */
START_TEST(everybody_has_turns)
{
    static memory_t m;
    unit_random_t r = {unit_seed() + (uint64_t)_i};
    const onic_pool_t pool = pool_of(&m, 1 + (unsigned)_i);
    naive_t n = {0};
    unsigned others[OWNERS] = {0}, most = 0;

    for (int step = 0; step < 200000; step++) {
        /* The last ones look ten times less often than the first. */
        unsigned i = (unsigned)unit_below(&r, OWNERS);
        if (i >= OWNERS / 2 && !unit_once_in(&r, 10))
            i -= OWNERS / 2;
        if (n.has[i] != 0) {
            onic_pool_release(&pool, number(i), n.has[i]);
            n.has[i] = 0;
        }
        n.has[i] = onic_pool_take(&pool, number(i), ONIC_RX_BUFFERS_MAX, &n.wait[i]);
        (void)all_held(&n);
        if (n.has[i] == 0)
            continue;
        others[i] = 0;
        for (unsigned k = 0; k < OWNERS; k++)
            if (k != i && ++others[k] > most)
                most = others[k];
    }
    /* Of 12, half of which come ten times as often as the others. */
    UNIT_CHECK(most < 4000);
}
END_TEST

/* One who takes and gives back all the time does not keep another one, who looks seldom, away. */
START_TEST(greedy_one_makes_room)
{
    static memory_t m;
    const onic_pool_t pool = pool_of(&m, 2);
    onic_pool_wait_t greedy = {0}, greedy2 = {0}, patient = {0};
    uint64_t a = onic_pool_take(&pool, 1, 64, &greedy);
    uint64_t b = onic_pool_take(&pool, 2, 64, &greedy2);

    UNIT_CHECK(count(a) == 1 && count(b) == 1);
    UNIT_CHECK(onic_pool_take(&pool, 3, 64, &patient) == 0);
    onic_pool_release(&pool, 1, a);
    UNIT_CHECK(onic_pool_take(&pool, 1, 64, &greedy) == 0);
    UNIT_CHECK(onic_pool_take(&pool, 3, 64, &patient) == a);
    UNIT_CHECK(!patient.waits);
    /* Now it is the other's turn again. */
    onic_pool_release(&pool, 3, a);
    UNIT_CHECK(onic_pool_take(&pool, 3, 64, &patient) == 0);
    UNIT_CHECK(onic_pool_take(&pool, 1, 64, &greedy) == a);
}
END_TEST

/* Who waited and went elsewhere is forgotten. */
START_TEST(forgets_those_who_went)
{
    static memory_t m;
    const onic_pool_t pool = pool_of(&m, 4);
    onic_pool_wait_t one = {0}, gone[3] = {0};
    uint64_t got = 0, lease;
    int leases = 0;

    while ((lease = onic_pool_take(&pool, 1, 64, &one)) != 0)
        got |= lease;
    for (int i = 0; i < 3; i++)
        UNIT_CHECK(onic_pool_take(&pool, number((unsigned)i), 1, &gone[i]) == 0);
    onic_pool_release(&pool, 1, got);
    while (count(got = onic_pool_take(&pool, 1, 64, &one)) < 2) {
        onic_pool_release(&pool, 1, got);
        UNIT_CHECK(++leases < 200);
    }
}
END_TEST

/* ---- the dead -------------------------------------------------------------------------------- */

/* Each step of taking may be the last that a process does. */
START_TEST(dead_takers)
{
    static memory_t m;
    unit_random_t r = {unit_seed() + 5};
    const onic_pool_t pool = pool_of(&m, 10);
    onic_pool_wait_t wait = {0};
    uint64_t lost = 0;

    for (int round = 0; round < 1000; round++) {
        /* Its bits are out of the mask, some have its number. */
        const uint64_t chosen = unit_random64(&r) & onic_pool_all(&pool);
        const uint64_t owned = chosen & unit_random64(&r);

        atomic_fetch_and(&m.words.free, ~chosen);
        for (uint64_t rest = owned; rest != 0; rest &= rest - 1)
            atomic_store(&m.buffer[__builtin_ctzll(rest)].owner, 99);
        UNIT_CHECK(onic_pool_mend(&pool, &lost) == owned);
        UNIT_CHECK(lost == (chosen & ~owned));
        UNIT_CHECK(onic_pool_mend(&pool, &lost) == owned && lost == 0);
        UNIT_CHECK(atomic_load(&m.words.free) == (onic_pool_all(&pool) & ~owned));
        onic_pool_release(&pool, 99, owned);
        UNIT_CHECK(atomic_load(&m.words.free) == onic_pool_all(&pool));
        const uint64_t got = onic_pool_take(&pool, 5, 64, &wait);
        UNIT_CHECK(count(got) == 4 || count(got) == 5);
        onic_pool_release(&pool, 5, got);
    }
}
END_TEST

/* A slow taker finds its buffer mended away and taken by another. */
START_TEST(slow_taker_loses)
{
    static memory_t m;
    const onic_pool_t pool = pool_of(&m, 1);
    onic_pool_wait_t wait = {0}, slow = {0};

    UNIT_CHECK(onic_pool_take(&pool, 5, 1, &wait) == 1);
    atomic_fetch_or(&m.words.free, 1);
    UNIT_CHECK(onic_pool_take(&pool, 6, 1, &slow) == 0);
    UNIT_CHECK(onic_pool_has(&pool, 5, 1) && !onic_pool_has(&pool, 6, 1));
    onic_pool_release(&pool, 6, 1);
    UNIT_CHECK(onic_pool_has(&pool, 5, 1));
    onic_pool_release(&pool, 5, 1);
    UNIT_CHECK(onic_pool_take(&pool, 6, 1, &slow) == 1);
}
END_TEST

/* Masks and counts from another process may be anything. */
START_TEST(garbage)
{
    static memory_t m;
    unit_random_t r = {unit_seed() + 6};

    for (int round = 0; round < 2000; round++) {
        const onic_pool_t pool = pool_of(&m, 1 + (unsigned)unit_below(&r, ONIC_RX_BUFFERS_MAX));
        onic_pool_wait_t wait = {0};

        atomic_store(&m.words.free, unit_random64(&r));
        atomic_store(&m.words.waiting, unit_random64(&r));
        atomic_store(&m.words.next_lease, (uint32_t)unit_random64(&r));
        atomic_store(&m.words.round, (uint32_t)unit_random64(&r) >> unit_below(&r, 32));
        atomic_store(&m.words.uses, (uint32_t)unit_random64(&r));
        const uint64_t got = onic_pool_take(&pool, 9, 64, &wait);
        UNIT_CHECK((got & ~onic_pool_all(&pool)) == 0);
        onic_pool_release(&pool, 9, UINT64_MAX);
        UNIT_CHECK(!onic_pool_has(&pool, 9, UINT64_MAX));
    }
}
END_TEST

START_TEST(owners)
{
    const onic_life_t mine = {.pid = 5, .began = 1, .pid_namespace = 77, .time_namespace = 88};
    const onic_life_t other = {
        .pid = 4194303, .began = 123456789012, .pid_namespace = 77, .time_namespace = 88};
    const onic_life_t same = onic_owner_life(onic_owner_of(&other), &mine), none = {0};

    ck_assert_mem_eq(&same, &other, sizeof(same));
    ck_assert_uint_eq(onic_owner_of(&none), 0);
    ck_assert_uint_ne(onic_owner_of(&mine), 0);
}
END_TEST

/* ---- threads --------------------------------------------------------------------------------- */

enum { THREADS = 3, LEASES = 20000, BUFFERS = 5 };

static memory_t shared;
static const onic_pool_t shared_pool = {&shared.words, shared.buffer, BUFFERS};
static uint64_t inside[BUFFERS]; /* written by who has the buffer: not atomic on purpose */
static atomic_int mending;

static void *take_and_give(void *arg)
{
    const uint64_t me = 1 + (uint64_t)(uintptr_t)arg;
    onic_pool_wait_t wait = {0};

    for (int i = 0; i < LEASES;) {
        const uint64_t got = onic_pool_take(&shared_pool, me, 1 + (unsigned)i % 3, &wait);
        for (uint64_t rest = got; rest != 0; rest &= rest - 1)
            inside[__builtin_ctzll(rest)] = me;
        for (uint64_t rest = got; rest != 0; rest &= rest - 1)
            UNIT_CHECK(inside[__builtin_ctzll(rest)] == me);
        if (got != 0) {
            i++;
            onic_pool_release(&shared_pool, me, got);
        } else {
            sched_yield();
        }
    }
    return NULL;
}

static void *mend(void *arg)
{
    uint64_t lost = 0;

    (void)arg;
    while (atomic_load(&mending)) {
        (void)onic_pool_mend(&shared_pool, &lost);
        sched_yield();
    }
    return NULL;
}

/* Even where it is mended without any patience no buffer has two owners, and none gets lost. */
START_TEST(between_threads)
{
    pthread_t thread[THREADS], mender;
    uint64_t lost = 0;

    onic_pool_init(&shared_pool);
    atomic_store(&mending, 1);
    UNIT_CHECK(pthread_create(&mender, NULL, mend, NULL) == 0);
    for (uintptr_t i = 0; i < THREADS; i++)
        UNIT_CHECK(pthread_create(&thread[i], NULL, take_and_give, (void *)i) == 0);
    for (int i = 0; i < THREADS; i++)
        UNIT_CHECK(pthread_join(thread[i], NULL) == 0);
    atomic_store(&mending, 0);
    UNIT_CHECK(pthread_join(mender, NULL) == 0);
    (void)onic_pool_mend(&shared_pool, &lost);
    ck_assert_uint_eq(onic_pool_mend(&shared_pool, &lost), 0);
    ck_assert_uint_eq(atomic_load(&shared.words.free), onic_pool_all(&shared_pool));
}
END_TEST

int main(void)
{
    return UNIT_RUN("pipeline pool", UNIT_LOOP(everybody_has_turns, 0, 8), UNIT_ONCE(cuts),
                    UNIT_ONCE(one_owner_each), UNIT_ONCE(goes_round),
                    UNIT_ONCE(more_than_the_round), UNIT_ONCE(greedy_one_makes_room),
                    UNIT_ONCE(forgets_those_who_went), UNIT_ONCE(dead_takers),
                    UNIT_ONCE(slow_taker_loses), UNIT_ONCE(garbage), UNIT_ONCE(owners),
                    UNIT_ONCE(between_threads));
}
