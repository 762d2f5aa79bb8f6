/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Fences of a window: nobody leaves before all have entered, what each wrote before is seen
 *  behind it, the mark of one is seen by all, nobody stores where messages are still being applied,
 *  and a loss ends them. */
#include "test/explore/explore.h"

#include <stdlib.h>
#include <string.h>

#include "osc_nicstride/protocol/fence.h"

static nicstride_fence_t fence[EXPLORE_THREADS];
static unsigned members, fences, marking;
/** What each has written in an epoch, for even and odd fences. */
static unsigned written[2][EXPLORE_THREADS];
/** The last process's, which others store to. */
static unsigned memory;

/** As many processes, on as many nodes; messages between nodes are handed over by words. */
static void new_fences(unsigned n, unsigned nodes, unsigned nfences)
{
    const size_t bytes = nicstride_fence_board_bytes((int)n, (int)nodes);
    for (unsigned node = 0; node < nodes; node++) {
        char *board = aligned_alloc(64, n * bytes);
        memset(board, 0, n * bytes);
        for (unsigned i = 0; i < n; i++)
            fence[node * n + i] = (nicstride_fence_t){.n = (int)n,
                                                      .me = (int)i,
                                                      .nodes = (int)nodes,
                                                      .node = (int)node,
                                                      .board = board,
                                                      .next = bytes};
    }
    members = n * nodes;
    fences = nfences;
    marking = members;
    memory = 0;
}

static void two(void)
{
    new_fences(2, 1, 2);
}

static void three(void)
{
    new_fences(3, 1, 1);
}

static void marked(void)
{
    new_fences(2, 1, 2);
    marking = 0;
}

static void nodes(void)
{
    new_fences(2, 2, 1);
}

/** A message to the first process of another node: its handler runs there. */
static void send(const nicstride_fence_t *f)
{
    unsigned step;
    const int to = nicstride_fence_to(f, &step);
    nicstride_fence_receive(&fence[(unsigned)to * (unsigned)f->n], step, f->number, f->marked,
                            nicstride_fence_lost(f));
}

static nicstride_fence_next_t wait_for(nicstride_fence_t *f)
{
    for (;;) {
        const nicstride_fence_next_t next = nicstride_fence_next(f);
        if (next == NICSTRIDE_FENCE_SEND)
            send(f);
        else if (next != NICSTRIDE_FENCE_WAIT)
            return next;
        else
            explore_pause();
    }
}

static void meet(unsigned me)
{
    nicstride_fence_t *f = &fence[me];
    for (unsigned k = 1; k <= fences; k++) {
        written[k % 2][me] = k;
        nicstride_fence_begin(f, me == marking && k == 1);
        EXPLORE_ASSERT(wait_for(f) == NICSTRIDE_FENCE_OVER);
        for (unsigned i = 0; i < members; i++)
            EXPLORE_ASSERT(written[k % 2][i] == k);
        /* Of the first fence, and of no other. */
        EXPLORE_ASSERT(f->marked == (marking < members && k == 1));
    }
}

/** The first has sent a message in the first epoch, which the last applies; in the others it
 *  stores. */
static void apply(unsigned me)
{
    nicstride_fence_t *f = &fence[me];
    for (unsigned k = 1; k <= fences; k++) {
        nicstride_fence_begin(f, me == 0 && k == 1);
        EXPLORE_ASSERT(wait_for(f) == NICSTRIDE_FENCE_OVER);
        if (f->marked) {
            if (me == members - 1)
                memory++;
            nicstride_fence_set_done(f);
        }
        if (me != 0)
            continue;
        while (!nicstride_fence_is_done(f, (int)members - 1, 1))
            explore_pause();
        EXPLORE_ASSERT(memory == k);
        memory++;
    }
}

/** The last is lost before it enters, which the first finds out. */
static void lose(unsigned me)
{
    nicstride_fence_t *f = &fence[me];
    if (me == members - 1)
        return;
    nicstride_fence_begin(f, false);
    if (me == 0)
        nicstride_fence_lose(f, 7);
    EXPLORE_ASSERT(wait_for(f) == NICSTRIDE_FENCE_LOST && nicstride_fence_lost(f) == 7);
}

static const explore_target_t targets[] = {
    {"fence-2", 2, two, meet, NULL, 0, 0},
    {"fence-3", 3, three, meet, NULL, 0, 0},
    {"fence-marked", 2, marked, meet, NULL, 0, 0},
    {"fence-applied", 2, marked, apply, NULL, 0, 0},
    {"fence-nodes", 4, nodes, meet, NULL, 1, 0},
    {"fence-lost", 3, three, lose, NULL, 0, 0},
    {"fence-nodes-lost", 4, nodes, lose, NULL, 1, 0},
};

int main(int argc, char **argv)
{
    return explore_main(argc, argv, targets, sizeof(targets) / sizeof(targets[0]));
}
