/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * When nothing more comes from a process that is lost.
 *
 * What it had sent before may lie in queues still: it completes what waits for it, or is written
 * to the memory of a receive, which is the user's again once the receive has ended. So all of
 * it is handled first. Queues have an end, and none of them gets longer by that process: they are
 * empty when a progress of all finds nothing, and have been gone through when many have found
 * something, which others go on to send.
 *
 * Pure.
 */
#ifndef ONIC_DRAIN_H
#define ONIC_DRAIN_H

#include <stdbool.h>

/** So many entries no queue of messages has; a progress that finds something handles one or more
 *  of each. */
#define ONIC_DRAIN_MOST 4096

typedef struct onic_drain {
    unsigned left; /**< most progresses until it is over; 0: it is */
} onic_drain_t;

/** A process is lost, maybe while it goes on for another. */
static inline void onic_drain_begin(onic_drain_t *d)
{
    d->left = ONIC_DRAIN_MOST;
}

static inline bool onic_drain_goes_on(const onic_drain_t *d)
{
    return d->left > 0;
}

/** While it goes on: a progress has found so much. True where it was the last one. */
static inline bool onic_drain_ends(onic_drain_t *d, unsigned found)
{
    d->left = found > 0 ? d->left - 1 : 0;
    return d->left == 0;
}

#endif
