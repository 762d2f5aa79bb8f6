/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The barrier of a node with processes that sleep: nobody leaves before all have entered,
 *  what each wrote before is seen behind it, all leave, and who sleeps is woken when it may go on.
 */
#include "test/explore/explore.h"

#include <stdlib.h>
#include <string.h>

#include "coll_nicbarrier/engines/shm/shm.c"

onic_life_t onic_life_mine(void)
{
    return (onic_life_t){.pid = 1};
}

bool onic_life_is_dead(const onic_life_t *life)
{
    (void)life;
    return false;
}

static nicbarrier_shm_t view[EXPLORE_THREADS];
static unsigned members, epochs;
/** What each has written before it entered, for even and odd epochs. */
static unsigned written[2][EXPLORE_THREADS];

static void new_barrier(unsigned n, int fanout, bool network, unsigned nepochs)
{
    void *base = aligned_alloc(128, nicbarrier_shm_bytes((int)n, fanout));
    memset(base, 0, nicbarrier_shm_bytes((int)n, fanout));
    for (unsigned i = 0; i < n; i++)
        nicbarrier_shm_attach(&view[i], base, (int)n, (int)i, fanout, network);
    members = n;
    epochs = nepochs;
}

static void flat_2(void)
{
    new_barrier(2, 4, false, 2);
}

static void flat_3(void)
{
    new_barrier(3, 4, false, 1);
}

static void tree_3(void)
{
    new_barrier(3, 2, false, 1);
}

static void network_2(void)
{
    new_barrier(2, 2, true, 2);
}

static void wait_for(nicbarrier_shm_t *s, uint64_t epoch)
{
    while (!nicbarrier_shm_done(s, epoch) && !nicbarrier_shm_failed(s))
        nicbarrier_shm_sleep(s, epoch, 1000);
    nicbarrier_shm_depart(s);
}

static void meet(unsigned me)
{
    nicbarrier_shm_t *s = &view[me];
    for (unsigned e = 1; e <= epochs; e++) {
        written[e % 2][me] = e;
        nicbarrier_shm_enter(s, e);
        /* The network is complete at once. */
        while (s->network && me == 0 && nicbarrier_shm_arrived(s) < e)
            nicbarrier_shm_sleep_for_node(s, e, 1000);
        if (s->network && me == 0)
            nicbarrier_shm_release(s, e);
        wait_for(s, e);
        for (unsigned i = 0; i < members; i++)
            EXPLORE_ASSERT(written[e % 2][i] == e);
    }
}

/** The first enters and goes on without waiting; it departs for those that sleep. */
static void enter_and_go(unsigned me)
{
    nicbarrier_shm_t *s = &view[me];
    nicbarrier_shm_enter(s, 1);
    if (me == 0)
        nicbarrier_shm_depart(s);
    else
        wait_for(s, 1);
}

/** The first never enters, and says that the barrier has failed. */
static void fail_one(unsigned me)
{
    nicbarrier_shm_t *s = &view[me];
    if (me == 0) {
        nicbarrier_shm_fail(s);
        return;
    }
    nicbarrier_shm_enter(s, 1);
    wait_for(s, 1);
    EXPLORE_ASSERT(nicbarrier_shm_failed(s));
}

static void all_have_left(void)
{
    for (unsigned i = 0; i < members; i++)
        EXPLORE_ASSERT(nicbarrier_shm_completed(&view[i]) == epochs);
    EXPLORE_ASSERT(view[0].head->completion.sleepers == 0 && view[0].head->arrival.sleepers == 0);
}

static const explore_target_t targets[] = {
    {"node-flat-2", 2, flat_2, meet, all_have_left, 0, 0},
    {"node-flat-3", 3, flat_3, meet, all_have_left, 0, 0},
    {"node-flat-departs", 3, flat_3, enter_and_go, all_have_left, 0, 0},
    {"node-flat-fails", 2, flat_2, fail_one, NULL, 0, 0},
    {"node-tree-3", 3, tree_3, meet, all_have_left, 0, 0},
    {"node-tree-fails", 3, tree_3, fail_one, NULL, 0, 0},
    {"node-network-2", 2, network_2, meet, all_have_left, 0, 0},
};

int main(int argc, char **argv)
{
    return explore_main(argc, argv, targets, sizeof(targets) / sizeof(targets[0]));
}
