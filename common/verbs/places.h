/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The places of a process's connections, of which there are so many in each direction: which
 * one gives way to another, and which one a process that asks gets.
 *
 *  Pure; any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/** A place of a connection that this process has begun. */
typedef enum onic_place_state {
    ONIC_PLACE_FREE = 0,
    ONIC_PLACE_BUSY, /**< something is under way on it, or it is being made */
    ONIC_PLACE_IDLE,
    ONIC_PLACE_ENDING /**< it will be free */
} onic_place_state_t;

typedef struct onic_place {
    onic_place_state_t state;
    uint64_t used; /**< when last, by a clock that counts uses of all places, and attempts to get
                        one; not after `now` */
} onic_place_t;

/** Turns of that clock for each place, before an unused connection gives way: making another one
 *  takes as long as many transfers, so where all are in use in turn none does. */
#define ONIC_PLACE_TURNS 8

/** Which of `n` connections, which are all the places, is to be ended so that the next one finds a
 *  place: of those that are idle the one used longest ago, if that is long enough. -1: none; nor
 *  where a place is free, or will be. */
static inline int onic_place_to_end(const onic_place_t *place, unsigned n, uint64_t now)
{
    int oldest = -1;

    for (unsigned i = 0; i < n; i++) {
        if (place[i].state == ONIC_PLACE_FREE || place[i].state == ONIC_PLACE_ENDING)
            return -1;
        if (place[i].state == ONIC_PLACE_IDLE && (oldest < 0 || place[i].used < place[oldest].used))
            oldest = (int)i;
    }
    return oldest >= 0 && now - place[oldest].used >= (uint64_t)ONIC_PLACE_TURNS * n ? oldest : -1;
}

/** A place of a connection that another process has begun. */
typedef struct onic_served_place {
    bool taken;
    bool ended;       /**< the other process has said so */
    uint64_t process; /**< whose, where taken */
} onic_served_place_t;

/** Which of `n` places a process that asks gets: its own, one that is free, or one that has ended;
 *  -1: none. */
static inline int onic_place_for(const onic_served_place_t *place, unsigned n, uint64_t process)
{
    int empty = -1, ended = -1;

    for (unsigned i = 0; i < n; i++)
        if (!place[i].taken)
            empty = (int)i;
        else if (place[i].process == process)
            return (int)i;
        else if (place[i].ended)
            ended = (int)i;
    return empty >= 0 ? empty : ended;
}
