/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The barriers of a communicator, or of a persistent request, and their requests.
 *
 * Locks: `lock` of the component's state guards all queues and lists; it is held shortly, never
 * while waiting, and not when requests are completed, whose callbacks may do anything.
 */
#ifndef NICBARRIER_BARRIERS_H
#define NICBARRIER_BARRIERS_H

#include "common/ompi_compat.h"
#include "mpi.h"

#include "coll_nicbarrier/agree/agree.h"
#include "coll_nicbarrier/component/overlap.h"
#include "coll_nicbarrier/component/queue.h"
#include "coll_nicbarrier/component/state.h"
#include "coll_nicbarrier/team/team.h"
#include "ompi/communicator/communicator.h"
#include "ompi/request/request.h"

typedef struct nicbarrier_request {
    ompi_request_t super;
    nicbarrier_item_t item;           /**< in the queue */
    struct ompi_communicator_t *comm; /**< kept while the request is not complete */
    _Atomic unsigned holders; /**< the user, and while it is active the thread that completes it */
    nicbarrier_barriers_t *own; /**< persistent: its own, NULL in others */
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
/** Begins the next barrier, for which no thread waits. */
void nicbarrier_barriers_enter(nicbarrier_barriers_t *b);
/** Does a whole barrier. Returns OMPI_SUCCESS, or MPI's code where a process or a
 *  connection has failed or the communicator is revoked, which ends all barriers of this queue. */
int nicbarrier_barriers_wait(nicbarrier_barriers_t *b);

/** Open MPI's progress: moves all that is busy on and completes requests. */
int nicbarrier_progress(void);

/** A new request; NULL where memory is exhausted. */
nicbarrier_request_t *nicbarrier_request_new(struct ompi_communicator_t *comm, bool persistent);

#endif
