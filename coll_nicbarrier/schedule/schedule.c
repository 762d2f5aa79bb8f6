/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The schedules of a barrier; see schedule.h. */
#include "coll_nicbarrier/schedule/schedule.h"

#include <stdbool.h>

#define DEGREE NICBARRIER_DEGREE

static nicbarrier_step_t both(int32_t to, int to_at, int32_t from, int from_at)
{
    return (nicbarrier_step_t){to, from, (uint8_t)to_at, (uint8_t)from_at};
}

static nicbarrier_step_t send(int32_t to, int at)
{
    return both(to, at, NICBARRIER_NOBODY, 0);
}

static nicbarrier_step_t wait(int32_t from, int at)
{
    return both(NICBARRIER_NOBODY, 0, from, at);
}

static int dissemination(int32_t rank, int32_t n, nicbarrier_step_t *steps)
{
    int k = 0;

    for (int64_t distance = 1; distance < n; distance *= 2, k++) {
        const int32_t to = (int32_t)((rank + distance) % n);
        const int32_t from = (int32_t)((n - distance + rank) % n);
        steps[k] = both(to, k, from, k);
    }
    return k;
}

/* Ranks from the largest power of two on are guests; each has the host that far below it. A host's
 * first step waits for its guest, and its last one releases it; a guest has only one step. */
static int pairwise(int32_t rank, int32_t n, nicbarrier_step_t *steps)
{
    int32_t hosts = 1;
    int bits = 0, k = 0;

    for (; hosts <= n / 2; hosts *= 2)
        bits++;
    if (rank >= hosts) {
        steps[0] = both(rank - hosts, 0, rank - hosts, bits + 1);
        return 1;
    }
    const bool has_guest = rank < n - hosts;
    if (has_guest)
        steps[k++] = wait(rank + hosts, 0);
    for (int bit = 0; bit < bits; bit++, k++) {
        const int32_t other = rank ^ (int32_t)1 << bit;
        const int at = bit + (other < n - hosts);
        steps[k] = both(other, at, other, at);
    }
    if (has_guest)
        steps[k++] = send(rank + hosts, 0);
    return k;
}

/* The number of children in a heap-ordered tree: those of r are r * DEGREE + 1 .. r * DEGREE +
 * DEGREE. */
static int children(int64_t rank, int32_t n)
{
    const int64_t left = n - 1 - rank * DEGREE;

    return (int)(left < 0 ? 0 : left > DEGREE ? DEGREE : left);
}

/* First each step waits for one child. Then all but the root send to their parent and wait for it
 * in the same step. Further steps release the children. */
static int gather_broadcast(int32_t rank, int32_t n, nicbarrier_step_t *steps)
{
    const int mine = children(rank, n);
    const int64_t first = (int64_t)rank * DEGREE + 1;
    int k = 0;

    for (; k < mine; k++)
        steps[k] = wait((int32_t)(first + k), children(first + k, n));
    if (rank > 0) {
        const int32_t parent = (rank - 1) / DEGREE;
        const int nth = (rank - 1) % DEGREE;
        const int release = children(parent, n) + (parent > 0) + nth;
        steps[k++] = both(parent, nth, parent, release);
    }
    for (int child = 0; child < mine; child++, k++)
        steps[k] = send((int32_t)(first + child), children(first + child, n));
    return k;
}

int nicbarrier_schedule(nicbarrier_schedule_kind_t kind, int32_t rank, int32_t n,
                        nicbarrier_step_t steps[NICBARRIER_STEPS_MAX])
{
    if (n < 1 || rank < 0 || rank >= n)
        return -1;
    switch (kind) {
    case NICBARRIER_DISSEMINATION:
        return dissemination(rank, n, steps);
    case NICBARRIER_PAIRWISE:
        return pairwise(rank, n, steps);
    case NICBARRIER_GATHER_BROADCAST:
        return gather_broadcast(rank, n, steps);
    }
    return -1;
}

void nicbarrier_schedule_bits(const nicbarrier_step_t *steps, int n, uint64_t *sends,
                              uint64_t *waits)
{
    *sends = *waits = 0;
    for (int k = 0; k < n; k++) {
        *sends |= (uint64_t)(steps[k].send_to != NICBARRIER_NOBODY) << k;
        *waits |= (uint64_t)(steps[k].wait_for != NICBARRIER_NOBODY) << k;
    }
}
