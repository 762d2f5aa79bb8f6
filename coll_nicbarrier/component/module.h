/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The component, its modules (one for each communicator), its requests.
 *
 * A communicator's barriers go to the module below until the K-th of them (parameter setup_call).
 * The first blocking one from that on runs the agreement (agree.h), by collectives of the modules
 * below, which all ranks call there in the same order. Nonblocking ones that have begun below end
 * there. What was agreed holds until the communicator is freed: a team (team.h) carries its
 * barriers, or the module below does. An agreement that ends in an error here fails all barriers of
 * the communicator, since others may use what it was to make.
 *
 * Locks: `lock` of the component guards all queues and lists; it is held shortly, never while
 * waiting, and not when requests are completed, whose callbacks may do anything.
 */
#ifndef NICBARRIER_MODULE_H
#define NICBARRIER_MODULE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/ompi_compat.h"
#include "mpi.h"

#include "coll_nicbarrier/agree/agree.h"
#include "coll_nicbarrier/team/team.h"
#include "coll_nicbarrier/component/overlap.h"
#include "coll_nicbarrier/component/queue.h"
#include "ompi/communicator/communicator.h"
#include "ompi/mca/coll/base/base.h"
#include "ompi/mca/coll/coll.h"
#include "ompi/request/request.h"

/* ---- component ------------------------------------------------------------------------------ */

/** Values of the MCA parameters (params.c documents them). */
typedef struct nicbarrier_params {
    int priority;
    int engine; /**< its number in nicbarrier_engines, or NICBARRIER_ANY_ENGINE */
    int setup_call;
    int ppn;
    int spin;
    bool skew;
    uint64_t fingerprint; /**< of those whose values of rank 0 hold for the job */
    nicbarrier_engine_settings_t settings;
} nicbarrier_params_t;

typedef struct nicbarrier_module nicbarrier_module_t;
typedef struct nicbarrier_barriers nicbarrier_barriers_t;

typedef struct nicbarrier_component {
    mca_coll_base_component_t super;
    nicbarrier_params_t params;
    bool progressing;            /**< our function is registered with Open MPI's progress */
    atomic_flag lock;            /**< queues, lists */
    atomic_int waiting;          /**< requests that are not complete: 0 means nothing to do */
    nicbarrier_barriers_t *all;  /**< what is left at the end belonged to forgotten requests */
    nicbarrier_barriers_t *busy; /**< those with requests that are not complete */
} nicbarrier_component_t;

extern nicbarrier_component_t mca_coll_nicbarrier_component;

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

int nicbarrier_params_register(const mca_base_component_t *component);
/** Checks the values after all sources were read: errors get a text and a code. */
int nicbarrier_params_check(void);
/** Appends the values of which those of rank 0 hold for the job, as a line for the user. */
void nicbarrier_params_describe(char *text, size_t size);
/** Takes over the values that must be the same from what another process describes. False, with
 *  nothing changed, where one of them is missing or none that can be. */
bool nicbarrier_params_adopt(const char *text);
/** Has the user asked for this component? Otherwise others do the barriers. */
bool nicbarrier_params_wanted(void);
int nicbarrier_pvars_register(const mca_base_component_t *component);

/** Has the engines that may be wanted say what they have to before other components begin. */
void nicbarrier_announce(void);

/** Tells all processes which settings this one has; from the component's open function. */
void nicbarrier_settings_publish(void);
/** Whether this component may do the barriers of a communicator: the same answer on all its ranks.
 * Looks up other processes for MPI_COMM_WORLD and for intercommunicators of jobs not yet known, and
 * never for others. Any MPI thread. */
bool nicbarrier_settings_agree(struct ompi_communicator_t *comm);

/** What this process wants of an agreement. */
nicbarrier_agreement_config_t nicbarrier_agreement_config(void);

/* ---- the barriers of a communicator -----------------------------------------------------------
 */

typedef struct nicbarrier_request {
    ompi_request_t super;
    nicbarrier_item_t item;           /**< in the queue */
    struct ompi_communicator_t *comm; /**< kept while the request is not complete */
    _Atomic unsigned holders;         /**< the user, and while it is active who completes it */
    nicbarrier_barriers_t *own;       /**< persistent: its own, NULL in others */
} nicbarrier_request_t;

OBJ_CLASS_DECLARATION(nicbarrier_request_t);

/** The barriers of a communicator, or of a persistent request: their queue, and what carries them.
 */
struct nicbarrier_barriers {
    struct ompi_communicator_t *comm;
    nicbarrier_queue_t queue;
    nicbarrier_team_t *team;
    unsigned steps;               /**< turns of progress without an end of the first */
    nicbarrier_overlap_t overlap; /**< of leaders of a network part */
    nicbarrier_barriers_t *next;  /**< of all */
    nicbarrier_barriers_t *next_busy;
    bool busy; /**< in the component's list */
};

/** Collective, and waits: agrees on a team. NULL where there is none: on all ranks alike, unless
 * the code in *rc_p says that the agreement has ended in an error here. */
nicbarrier_barriers_t *nicbarrier_barriers_new(struct ompi_communicator_t *comm, int *rc_p);
/** Nothing of it may be under way. */
void nicbarrier_barriers_free(nicbarrier_barriers_t *b);
/** Begins the next barrier, nonblocking. The request stands in the queue until it is complete. */
void nicbarrier_barriers_begin(nicbarrier_barriers_t *b, nicbarrier_request_t *request);
/** Begins the next barrier, and nobody waits for it. */
void nicbarrier_barriers_enter(nicbarrier_barriers_t *b);
/** Does a whole barrier. Returns OMPI_SUCCESS, or MPI's code where a process or a
 *  connection has failed or the communicator is revoked, which ends all barriers of this queue. */
int nicbarrier_barriers_wait(nicbarrier_barriers_t *b);

/** Open MPI's progress: moves all that is busy on and completes requests. */
int nicbarrier_progress(void);

/** A new request; NULL where memory is exhausted. */
nicbarrier_request_t *nicbarrier_request_new(struct ompi_communicator_t *comm, bool persistent);
/** It is complete: tells the waiting, or frees it where the user has done so. No lock held. */
void nicbarrier_request_done(nicbarrier_request_t *request);

/* ---- module -----------------------------------------------------------------------------------
 */

/** What the module below would do. */
typedef struct nicbarrier_below {
    mca_coll_base_module_barrier_fn_t barrier;
    mca_coll_base_module_t *barrier_module;
    mca_coll_base_module_ibarrier_fn_t ibarrier;
    mca_coll_base_module_t *ibarrier_module;
    mca_coll_base_module_barrier_init_fn_t barrier_init;
    mca_coll_base_module_t *barrier_init_module;
} nicbarrier_below_t;

struct nicbarrier_module {
    mca_coll_base_module_t super;
    nicbarrier_barriers_t *barriers; /**< NULL where there is no team */
    bool below_for_good;             /**< no other agreement is begun; nor within one */
    int failure;                     /**< the code that the agreement has ended with here */
    int calls;                       /**< up to the one that is to set up the engine */
    nicbarrier_below_t below;
};

OBJ_CLASS_DECLARATION(nicbarrier_module_t);

mca_coll_base_module_t *nicbarrier_comm_query(struct ompi_communicator_t *comm, int *priority);

#endif
