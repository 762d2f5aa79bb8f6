/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Events in the order of time, the base of all simulations here. Hosts, adapters and links
 * are stations, which do one thing at a time. Times are nanoseconds. Two runs with the same seed
 * are identical: events of the same time come in the order in which they were added. One thread. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/** An event and its subject; the simulation defines the meaning of the numbers. */
typedef struct sim_event {
    double at;
    uint64_t order; /**< order among events of the same time */
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

/** Starts without events, with the clock at 0. */
void sim_events_init(sim_events_t *s, uint64_t seed);
void sim_events_fini(sim_events_t *s);

/** Adds an event for time `e.at`, not before now; `order` is filled in. Ends the program if memory
 *  is exhausted. */
void sim_add(sim_events_t *s, sim_event_t e);

/** Takes out the next event, and sets the clock. Returns 0 if there is none. */
int sim_next(sim_events_t *s, sim_event_t *e);

/** A random number in [0, 1). */
double sim_uniform(sim_events_t *s);

/** A random time with this mean, exponentially distributed; 0 for mean 0. */
double sim_exponential(sim_events_t *s, double mean);

/** A station, free from `*free` on, does something that takes `takes` and can begin at `at`.
 *  Returns the time at which it is done. */
static inline double sim_serve(double *free, double at, double takes)
{
    *free = (at > *free ? at : *free) + takes;
    return *free;
}
