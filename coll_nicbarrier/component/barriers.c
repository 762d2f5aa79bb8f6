/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The barriers of a communicator by its team, and their requests. */
#include "coll_nicbarrier/component/state.h"

#include <pthread.h>

#include "common/support/clock.h"
#include "common/support/collective.h"
#include "ompi/constants.h"
#include "ompi/runtime/mpiruntime.h"
#include "opal/runtime/opal_progress.h"
#include "opal/util/output.h"

/** Polls of an incomplete barrier between two readings of the clock. */
#define STEPS_PER_LOOK 1024U

typedef struct nicbarrier_request {
    ompi_request_t super;
    STAILQ_ENTRY(nicbarrier_request) next; /**< in the queue, or of those to be completed */
    uint64_t epoch;
} nicbarrier_request_t;

OBJ_CLASS_DECLARATION(nicbarrier_request_t);

/** The error code of a failed or revoked team, or OMPI_SUCCESS. */
static int failure(const nicbarrier_barriers_t *b)
{
    if (ONIC_REVOKED(b->comm))
        return ONIC_ERR_REVOKED;
    return nicbarrier_team_failed(b->team) ? ONIC_ERR_PROC_FAILED : OMPI_SUCCESS;
}

#if ONIC_CAN_REVOKE
static bool is_revoked(void *comm)
{
    return ONIC_REVOKED((struct ompi_communicator_t *)comm);
}
#endif

/* ---- life ----------------------------------------------------------------------------------- */

/** Registers once, even if several threads make the first barriers of their communicators at the
 *  same time. */
static int register_progress(void)
{
    int rc = OMPI_SUCCESS;
    pthread_mutex_lock(&nicbarrier_state.lock);
    if (!nicbarrier_state.progressing) {
        rc = opal_progress_register(nicbarrier_progress);
        nicbarrier_state.progressing = rc == OMPI_SUCCESS;
    }
    pthread_mutex_unlock(&nicbarrier_state.lock);
    return rc;
}

int nicbarrier_barriers_set_up(nicbarrier_barriers_t *b, struct ompi_communicator_t *comm)
{
    int rc;
    if (register_progress() != OMPI_SUCCESS)
        onic_abort_no_memory(comm, "a barrier");
    nicbarrier_team_t *team = nicbarrier_agree(comm, &nicbarrier_state.params.agreement, &rc);
    if (team == NULL)
        return rc;
    if (nicbarrier_state.params.verbose > 0 && ompi_comm_rank(comm) == 0) {
        const char *engine = nicbarrier_engines[team->kind]->name;
        opal_output(0,
                    "coll_nicbarrier: barriers of communicator \"%s\" of %d processes go by %s%s",
                    ONIC_NAME(comm->c_name), ompi_comm_size(comm), engine,
                    team->on_node && team->net != NULL ? " between nodes, and by shm on each" : "");
    }
#if ONIC_CAN_REVOKE
    team->ended = is_revoked;
    team->ended_arg = comm;
#endif
    *b = (nicbarrier_barriers_t){.comm = comm, .team = team, .begun = NICBARRIER_TRIAL_EPOCH};
    STAILQ_INIT(&b->queue);
    pthread_mutex_lock(&nicbarrier_state.lock);
    LIST_INSERT_HEAD(&nicbarrier_state.all, b, next);
    pthread_mutex_unlock(&nicbarrier_state.lock);
    return OMPI_SUCCESS;
}

void nicbarrier_barriers_end(nicbarrier_barriers_t *b)
{
    nicbarrier_request_t *r;
    if (b->team == NULL)
        return;
    pthread_mutex_lock(&nicbarrier_state.lock);
    LIST_REMOVE(b, next);
    /* MPI_Finalize does not ask whether requests that the program never waited for are complete. */
    STAILQ_FOREACH(r, &b->queue, next)
    atomic_fetch_sub(&nicbarrier_state.waiting, 1);
    pthread_mutex_unlock(&nicbarrier_state.lock);
    nicbarrier_team_free(b->team);
    b->team = NULL;
}

/* ---- requests ------------------------------------------------------------------------------- */

/** The user and the thread that completes a request hold it, since the waiter may free it while
 * that thread still reads it. The last one ends it. */
static void destruct(nicbarrier_request_t *r)
{
    OMPI_REQUEST_FINI(&r->super);
}

OBJ_CLASS_INSTANCE(nicbarrier_request_t, ompi_request_t, NULL, destruct);

static int free_request(ompi_request_t **request_p)
{
    nicbarrier_request_t *r = (nicbarrier_request_t *)*request_p;

    *request_p = MPI_REQUEST_NULL;
    OBJ_RELEASE(r);
    return OMPI_SUCCESS;
}

static int cancel(ompi_request_t *request, int flag)
{
    (void)request;
    (void)flag;
    return MPI_ERR_REQUEST;
}

