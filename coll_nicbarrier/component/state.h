/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The component: its parameters and counters, the barriers of a communicator, and the modules (one
 * for each communicator). Persistent barriers stay with the module below.
 *
 * A communicator's barriers go to the module below until the K-th of them (parameter setup_call).
 * The first blocking one from that on runs the agreement (agree.h), by collectives of the modules
 * below, which all ranks call there in the same order. Nonblocking barriers that have begun below
 * also end there. The result holds until the communicator is freed: a team (team.h) carries its
 * barriers, or the module below does. If the agreement ends in an error here, all barriers of the
 * communicator fail, since other ranks may use the team.
 *
 * Locks: `lock` of the component's state guards the list and all queues; it is held briefly, never
 * while waiting, and not while requests are completed, since their callbacks may do anything. What
 * else barriers have is used by one thread at a time, as MPI asks of the calls of a communicator.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "common/ompi_compat.h"
#include "mpi.h"

#include "coll_nicbarrier/agree/agree.h"
#include "coll_nicbarrier/engines/engine.h"
#include "coll_nicbarrier/team/team.h"
#include "ompi/communicator/communicator.h"
#include "ompi/mca/coll/base/base.h"
#include "ompi/mca/coll/coll.h"
#include "ompi/request/request.h"

/* ---- parameters, counters: params.c --------------------------------------------------------- */

/** Values of the MCA parameters. */
typedef struct nicbarrier_params {
    int priority;
    int setup_call;
    int verbose;
    nicbarrier_agreement_config_t agreement;
} nicbarrier_params_t;

typedef struct nicbarrier_state {
    nicbarrier_params_t params;
    atomic_bool late;     /**< barriers between nodes came after the fence of MPI_Finalize */
    bool progressing;     /**< our function is registered with Open MPI's progress */
    pthread_mutex_t lock; /**< guards the list and all queues */
    atomic_int waiting;   /**< requests that are not complete; 0: nothing to do */
    LIST_HEAD(, nicbarrier_barriers) all;
} nicbarrier_state_t;

extern nicbarrier_state_t nicbarrier_state;

/** Counters of this process, for onic_count. */
typedef struct nicbarrier_counters {
    unsigned long long barriers[NICBARRIER_ENGINES_MAX]; /**< begun, for each engine */
    unsigned long long below;                            /**< left to the module below */
} nicbarrier_counters_t;

extern nicbarrier_counters_t nicbarrier_counters;

/** Registers the parameters and performance variables with Open MPI. */
void nicbarrier_params_register(const mca_base_component_t *component);
/** Checks the values after all sources have been read. Reports errors and returns their code. */
int nicbarrier_params_check(const mca_base_component_t *component);
/** True if the user has asked for this component; otherwise other components do the barriers. */
bool nicbarrier_params_wanted(void);
/** The i-th parameter of the component and its engines, counted from 0; NULL past the last. */
const onic_param_t *nicbarrier_param(int i);

/* ---- settings that all ranks share: settings.c ------------------------------------------ */

/** Publishes the settings of this process, and lets the engines that may be chosen register with
 *  common/ before other components start. Called by the component's open function. */
void nicbarrier_settings_publish(void);
/** True if this component may do the barriers of a communicator. The answer is the same on all its
 *  ranks. Looks up other processes, and waits for them, for MPI_COMM_WORLD only. Any MPI thread. */
bool nicbarrier_settings_agree(struct ompi_communicator_t *comm);

/* ---- barriers and their requests: barriers.c ------------------------------------------------ */

typedef STAILQ_HEAD(, nicbarrier_request) nicbarrier_requests_t;

/** The barriers of a communicator, in the order of their calls, and the team that carries them.
 *  Each gets a number, its epoch, and is entered as soon as it begins. Barriers
 *  become complete in order, so only the first of the queue need be polled. The queue holds the
 *  requests of nonblocking barriers; a blocking barrier only takes a number. */
typedef struct nicbarrier_barriers {
    struct ompi_communicator_t *comm;
    nicbarrier_team_t *team;
    uint64_t begun;                       /**< the last number given */
    nicbarrier_requests_t queue;          /**< the incomplete requests, in order */
    unsigned steps;                       /**< calls of progress while requests are incomplete */
    LIST_ENTRY(nicbarrier_barriers) next; /**< in the list of all */
} nicbarrier_barriers_t;

/** Collective, and waits: agrees on a team. If there is none b->team stays NULL: on all ranks
 * alike, unless an error is returned, with which the agreement has ended here. */
int nicbarrier_barriers_set_up(nicbarrier_barriers_t *b, struct ompi_communicator_t *comm);
/** Frees the team, if there is one. No barrier may be active. */
void nicbarrier_barriers_end(nicbarrier_barriers_t *b);
/** Begins the next barrier, a nonblocking one, whose request keeps the communicator until it is
 *  complete. */
int nicbarrier_barriers_begin(nicbarrier_barriers_t *b, ompi_request_t **request);
/** Does a whole barrier. Returns OMPI_SUCCESS, or MPI's error code if a process or a connection has
 *  failed or the communicator was revoked; then all barriers of this queue fail. */
int nicbarrier_barriers_wait(nicbarrier_barriers_t *b);

/** Open MPI's progress function: advances all active barriers and completes requests. */
int nicbarrier_progress(void);

/* ---- modules: module.c ---------------------------------------------------------------------- */

/** The module for a communicator, and the component's priority; NULL if it declines. */
mca_coll_base_module_t *nicbarrier_comm_query(struct ompi_communicator_t *comm, int *priority);
