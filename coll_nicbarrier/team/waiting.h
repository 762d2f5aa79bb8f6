/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * What a thread that waits for a barrier does, one action after another. The rule depends on one
 * fact: with whom the rank shares its processors.
 *
 * - *Own*: the rank is bound to processors that no other rank is bound to. It polls, then calls
 * Open MPI's progress, since others may wait for answers of that. It never yields: a program that
 * is not of the job would get a whole time slice.
 * - *Shared*: there are processors enough. It does the same, and yields now and then, since the
 * kernel may have put two ranks on one processor.
 * - *Crowded*: there are more ranks than processors. It yields at once, since the others may need
 * this processor. After NICBARRIER_YIELDS yields it sleeps in the kernel, where it costs the others
 * nothing, and wakes up now and then for Open MPI's progress.
 *
 * Pure.
 */
#pragma once

#include <stdbool.h>

/** Yields for one call of Open MPI's progress. */
#define NICBARRIER_YIELDS_PER_PROGRESS 8U
/** Calls of Open MPI's progress for one yield. */
#define NICBARRIER_PROGRESS_PER_YIELD 4U
/** Yields before a thread sleeps, some 100 microseconds if the others only wait, too. */
#define NICBARRIER_YIELDS 64U
/** Actions between two checks for dead members. A check reads the clock. */
#define NICBARRIER_ACTIONS_PER_CHECK 64U

/** How a rank shares the processors that it may run on. */
typedef enum nicbarrier_processors {
    NICBARRIER_OWN,    /**< it is bound, and no other rank to the same ones */
    NICBARRIER_SHARED, /**< other ranks may run there, but not more than there are processors */
    NICBARRIER_CROWDED /**< more ranks run there than there are processors */
} nicbarrier_processors_t;

/** Actions, as bits, done from the lowest to the highest. After each the caller checks for the end
 *  of the barrier. */
typedef enum nicbarrier_wait_action {
    NICBARRIER_WAIT_PAUSE = 1,    /**< let the processor's other thread go first, some ns */
    NICBARRIER_WAIT_PROGRESS = 2, /**< call Open MPI's progress */
    NICBARRIER_WAIT_YIELD = 4,
    NICBARRIER_WAIT_SLEEP = 8,
    NICBARRIER_WAIT_CHECK = 16 /**< check whether the members live */
} nicbarrier_wait_action_t;

/** The n-th action of a wait, n >= 1.
 *  @param polls      polls before anything else, unless crowded
 *  @param processors how this rank shares its processors
 *  @return a set of nicbarrier_wait_action_t */
static inline unsigned nicbarrier_waiting_action(unsigned n, unsigned polls,
                                                 nicbarrier_processors_t processors)
{
    const bool crowded = processors == NICBARRIER_CROWDED;
    const bool yields = processors == NICBARRIER_SHARED && n % NICBARRIER_PROGRESS_PER_YIELD == 0;
    const unsigned check = n % NICBARRIER_ACTIONS_PER_CHECK == 0 ? NICBARRIER_WAIT_CHECK : 0;

    if (crowded && n > NICBARRIER_YIELDS)
        return NICBARRIER_WAIT_PROGRESS | NICBARRIER_WAIT_SLEEP | check;
    if (crowded)
        return NICBARRIER_WAIT_YIELD | check |
               (n % NICBARRIER_YIELDS_PER_PROGRESS == 0 ? NICBARRIER_WAIT_PROGRESS : 0);
    if (n <= polls)
        return NICBARRIER_WAIT_PAUSE;
    return NICBARRIER_WAIT_PROGRESS | check | (yields ? NICBARRIER_WAIT_YIELD : 0);
}
