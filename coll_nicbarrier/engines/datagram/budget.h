/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * How many packets that bring nothing a process takes in before it looks away for a while: a token
 * bucket (as the virtual time of the generic cell rate algorithm), so that nobody keeps it awake by
 * sending. What brings something new costs nothing.
 *
 * Pure: time is an argument, in nanoseconds of any clock that does not go back. The caller
 * serialises.
 */
#ifndef NICBARRIER_BUDGET_H
#define NICBARRIER_BUDGET_H

#include <stdint.h>

/** What one costs: ten thousand in a second. */
#define NICBARRIER_BUDGET_COST UINT64_C(100000)
/** What may be spent at once: for a thousand. Losses and duplicates of a network that is not well
 *  stay far below. */
#define NICBARRIER_BUDGET_BURST (1000 * NICBARRIER_BUDGET_COST)
/** Where it is spent one waits until there is enough for so many again. */
#define NICBARRIER_BUDGET_PAUSE (100 * NICBARRIER_BUDGET_COST)

/** Zero-initialise. */
typedef struct nicbarrier_budget {
    uint64_t paid; /**< all that was spent is earned by then */
} nicbarrier_budget_t;

/** One packet that brought nothing. */
static inline void nicbarrier_budget_spend(nicbarrier_budget_t *b, uint64_t now)
{
    b->paid = (b->paid > now ? b->paid : now) + NICBARRIER_BUDGET_COST;
}

/** @return nanoseconds for which nothing more should be taken in; 0: there is something left */
static inline uint64_t nicbarrier_budget_pause(const nicbarrier_budget_t *b, uint64_t now)
{
    return b->paid > now + NICBARRIER_BUDGET_BURST
               ? b->paid - now - NICBARRIER_BUDGET_BURST + NICBARRIER_BUDGET_PAUSE
               : 0;
}

#endif
