/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Does the program compute behind its nonblocking barriers? Then the helper thread has to take over
 * as soon as one is begun; to programs that wait at once it would only be in the way. Programs do
 * the same again and again: what counts is whether, in the life of the last few barriers, the MPI
 * threads were away for long.
 *
 * One record for each queue of barriers. Pure: time is an argument, in nanoseconds of any clock
 * that does not go back and has left 0. The caller serialises.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/** An absence of so many nanoseconds is long: several times what a step takes, and what it costs to
 *  wake a thread. */
#define NICBARRIER_OVERLAP_LONG 30000U
/** What is known lies between 0 and _MAX: it grows with each barrier that saw a long absence, and
 *  falls with each that did not. From _AWAY on the next absence is expected to be long. */
#define NICBARRIER_OVERLAP_MAX  3
#define NICBARRIER_OVERLAP_AWAY 2

/** Zero-initialise. */
typedef struct nicbarrier_overlap {
    uint64_t left;    /**< when the MPI threads left; 0 while they are here */
    uint64_t last;    /**< the last barrier that was begun when they left */
    uint64_t through; /**< the last barrier that saw a long absence */
    uint8_t known;    /**< 0 .. NICBARRIER_OVERLAP_MAX */
} nicbarrier_overlap_t;

/** The MPI threads go away and leave barriers unfinished, the last one that was begun being `last`.
 *  @return true where they will probably be away for long */
static inline bool nicbarrier_overlap_leave(nicbarrier_overlap_t *h, uint64_t last, uint64_t now)
{
    h->left = now;
    h->last = last;
    return h->known >= NICBARRIER_OVERLAP_AWAY;
}

/** An MPI thread looks after the barriers. Nothing where they are not away. */
static inline void nicbarrier_overlap_back(nicbarrier_overlap_t *h, uint64_t now)
{
    if (h->left != 0 && now - h->left >= NICBARRIER_OVERLAP_LONG)
        h->through = h->last;
    h->left = 0;
}

/** An MPI thread has found this barrier complete; barriers are found so in their order, each once,
 *  and only behind nicbarrier_overlap_back. Those while threads stayed teach nothing. */
static inline void nicbarrier_overlap_done(nicbarrier_overlap_t *h, uint64_t barrier)
{
    if (barrier > h->last)
        return;
    if (barrier > h->through)
        h->known -= h->known > 0;
    else
        h->known += h->known < NICBARRIER_OVERLAP_MAX;
}
