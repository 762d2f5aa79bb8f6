/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The barriers of a communicator by its team, and their requests. */
#include "coll_nicbarrier/component/state.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/support/clock.h"
#include "ompi/constants.h"
#include "ompi/runtime/mpiruntime.h"
#include "opal/runtime/opal_progress.h"
#include "opal/util/output.h"
#include "opal/util/proc.h"

/** Polls of an incomplete barrier between two readings of the clock. */
#define STEPS_PER_LOOK 1024U

/* ---- calls to the team; the lock is held except for blocking barriers -------------------------
 */

/** The error code of a failed or revoked team, or OMPI_SUCCESS. */
static int failure(const nicbarrier_barriers_t *b)
{
    if (ONIC_REVOKED(b->comm))
        return ONIC_ERR_REVOKED;
    return nicbarrier_team_failed(b->team) ? ONIC_ERR_PROC_FAILED : OMPI_SUCCESS;
}

/** Enters the next barrier and returns its number. */
static uint64_t enter(nicbarrier_barriers_t *b)
{
    if (b->team->kind != NICBARRIER_NODE_ENGINE &&
        ompi_mpi_state >= OMPI_MPI_STATE_FINALIZE_PAST_COMM_SELF_DESTRUCT)
        nicbarrier_state.late = true;
    nicbarrier_add(&nicbarrier_counters.barriers[b->team->kind], 1);
    nicbarrier_team_enter(b->team, ++b->begun);
    return b->begun;
}

static void reached(nicbarrier_barriers_t *b, uint64_t epoch)
{
    if (epoch > b->complete)
        b->complete = epoch;
}

#if ONIC_CAN_REVOKE
static bool is_revoked(void *comm)
{
    return ONIC_REVOKED((struct ompi_communicator_t *)comm);
}
#endif

/* ---- life ----------------------------------------------------------------------------------- */

/** The team's waiting threads call this. */
static void progress(void)
{
    (void)opal_progress();
}

/** Registers once, even if several threads make the first barriers of their communicators at the
 *  same time. */
static int register_progress(void)
{
    nicbarrier_team_config_t *team = &nicbarrier_state.params.agreement.team;
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    int rc = OMPI_SUCCESS;
    pthread_mutex_lock(&nicbarrier_state.lock);
    if (!nicbarrier_state.progressing) {
        team->processors = (long)opal_process_info.num_local_peers + 1 > processors
                               ? NICBARRIER_CROWDED
                               : NICBARRIER_SHARED;
        team->progress = progress;
        rc = opal_progress_register(nicbarrier_progress);
        nicbarrier_state.progressing = rc == OMPI_SUCCESS;
    }
    pthread_mutex_unlock(&nicbarrier_state.lock);
    return rc;
}

nicbarrier_barriers_t *nicbarrier_barriers_new(struct ompi_communicator_t *comm, int *rc_p)
{
    nicbarrier_barriers_t *b = calloc(1, sizeof(*b));
    const bool able = b != NULL && register_progress() == OMPI_SUCCESS;
    nicbarrier_add(&nicbarrier_counters.agreements, 1);
    nicbarrier_team_t *team =
        nicbarrier_agree(comm, &nicbarrier_state.params.agreement, able, rc_p);
    if (team == NULL) {
        nicbarrier_add(&nicbarrier_counters.declined, *rc_p == OMPI_SUCCESS);
        free(b);
        return NULL;
    }
    nicbarrier_add_live(&nicbarrier_counters.live_teams, 1);
    b->comm = comm;
    b->team = team;
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
    b->begun = b->complete = NICBARRIER_TRIAL_EPOCH;
    pthread_mutex_lock(&nicbarrier_state.lock);
    b->next = nicbarrier_state.all;
    nicbarrier_state.all = b;
    pthread_mutex_unlock(&nicbarrier_state.lock);
    return b;
}

/** Removes the barriers from the list, and their requests from the queue. MPI_Finalize does not ask
 *  whether requests that the program never waited for are complete. */
static void unlink_barriers(const nicbarrier_barriers_t *b)
{
    nicbarrier_barriers_t **at = &nicbarrier_state.all;
    pthread_mutex_lock(&nicbarrier_state.lock);
    while (*at != b)
        at = &(*at)->next;
    *at = b->next;
    for (const nicbarrier_request_t *r = b->head; r != NULL; r = r->next)
        atomic_fetch_sub(&nicbarrier_state.waiting, 1);
    pthread_mutex_unlock(&nicbarrier_state.lock);
}

void nicbarrier_barriers_free(nicbarrier_barriers_t *b)
{
    if (b == NULL)
        return;
    unlink_barriers(b);
    nicbarrier_add_live(&nicbarrier_counters.live_teams, -1);
    nicbarrier_team_free(b->team);
    free(b);
}

/* ---- requests ------------------------------------------------------------------------------- */

static void construct(nicbarrier_request_t *r)
{
    r->comm = NULL;
    r->holders = 0;
    nicbarrier_add_live(&nicbarrier_counters.live_requests, 1);
}

static void destruct(nicbarrier_request_t *r)
{
    (void)r;
    nicbarrier_add_live(&nicbarrier_counters.live_requests, -1);
}

