/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The component, its modules (one for each communicator), its requests.
 *
 * A communicator's barriers go to the module below until the K-th of them (parameter setup_call),
 * which runs the agreement (agree.h). What was agreed holds until the communicator is freed.
 *
 * An MPI_Ibarrier may begin the agreement, and others may follow before it is over. These wait in
 * queue: when there is a team they enter it, in order. When there is none, they cannot go to the
 * module below: some ranks may know already that there is none, others not yet, and all must start
 * the collectives of that module in the same order. So they become exchanges of their own, one
 * after the other, and nonblocking barriers stay so until a blocking one, in which all ranks learn
 * that all know. From then on everything goes to the module below.
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
#include "coll_nicbarrier/engines/team.h"
#include "coll_nicbarrier/agree/exchange.h"
#include "coll_nicbarrier/component/overlap.h"
#include "ompi/communicator/communicator.h"
#include "ompi/mca/coll/base/base.h"
#include "ompi/mca/coll/coll.h"
#include "ompi/request/request.h"

/* ---- component ------------------------------------------------------------------------------ */

/** In place of an engine's number: that which does best. */
#define NICBARRIER_AUTO (-1)
/** The number of engine shm. */
#define NICBARRIER_SHM 0

/** Values of the MCA parameters (params.c documents them). */
typedef struct nicbarrier_params {
    int priority;
    int engine; /**< its number in nicbarrier_engines, or NICBARRIER_AUTO */
    int setup_call;
    int ppn;
    int spin;
    bool skew;
    uint64_t fingerprint; /**< of those that must be the same on all ranks */
    nicbarrier_engine_settings_t settings;
} nicbarrier_params_t;

typedef struct nicbarrier_module nicbarrier_module_t;
typedef struct nicbarrier_queue nicbarrier_queue_t;

typedef struct nicbarrier_component {
    mca_coll_base_component_t super;
    nicbarrier_params_t params;
    bool progressing;                  /**< our function is registered with Open MPI's progress */
    bool open[NICBARRIER_ENGINES_MAX]; /**< network engines that have been started */
    atomic_flag lock;                  /**< queues, lists */
    atomic_int waiting;                /**< requests that are not complete: 0 means nothing to do */
    nicbarrier_queue_t *queues; /**< all; what is left at the end belonged to forgotten requests */
    nicbarrier_queue_t *busy;   /**< queues with requests that are not complete */
} nicbarrier_component_t;

extern nicbarrier_component_t mca_coll_nicbarrier_component;

/** Counters, one process. Updated without locks: statistics, not truth. */
typedef struct nicbarrier_counters {
    unsigned long long barriers[NICBARRIER_ENGINES_MAX]; /**< begun, by engine */
    unsigned long long below; /**< left to the module below, or done by messages */
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

int nicbarrier_params_register(const mca_base_component_t *component);
/** Checks the values after all sources were read: errors get a text and a code. */
int nicbarrier_params_check(void);
/** Appends the values that must be the same on all ranks, as a queue for the user. */
void nicbarrier_params_describe(char *text, size_t size);
/** Has the user asked for this component? Otherwise others do the barriers. */
bool nicbarrier_params_wanted(void);
const char *nicbarrier_kind_name(int kind);
int nicbarrier_pvars_register(const mca_base_component_t *component);

/** Tells all processes which settings this one has; from the component's open function. */
void nicbarrier_settings_publish(void);
/** Have all ranks the same? If not, all of them answer so, and some say what differs. Local, but
 * for an answer of the node's daemon. Any MPI thread. */
bool nicbarrier_settings_agree(struct ompi_communicator_t *comm);

/** What this process wants of its teams. */
nicbarrier_team_config_t nicbarrier_team_config(void);

/** Starts a network engine unless it runs. 0, or -1 and the reason. */
int nicbarrier_net_open(int kind, nicbarrier_reason_t *why);

/* ---- queues of barriers -----------------------------------------------------------------------
 */

typedef struct nicbarrier_request {
    ompi_request_t super;
    struct nicbarrier_request *next;
    nicbarrier_queue_t *queue;
    struct ompi_communicator_t *comm; /**< kept while the request is not complete */
    uint64_t epoch;                   /**< its number in the queue */
    _Atomic unsigned holders;         /**< the user, and while it is active who completes it */
    nicbarrier_queue_t
        *own; /**< persistent: its own queue; the module below serves if this is NULL */
} nicbarrier_request_t;

OBJ_CLASS_DECLARATION(nicbarrier_request_t);

/** The barriers of a communicator, or of a persistent request, in the order of their calls. */
struct nicbarrier_queue {
    struct ompi_communicator_t *comm;
    nicbarrier_team_t *team;
    nicbarrier_agreement_t *agreement; /**< under way */
    bool by_exchange;                  /**< there will be no team: each is an exchange */
    bool exchanging;                   /**< the first request's exchange is under way */
    nicbarrier_exchange_t exchange;
    unsigned char *scratch;       /**< what it gathers */
    uint64_t epoch;               /**< the last that was begun */
    nicbarrier_overlap_t overlap; /**< of leaders of a network part */
    nicbarrier_request_t *head;   /**< not complete, in order */
    nicbarrier_request_t *tail;
    nicbarrier_queue_t *next; /**< of all queues */
    nicbarrier_queue_t *next_busy;
    bool busy; /**< in the component's list */
};

/** A queue whose agreement has been started; NULL and the code in *rc_p where it cannot be. */
nicbarrier_queue_t *nicbarrier_queue_new(struct ompi_communicator_t *comm, int *rc_p);
/** Nothing of it may be under way. */
void nicbarrier_queue_free(nicbarrier_queue_t *queue);
/** Waits until the agreement is over and all that stood in queue is complete. False where there is
 *  no team: the queue is of no use any more. */
bool nicbarrier_queue_settle(nicbarrier_queue_t *queue);
/** Begins the next barrier, nonblocking. `request` stands in the queue until it is complete. */
void nicbarrier_queue_begin(nicbarrier_queue_t *queue, nicbarrier_request_t *request);
/** Does a whole barrier; there is a team. Returns OMPI_SUCCESS, or OMPI_ERR_UNREACH where a
 *  connection is lost, which ends all barriers of this queue. */
int nicbarrier_queue_barrier(nicbarrier_queue_t *queue);

/** Open MPI's progress: moves all busy queues on and completes requests. */
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
    nicbarrier_queue_t *queue; /**< NULL until the K-th call, and where there is no team */
    bool below_for_good;       /**< the agreement has been made, without success */
    int calls;
    nicbarrier_below_t below;
};

OBJ_CLASS_DECLARATION(nicbarrier_module_t);

mca_coll_base_module_t *nicbarrier_comm_query(struct ompi_communicator_t *comm, int *priority);

#endif
