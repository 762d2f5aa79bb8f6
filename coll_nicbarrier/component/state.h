/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The component's state: the values of its parameters, its counters, the lists of what is under
 * way.
 */
#ifndef NICBARRIER_STATE_H
#define NICBARRIER_STATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/ompi_compat.h"

#include "coll_nicbarrier/engines/engine.h"
#include "ompi/mca/coll/coll.h"

/** Values of the MCA parameters. */
typedef struct nicbarrier_params {
    int priority;
    int engine; /**< its number in nicbarrier_engines, or NICBARRIER_ANY_ENGINE */
    int setup_call;
    int ppn;
    int spin;
    bool skew;
    nicbarrier_engine_settings_t settings;
} nicbarrier_params_t;

/** Those of which rank 0's values hold for the whole job, in the order of their tables. */
#define NICBARRIER_SHARED_MAX 8
typedef struct nicbarrier_shared {
    int32_t value[NICBARRIER_SHARED_MAX];
} nicbarrier_shared_t;

typedef struct nicbarrier_barriers nicbarrier_barriers_t;

typedef struct nicbarrier_state {
    nicbarrier_params_t params;
    bool progressing;            /**< our function is registered with Open MPI's progress */
    atomic_flag lock;            /**< guards all queues and lists; see barriers.h */
    atomic_int waiting;          /**< requests that are not complete: 0 means nothing to do */
    nicbarrier_barriers_t *all;  /**< what is left at the end belonged to forgotten requests */
    nicbarrier_barriers_t *busy; /**< those with requests that are not complete */
} nicbarrier_state_t;

extern nicbarrier_state_t nicbarrier_state;

/** Counters, one process. Of several threads, see nicbarrier_add. */
typedef struct nicbarrier_counters {
    unsigned long long barriers[NICBARRIER_ENGINES_MAX]; /**< begun, by engine */
    unsigned long long below;                            /**< left to the module below */
    unsigned long long agreements;
    unsigned long long trials;
    unsigned long long declined;
    unsigned long long live_teams;
    unsigned long long live_requests;
    unsigned long long skew_count;
    unsigned long long skew_total; /**< nanoseconds */
    unsigned long long skew_max;
} nicbarrier_counters_t;

extern nicbarrier_counters_t nicbarrier_counters;

/** Adds to one of them. Of any thread, and as cheap as a plain addition: where two threads add at
 *  the same time, one of them may be lost. */
static inline void nicbarrier_add(unsigned long long *counter, unsigned long long n)
{
    __atomic_store_n(counter, __atomic_load_n(counter, __ATOMIC_RELAXED) + n, __ATOMIC_RELAXED);
}

/** The same for objects in use, of which none may be lost. */
static inline void nicbarrier_add_live(unsigned long long *counter, long long n)
{
    if (opal_using_threads()) {
        (void)__atomic_fetch_add(counter, (unsigned long long)n, __ATOMIC_RELAXED);
    } else {
        nicbarrier_add(counter, (unsigned long long)n);
    }
}

/** Registers the parameters with Open MPI. */
void nicbarrier_params_register(const mca_base_component_t *component);
/** Registers the performance variables. */
void nicbarrier_pvars_register(const mca_base_component_t *component);
/** Checks the values after all sources were read: errors get a text and a code. */
int nicbarrier_params_check(void);
/** Has the user asked for this component? Otherwise others do the barriers. */
bool nicbarrier_params_wanted(void);
/** Those that hold for the job, as they are here. */
void nicbarrier_params_get(nicbarrier_shared_t *shared);
/** Takes them over from a process of the same version. False, with nothing changed, where one is
 *  out of its range. */
bool nicbarrier_params_set(const nicbarrier_shared_t *shared);
/** Writes them as a line for the user; they are within their ranges. */
void nicbarrier_params_describe(const nicbarrier_shared_t *shared, char *text, size_t size);

#endif
