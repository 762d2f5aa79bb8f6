/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Leases of a receive pool, and the locks that processes of a node share: a buffer is leased
 *  once, and who leases it sees it as the one before has left it; none is lost; a lock excludes. */
#include "test/explore/explore.h"

#include <stdlib.h>
#include <string.h>

#include "common/pipeline/core/pool.c"
#include "common/transport/shm/owned_lock.h"
#include "osc_nicstride/protocol/window_lock.h"

/* ---- leases ---------------------------------------------------------------------------------- */

static onic_pool_t pool;
static onic_pool_words_t words;
static onic_rx_buffer_words_t buffer[4];
/** The bytes of each buffer. */
static unsigned content[4];

static void new_pool(unsigned n)
{
    pool = (onic_pool_t){.words = &words, .buffer = buffer, .nbuffers = n};
    onic_pool_init(&pool);
}

static void pool_of_2(void)
{
    new_pool(2);
}

static void pool_of_1(void)
{
    new_pool(1);
}

/** A sender: leases, fills, and, as if the receiver had taken all, gives back. */
static void use(unsigned me, unsigned times)
{
    for (unsigned i = 0; i < times; i++) {
        uint64_t mine;
        while ((mine = onic_pool_take(&pool, 1)) == 0)
            explore_pause();
        EXPLORE_ASSERT(__builtin_popcountll(mine) == 1);
        const unsigned b = (unsigned)__builtin_ctzll(mine);
        EXPLORE_ASSERT(atomic_load_explicit(&buffer[b].word, memory_order_relaxed) == 0 &&
                       atomic_load_explicit(&buffer[b].acknowledged, memory_order_relaxed) == 0);
        content[b] = me;
        atomic_store_explicit(&buffer[b].word, me + 1, memory_order_relaxed);
        atomic_store_explicit(&buffer[b].acknowledged, 1, memory_order_relaxed);
        EXPLORE_ASSERT(content[b] == me && onic_pool_has_leased(&pool, mine));
        (void)onic_pool_release(&pool, mine);
    }
}

static void lease(unsigned me)
{
    use(me, 1);
}

static void lease_twice(unsigned me)
{
    use(me, 2);
}

static void pool_is_whole(void)
{
    EXPLORE_ASSERT(words.free == onic_pool_all(&pool));
}

/* ---- a lock with an owner -------------------------------------------------------------------- */

static onic_owned_lock_t owned;
static unsigned count;

static void own_thread(unsigned me)
{
    for (unsigned i = 0; i < 2; i++) {
        while (!onic_owned_try(&owned, me))
            explore_pause();
        EXPLORE_ASSERT(onic_owned_by(&owned) == me);
        count++;
        onic_owned_release(&owned);
    }
}

static void owned_end(void)
{
    EXPLORE_ASSERT(count == 6 && onic_owned_by(&owned) == -1);
}

/* ---- who stays in the window's lock ---------------------------------------------------------- */

enum { TYPE = 3 };
static nicstride_stay_t stay;
/** How often the lock was given back, of the once that it was granted. */
static atomic_uint given_back;

static void stays(void)
{
    nicstride_stay_granted(&stay, TYPE);
    EXPLORE_ASSERT(nicstride_stay_end(&stay));
}

/** The process uses the lock again; it is asked for anew where it has left. Others ask it to
 *  leave. */
static void use_stay(unsigned me)
{
    if (me == 0) {
        for (unsigned i = 0; i < 2; i++) {
            if (!nicstride_stay_use(&stay, TYPE))
                return;
            EXPLORE_ASSERT(nicstride_stay_is_used(&stay));
            EXPLORE_ASSERT(atomic_load(&given_back) == 0);
            if (!nicstride_stay_end(&stay))
                atomic_fetch_add(&given_back, 1);
        }
        return;
    }
    if (nicstride_stay_leave(&stay))
        atomic_fetch_add(&given_back, 1);
}

static void left_once(void)
{
    EXPLORE_ASSERT(given_back == 1);
    /* What was marked after it had left is for the next grant. */
    EXPLORE_ASSERT((stay & ~NICSTRIDE_STAY_LEAVE) == 0);
}

static const explore_target_t targets[] = {
    {"pool-2", 2, pool_of_2, lease_twice, pool_is_whole, 3, 0},
    {"pool-3-for-2", 3, pool_of_2, lease, pool_is_whole, 2, 0},
    {"pool-2-for-1", 2, pool_of_1, lease, pool_is_whole, 0, 0},
    {"owned-lock", 3, NULL, own_thread, owned_end, 2, 0},
    {"window-lock", 3, stays, use_stay, left_once, 3, 0},
};

int main(int argc, char **argv)
{
    return explore_main(argc, argv, targets, sizeof(targets) / sizeof(targets[0]));
}
