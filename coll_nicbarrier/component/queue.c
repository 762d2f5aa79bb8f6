/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Lines of barriers: agreement, then one epoch for each, and their completion.
 */
#include "coll_nicbarrier/component/module.h"
#include "common/pause.h"

#include <sched.h>
#include <stdlib.h>
#include <time.h>

#include "ompi/constants.h"
#include "opal/runtime/opal_progress.h"
#include "opal/util/output.h"

static nicbarrier_component_t *component(void)
{
    return &mca_coll_nicbarrier_component;
}

static bool try_lock(void)
{
    return !atomic_flag_test_and_set_explicit(&component()->lock, memory_order_acquire);
}

static void lock(void)
{
    for (unsigned spins = 1; !try_lock(); spins++) {
        /* The holder may have lost its processor. */
        if (spins % 64 == 0) {
            sched_yield();
        }
        onic_pause();
    }
}

static void unlock(void)
{
    atomic_flag_clear_explicit(&component()->lock, memory_order_release);
}

/* ---- life ----------------------------------------------------------------------------------- */

static int register_progress(void)
{
    if (component()->progressing) {
        return OMPI_SUCCESS;
    }
    int rc = opal_progress_register(nicbarrier_progress);
    component()->progressing = rc == OMPI_SUCCESS;
    return rc;
}

nicbarrier_queue_t *nicbarrier_queue_new(struct ompi_communicator_t *comm, int *rc_p)
{
    nicbarrier_queue_t *queue = calloc(1, sizeof(*queue));
    *rc_p = OMPI_ERR_OUT_OF_RESOURCE;
    if (queue == NULL) {
        return NULL;
    }
    queue->comm = comm;
    queue->epoch = NICBARRIER_TRIAL_EPOCH;
    queue->scratch = malloc((size_t)ompi_comm_size(comm));
    if (queue->scratch != NULL) {
        *rc_p = register_progress();
    }
    if (*rc_p == OMPI_SUCCESS) {
        nicbarrier_counters.agreements++;
        queue->agreement = nicbarrier_agreement_start(comm, rc_p);
    }
    if (queue->agreement == NULL) {
        free(queue->scratch);
        free(queue);
        return NULL;
    }
    lock();
    queue->next = component()->queues;
    component()->queues = queue;
    unlock();
    return queue;
}

/** Out of all lists, with the requests that stand in it: of some that a program never waited for
 *  MPI_Finalize does not ask whether they are complete. */
static void take_out(const nicbarrier_queue_t *queue)
{
    nicbarrier_queue_t **at = &component()->queues;
    lock();
    while (*at != NULL && *at != queue) {
        at = &(*at)->next;
    }
    if (*at != NULL) {
        *at = queue->next;
    }
    for (at = &component()->busy; *at != NULL && *at != queue;) {
        at = &(*at)->next_busy;
    }
    if (*at != NULL) {
        *at = queue->next_busy;
    }
    for (const nicbarrier_request_t *r = queue->head; r != NULL; r = r->next) {
        atomic_fetch_sub(&component()->waiting, 1);
    }
    unlock();
}

void nicbarrier_queue_free(nicbarrier_queue_t *queue)
{
    if (queue == NULL) {
        return;
    }
    take_out(queue);
    if (queue->agreement != NULL) {
        nicbarrier_team_free(nicbarrier_agreement_finish(queue->agreement));
    }
    nicbarrier_counters.live_teams -= queue->team != NULL;
    nicbarrier_team_free(queue->team);
    free(queue->scratch);
    free(queue);
}

/* ---- moving on; the lock is held --------------------------------------------------------------
 */

static void note_skew(nicbarrier_queue_t *queue, uint64_t epoch)
{
    uint64_t nsec;
    if (queue->team->on_node && nicbarrier_shm_skew(&queue->team->shm, epoch, &nsec)) {
        nicbarrier_counters_t *n = &nicbarrier_counters;
        n->skew_count++;
        n->skew_total += nsec;
        n->skew_max = nsec > n->skew_max ? nsec : n->skew_max;
    }
}

static void enter(nicbarrier_team_t *team, uint64_t epoch)
{
    nicbarrier_counters.barriers[team->kind]++;
    nicbarrier_team_enter(team, epoch);
}

/** The agreement is over: those who stand in queue enter. A blocking barrier of another thread
 * looks at `team` without the lock, and must not enter before them. */
static void end_agreement(nicbarrier_queue_t *queue)
{
    nicbarrier_team_t *team = nicbarrier_agreement_finish(queue->agreement);
    queue->agreement = NULL;
    if (team == NULL) {
        nicbarrier_counters.declined++;
        queue->by_exchange = true;
        return;
    }
    nicbarrier_counters.live_teams++;
    team->agreed = true;
    for (nicbarrier_request_t *r = queue->head; r != NULL; r = r->next) {
        enter(team, r->epoch);
    }
    nicbarrier_team_depart(team);
    __atomic_store_n(&queue->team, team, __ATOMIC_RELEASE);
}

/** One barrier by exchange; 1 where it is complete. */
static int exchange_step(nicbarrier_queue_t *queue)
{
    unsigned char byte = 0;
    int rc = OMPI_SUCCESS;
    if (!queue->exchanging) {
        nicbarrier_counters.below++;
        rc = nicbarrier_exchange_start(&queue->exchange, queue->comm, NULL,
                                       ompi_comm_size(queue->comm), ompi_comm_rank(queue->comm),
                                       &byte, 1, queue->scratch);
        queue->exchanging = rc == OMPI_SUCCESS;
    }
    if (rc == OMPI_SUCCESS) {
        rc = nicbarrier_exchange_progress(&queue->exchange);
    }
    if (rc != 0) {
        queue->exchanging = false;
    }
    return rc;
}

