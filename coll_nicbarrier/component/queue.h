/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The queue of a communicator's barriers, in the order of their calls. Each gets a number, the
 * epoch, and is entered as soon as it is begun. As they are complete in their order, the first of
 * the queue is all that one has to look at. Nonblocking barriers stand in the queue as items, which
 * belong to the caller; a blocking one only takes a number.
 *
 * Pure: what carries the barriers is a table of functions. The caller serialises; functions that
 * may be called beside others are marked.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** What carries the barriers of a queue. None of these waits. */
typedef struct nicbarrier_means {
    /** Enters the next epoch. */
    void (*enter)(void *arg, uint64_t epoch);
    /** Is it complete? */
    bool (*done)(void *arg, uint64_t epoch);
    /** 0, or a code: what is not complete now never will be. Stays so. */
    int (*failure)(void *arg);
} nicbarrier_means_t;

/** A nonblocking barrier. */
typedef struct nicbarrier_item {
    struct nicbarrier_item *next;
    uint64_t epoch;
    int failure; /**< once it is out of the queue: 0, or what `failure` has returned */
} nicbarrier_item_t;

typedef struct nicbarrier_queue {
    const nicbarrier_means_t *means;
    void *arg;
    uint64_t begun;                    /**< the last number that was given */
    uint64_t complete;                 /**< the last that is known to be complete */
    _Atomic(nicbarrier_item_t *) head; /**< not complete, in order */
    nicbarrier_item_t *tail;
} nicbarrier_queue_t;

/** The first barrier will have the number behind `before`. */
void nicbarrier_queue_init(nicbarrier_queue_t *q, uint64_t before, const nicbarrier_means_t *means,
                           void *arg);

/** Begins a nonblocking barrier; the item's epoch is set. */
void nicbarrier_queue_add(nicbarrier_queue_t *q, nicbarrier_item_t *item);

/** Begins a blocking barrier: its number. */
uint64_t nicbarrier_queue_number(nicbarrier_queue_t *q);
/** It is complete. */
static inline void nicbarrier_queue_reached(nicbarrier_queue_t *q, uint64_t epoch)
{
    if (epoch > q->complete)
        q->complete = epoch;
}

/** Takes those out that are complete or have failed, in their order. The list is the caller's; NULL
 *  where there are none. */
nicbarrier_item_t *nicbarrier_queue_harvest(nicbarrier_queue_t *q);

/** Does no item stand in it? Acquires what was known when the last one left. */
static inline bool nicbarrier_queue_is_idle(const nicbarrier_queue_t *q)
{
    return atomic_load_explicit(&q->head, memory_order_acquire) == NULL;
}

/** Is everything complete that was begun? May be called beside others, as nicbarrier_queue_is_idle,
 *  by the only thread that may begin the next. */
static inline bool nicbarrier_queue_is_through(const nicbarrier_queue_t *q)
{
    return nicbarrier_queue_is_idle(q) && q->complete == q->begun;
}

/** The same as nicbarrier_queue_number where everything is through, for callers that enter the
 * epoch themselves, beside others. */
static inline uint64_t nicbarrier_queue_number_next(nicbarrier_queue_t *q)
{
    return ++q->begun;
}