OBJ_CLASS_INSTANCE(nicbarrier_request_t, ompi_request_t, construct, destruct);

/** The waiter may free a request while the thread that completes it still reads it. The last holder
 *  frees it. */
static void release(nicbarrier_request_t *r)
{
    if (atomic_fetch_sub(&r->holders, 1) == 1) {
        OMPI_REQUEST_FINI(&r->super);
        OBJ_RELEASE(r);
    }
}

static int free_request(ompi_request_t **request_p)
{
    nicbarrier_request_t *r = (nicbarrier_request_t *)*request_p;

    *request_p = MPI_REQUEST_NULL;
    release(r);
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
    struct ompi_communicator_t *comm = r->comm;

    ompi_request_complete(&r->super, true);
    release(r);
    /* This may be the last reference. */
    OBJ_RELEASE(comm);
}

/* ---- moving on; the lock is held ------------------------------------------------------------ */

static int step(nicbarrier_barriers_t *b)
{
    /* If the helper thread has completed it, the network need not be polled. */
    if (nicbarrier_team_done(b->team, b->head->epoch))
        return 0;
    if (++b->steps % STEPS_PER_LOOK == 0)
        nicbarrier_team_check_members(b->team, onic_now_nsec());
    return nicbarrier_team_progress(b->team);
}

/** True if the first request of the queue is complete or has failed. */
static bool is_through(nicbarrier_barriers_t *b, nicbarrier_request_t *r)
{
    int *code = &r->super.req_status.MPI_ERROR;
    if (nicbarrier_team_done(b->team, r->epoch)) {
        reached(b, r->epoch);
        return true;
    }
    *code = failure(b);
    return *code != OMPI_SUCCESS;
}

/** Moves finished requests from the queue to the end of a list. */
static void harvest(nicbarrier_barriers_t *b, nicbarrier_request_t ***tail_p)
{
    nicbarrier_request_t *r;
    while ((r = b->head) != NULL && is_through(b, r)) {
        atomic_store_explicit(&b->head, r->next, memory_order_release);
        r->next = NULL;
        **tail_p = r;
        *tail_p = &r->next;
    }
}

/** Progresses all barriers that have requests, and puts complete requests on a list. */
static int walk(nicbarrier_request_t **done_p)
{
    nicbarrier_request_t **tail = done_p;
    int events = 0;
    for (nicbarrier_barriers_t *b = nicbarrier_state.all; b != NULL; b = b->next) {
        if (b->head != NULL) {
            events += step(b);
            harvest(b, &tail);
        }
    }
    return events;
}

int nicbarrier_progress(void)
{
    if (atomic_load_explicit(&nicbarrier_state.waiting, memory_order_relaxed) == 0 ||
        pthread_mutex_trylock(&nicbarrier_state.lock) != 0)
        return 0;
    nicbarrier_request_t *done = NULL;
    int events = walk(&done) + (done != NULL);
    pthread_mutex_unlock(&nicbarrier_state.lock);
    while (done != NULL) {
        nicbarrier_request_t *r = done;
        done = r->next;
        atomic_fetch_sub(&nicbarrier_state.waiting, 1);
        complete(r);
    }
    return events;
}

/* ---- barriers ------------------------------------------------------------------------------- */

void nicbarrier_barriers_begin(nicbarrier_barriers_t *b, nicbarrier_request_t *request)
{
    pthread_mutex_lock(&nicbarrier_state.lock);
    atomic_fetch_add(&nicbarrier_state.waiting, 1);
    request->epoch = enter(b);
    request->next = NULL;
    if (b->head == NULL)
        b->head = request;
    else
        b->tail->next = request;
    b->tail = request;
    nicbarrier_team_depart(b->team);
    pthread_mutex_unlock(&nicbarrier_state.lock);
    (void)nicbarrier_progress();
}

uint64_t nicbarrier_barriers_enter(nicbarrier_barriers_t *b)
{
    pthread_mutex_lock(&nicbarrier_state.lock);
    const uint64_t epoch = enter(b);
    pthread_mutex_unlock(&nicbarrier_state.lock);
    return epoch;
}

int nicbarrier_barriers_wait(nicbarrier_barriers_t *b)
{
    /* If no nonblocking barrier is active, no other thread looks at the queue. */
    const bool alone =
        atomic_load_explicit(&b->head, memory_order_acquire) == NULL && b->complete == b->begun;
    const uint64_t epoch = alone ? enter(b) : nicbarrier_barriers_enter(b);
    if (!nicbarrier_team_wait(b->team, epoch)) {
        const int code = failure(b);
        return code != OMPI_SUCCESS ? code : MPI_ERR_OTHER;
    }
    if (alone) {
        reached(b, epoch);
    } else {
        /* A blocking barrier does not stand in the queue. */
        pthread_mutex_lock(&nicbarrier_state.lock);
        reached(b, epoch);
        pthread_mutex_unlock(&nicbarrier_state.lock);
    }
    return OMPI_SUCCESS;
}

/* ---- new requests --------------------------------------------------------------------------- */

nicbarrier_request_t *nicbarrier_request_new(struct ompi_communicator_t *comm)
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
    r->comm = comm;
    r->holders = 2;
    return r;
}