/** Is the first in queue through? 1, 0, or an OMPI error. */
static int first_is_done(nicbarrier_queue_t *queue)
{
    if (queue->team != NULL) {
        return nicbarrier_team_done(queue->team, queue->head->epoch)      ? 1
               : nicbarrier_team_failure(queue->team) != NICBARRIER_SOUND ? OMPI_ERR_UNREACH
                                                                          : 0;
    }
    return queue->by_exchange ? exchange_step(queue) : 0;
}

static uint64_t now_nsec(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

static int step(nicbarrier_queue_t *queue)
{
    int events = 0;
    if (queue->overlap.left != 0) {
        nicbarrier_overlap_back(&queue->overlap, now_nsec());
    }
    if (queue->agreement != NULL && nicbarrier_agreement_progress(queue->agreement) != 0) {
        end_agreement(queue);
        events++;
    }
    /* What the helper thread has done needs no look at the network. */
    if (queue->team == NULL ||
        (queue->head != NULL && nicbarrier_team_done(queue->team, queue->head->epoch))) {
        return events;
    }
    return events + nicbarrier_team_progress(queue->team);
}

/** Takes those off the queue that are complete, and puts them at the end of a list. */
static int harvest(nicbarrier_queue_t *queue, nicbarrier_request_t ***tail_p)
{
    int n = 0, rc;
    while (queue->head != NULL && (rc = first_is_done(queue)) != 0) {
        nicbarrier_request_t *r = queue->head;
        queue->head = r->next;
        r->next = NULL;
        r->super.req_status.MPI_ERROR = rc < 0 ? rc : OMPI_SUCCESS;
        if (queue->team != NULL && queue->team->config.skew) {
            note_skew(queue, r->epoch);
        }
        nicbarrier_overlap_done(&queue->overlap, r->epoch);
        **tail_p = r;
        *tail_p = &r->next;
        n++;
    }
    return n;
}

/** Walks over the busy queues; what is complete goes to a list. */
static int walk(nicbarrier_request_t **done_p)
{
    nicbarrier_request_t **tail = done_p;
    int events = 0;
    for (nicbarrier_queue_t **at = &component()->busy; *at != NULL;) {
        nicbarrier_queue_t *queue = *at;
        events += step(queue);
        events += harvest(queue, &tail);
        if (queue->head == NULL) {
            queue->busy = false;
            *at = queue->next_busy;
        } else {
            at = &queue->next_busy;
        }
    }
    return events;
}

int nicbarrier_progress(void)
{
    if (atomic_load_explicit(&component()->waiting, memory_order_relaxed) == 0 || !try_lock()) {
        return 0;
    }
    nicbarrier_request_t *done = NULL;
    int events = walk(&done);
    unlock();
    while (done != NULL) {
        nicbarrier_request_t *r = done;
        done = r->next;
        atomic_fetch_sub(&component()->waiting, 1);
        nicbarrier_request_done(r);
    }
    return events;
}

/* ---- barriers ------------------------------------------------------------------------------- */

static void make_busy(nicbarrier_queue_t *queue)
{
    if (!queue->busy) {
        queue->busy = true;
        queue->next_busy = component()->busy;
        component()->busy = queue;
    }
}

/** The application goes on with other things, barriers being under way: for long, probably? */
static void leave(void)
{
    uint64_t now = 0;
    lock();
    for (nicbarrier_queue_t *queue = component()->busy; queue != NULL; queue = queue->next_busy) {
        if (queue->team != NULL && nicbarrier_team_helped(queue->team)) {
            now = now != 0 ? now : now_nsec();
            if (nicbarrier_overlap_leave(&queue->overlap, queue->epoch, now)) {
                nicbarrier_team_leave(queue->team);
            }
        }
    }
    unlock();
}

void nicbarrier_queue_begin(nicbarrier_queue_t *queue, nicbarrier_request_t *request)
{
    lock();
    request->epoch = ++queue->epoch;
    request->next = NULL;
    if (queue->head == NULL) {
        queue->head = request;
    } else {
        queue->tail->next = request;
    }
    queue->tail = request;
    make_busy(queue);
    atomic_fetch_add(&component()->waiting, 1);
    if (queue->team != NULL) {
        enter(queue->team, request->epoch);
        nicbarrier_team_depart(queue->team);
    }
    unlock();
    (void)nicbarrier_progress();
    if (queue->team != NULL && nicbarrier_team_helped(queue->team)) {
        leave();
    }
}

bool nicbarrier_queue_settle(nicbarrier_queue_t *queue)
{
    bool settled = false;
    while (!settled) {
        /* The agreement that nobody stands in queue for is moved on here. */
        if (try_lock()) {
            if (queue->agreement != NULL) {
                (void)step(queue);
            }
            settled = queue->agreement == NULL && (queue->team != NULL || queue->head == NULL);
            unlock();
        }
        if (!settled) {
            opal_progress();
        }
    }
    return queue->team != NULL;
}

int nicbarrier_queue_barrier(nicbarrier_queue_t *queue)
{
    uint64_t epoch = ++queue->epoch;
    enter(queue->team, epoch);
    if (!nicbarrier_team_wait(queue->team, epoch)) {
        return OMPI_ERR_UNREACH;
    }
    if (queue->team->config.skew) {
        note_skew(queue, epoch);
    }
    return OMPI_SUCCESS;
}