/** Completes a request: wakes its waiter, or frees it if the user already has. No lock held. */
static void complete(nicbarrier_request_t *r)
{
    struct ompi_communicator_t *comm = r->super.req_mpi_object.comm;

    ompi_request_complete(&r->super, true);
    OBJ_RELEASE(r);
    /* This may be the last reference. */
    OBJ_RELEASE(comm);
}

static nicbarrier_request_t *new_request(struct ompi_communicator_t *comm)
{
    nicbarrier_request_t *r = OBJ_NEW(nicbarrier_request_t);

    if (r == NULL)
        return NULL;
    OMPI_REQUEST_INIT(&r->super, false);
    r->super.req_state = OMPI_REQUEST_ACTIVE;
    r->super.req_type = OMPI_REQUEST_COLL;
    r->super.req_status._cancelled = 0;
    r->super.req_status._ucount = 0;
    r->super.req_status.MPI_ERROR = OMPI_SUCCESS;
    r->super.req_mpi_object.comm = comm;
    r->super.req_free = free_request;
    r->super.req_cancel = cancel;
    OBJ_RETAIN(r);
    OBJ_RETAIN(comm);
    return r;
}

/* ---- moving on ------------------------------------------------------------------------------ */

/** True if a request of the queue is complete or has failed. The lock is held. */
static bool is_through(const nicbarrier_barriers_t *b, nicbarrier_request_t *r)
{
    int *code = &r->super.req_status.MPI_ERROR;
    if (nicbarrier_team_done(b->team, r->epoch))
        return true;
    *code = failure(b);
    return *code != OMPI_SUCCESS;
}

/** Progresses barriers that have requests, and moves those that are through to a list. Likewise. */
static int step(nicbarrier_barriers_t *b, nicbarrier_requests_t *through)
{
    nicbarrier_request_t *r = STAILQ_FIRST(&b->queue);
    int events = 0;
    /* If the helper thread has completed it, the network need not be polled. */
    if (r != NULL && !nicbarrier_team_done(b->team, r->epoch)) {
        if (++b->steps % STEPS_PER_LOOK == 0)
            nicbarrier_team_check_members(b->team, onic_now_nsec());
        events = nicbarrier_team_progress(b->team);
    }
    for (; r != NULL && is_through(b, r); r = STAILQ_FIRST(&b->queue)) {
        STAILQ_REMOVE_HEAD(&b->queue, next);
        STAILQ_INSERT_TAIL(through, r, next);
    }
    return events;
}

int nicbarrier_progress(void)
{
    nicbarrier_requests_t through = STAILQ_HEAD_INITIALIZER(through);
    nicbarrier_barriers_t *b;
    nicbarrier_request_t *r;
    int events = 0;
    if (atomic_load_explicit(&nicbarrier_state.waiting, memory_order_relaxed) == 0 ||
        pthread_mutex_trylock(&nicbarrier_state.lock) != 0)
        return 0;
    LIST_FOREACH(b, &nicbarrier_state.all, next)
        events += step(b, &through);
    pthread_mutex_unlock(&nicbarrier_state.lock);
    while ((r = STAILQ_FIRST(&through)) != NULL) {
        STAILQ_REMOVE_HEAD(&through, next);
        atomic_fetch_sub(&nicbarrier_state.waiting, 1);
        complete(r);
        events++;
    }
    return events;
}

/* ---- barriers ------------------------------------------------------------------------------- */

/** Enters the next barrier without waiting for it. Returns its number. */
static uint64_t enter(nicbarrier_barriers_t *b)
{
    if (b->team->kind != NICBARRIER_NODE_ENGINE &&
        ompi_mpi_state >= OMPI_MPI_STATE_FINALIZE_PAST_COMM_SELF_DESTRUCT)
        nicbarrier_state.late = true;
    onic_count(&nicbarrier_counters.barriers[b->team->kind], 1);
    nicbarrier_team_enter(b->team, ++b->begun);
    return b->begun;
}

int nicbarrier_barriers_begin(nicbarrier_barriers_t *b, ompi_request_t **request)
{
    nicbarrier_request_t *r = new_request(b->comm);
    /* The other ranks count this barrier, so this rank must, too. */
    const uint64_t epoch = enter(b);
    if (r != NULL) {
        r->epoch = epoch;
        *request = &r->super;
        pthread_mutex_lock(&nicbarrier_state.lock);
        atomic_fetch_add(&nicbarrier_state.waiting, 1);
        STAILQ_INSERT_TAIL(&b->queue, r, next);
        pthread_mutex_unlock(&nicbarrier_state.lock);
    }
    nicbarrier_team_depart(b->team);
    (void)nicbarrier_progress();
    return r != NULL ? OMPI_SUCCESS : OMPI_ERR_OUT_OF_RESOURCE;
}

int nicbarrier_barriers_wait(nicbarrier_barriers_t *b)
{
    if (nicbarrier_team_wait(b->team, enter(b)))
        return OMPI_SUCCESS;
    const int code = failure(b);
    return code != OMPI_SUCCESS ? code : MPI_ERR_OTHER;
}
