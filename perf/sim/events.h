/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Events in the order of their time: what all simulations here run on. Hosts, adapters and
 *  links are stations, which do one thing after another. Times are nanoseconds. Two runs with the
 *  same seed are the same to the bit: events of one time come in the order in which they were
 *  added. One thread. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/** What happens, and to whom; the simulation says what the numbers mean. */
typedef struct sim_event {
    double at;
    uint64_t order; /**< of those of the same time */
    uint64_t value;
    uint32_t who;
    uint16_t kind;
    uint16_t step;
} sim_event_t;

typedef struct sim_events {
    double now;
    uint64_t random;
    uint64_t order;
    sim_event_t *heap;
    size_t n, room;
    uint64_t handled; /**< events so far */
} sim_events_t;

/** Nothing is to happen; the clock stands at 0. */
void sim_events_init(sim_events_t *s, uint64_t seed);
void sim_events_fini(sim_events_t *s);

/** `e` is to happen at `e.at`, no earlier than now; its `order` is filled in. Ends the program
 *  where memory is exhausted. */
void sim_add(sim_events_t *s, sim_event_t e);

/** Takes the next event out, and sets the clock. Returns 0 where there is none. */
int sim_next(sim_events_t *s, sim_event_t *e);

/** A number in [0, 1). */
double sim_uniform(sim_events_t *s);

/** A time of this mean, exponentially distributed; 0 for 0. */
double sim_exponential(sim_events_t *s, double mean);

/** A station that is free from `*free` on does something for `takes`, which can begin at `at`.
 *  Returns when it has done it. */
static inline double sim_serve(double *free, double at, double takes)
{
    *free = (at > *free ? at : *free) + takes;
    return *free;
}
