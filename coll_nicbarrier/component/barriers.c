/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The barriers of a communicator: agreement, then a team, messages or, after an error, nothing;
 * and the completion of requests. Which barrier is entered when, queue.h knows.
 */
#include "coll_nicbarrier/component/module.h"

#include <sched.h>
#include <stddef.h>
#include <stdlib.h>

#include "common/support/clock.h"
#include "common/support/pause.h"
#include "ompi/constants.h"
#include "opal/runtime/opal_progress.h"

/** Of the times that a barrier is looked at and not complete, in one of so many the clock is read.
 */
#define STEPS_PER_LOOK 1024U

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

/* ---- what carries them: the lock is held, but for blocking barriers ---------------------------
 */

/** MPI's code for what has become of the team. */
static int code_of(nicbarrier_barriers_t *b)
{
    const nicbarrier_failure_t failure = nicbarrier_team_failure(b->team);
    if (ONIC_REVOKED(b->comm)) {
        return ONIC_ERR_REVOKED;
    }
    return failure == NICBARRIER_SOUND  ? OMPI_SUCCESS
           : failure == NICBARRIER_DEAD ? ONIC_ERR_PROC_FAILED
                                        : MPI_ERR_OTHER;
}

static void team_enter(void *arg, uint64_t epoch, uint64_t count)
{
    nicbarrier_barriers_t *b = arg;
    nicbarrier_add(&nicbarrier_counters.barriers[b->team->kind], count);
    nicbarrier_team_enter(b->team, epoch);
}

static bool team_done(void *arg, uint64_t epoch)
{
    nicbarrier_barriers_t *b = arg;
    return nicbarrier_team_done(b->team, epoch);
}

static int team_failure(void *arg)
{
    return code_of(arg);
}

static const nicbarrier_means_t by_team = {team_enter, team_done, team_failure};

static void messages_enter(void *arg, uint64_t epoch, uint64_t count)
{
    nicbarrier_barriers_t *b = arg;
    nicbarrier_add(&nicbarrier_counters.below, count);
    nicbarrier_messages_enter(b->messages, epoch);
}

static bool messages_done(void *arg, uint64_t epoch)
{
    nicbarrier_barriers_t *b = arg;
    return nicbarrier_messages_done(b->messages, epoch);
}

static int messages_failure(void *arg)
{
    nicbarrier_barriers_t *b = arg;
    return ONIC_REVOKED(b->comm) ? ONIC_ERR_REVOKED : nicbarrier_messages_failure(b->messages);
}

static const nicbarrier_means_t by_messages = {messages_enter, messages_done, messages_failure};

static void broken_enter(void *arg, uint64_t epoch, uint64_t count)
{
    (void)arg;
    (void)epoch;
    (void)count;
}

static bool broken_done(void *arg, uint64_t epoch)
{
    (void)arg;
    (void)epoch;
    return false;
}

static int broken_failure(void *arg)
{
    const nicbarrier_barriers_t *b = arg;
    return ONIC_REVOKED(b->comm) ? ONIC_ERR_REVOKED : b->broken;
}

/** The others may still wait for this rank in the agreement: nothing would meet theirs. */
static const nicbarrier_means_t by_nothing = {broken_enter, broken_done, broken_failure};

#if ONIC_CAN_REVOKE
static bool is_revoked(void *comm)
{
    return ONIC_REVOKED((struct ompi_communicator_t *)comm);
}
#endif

/* ---- life ----------------------------------------------------------------------------------- */

/** Once, though threads may make the first barriers of several communicators at the same time. */
static int register_progress(void)
{
    int rc = OMPI_SUCCESS;
    lock();
    if (!component()->progressing) {
        rc = opal_progress_register(nicbarrier_progress);
        component()->progressing = rc == OMPI_SUCCESS;
    }
    unlock();
    return rc;
}

nicbarrier_barriers_t *nicbarrier_barriers_new(struct ompi_communicator_t *comm, uint32_t number,
                                               int *rc_p)
{
    nicbarrier_barriers_t *b = calloc(1, sizeof(*b));
    *rc_p = OMPI_ERR_OUT_OF_RESOURCE;
    if (b == NULL) {
        return NULL;
    }
    b->comm = comm;
    nicbarrier_queue_init(&b->queue, NICBARRIER_TRIAL_EPOCH, NICBARRIER_OUTSTANDING_MAX);
    /* Without memory for these the agreement is made all the same: others wait for this rank. */
    b->messages = nicbarrier_pml_messages(comm);
    *rc_p = register_progress();
    if (*rc_p == OMPI_SUCCESS) {
        nicbarrier_add(&nicbarrier_counters.agreements, 1);
        const nicbarrier_agreement_config_t config = nicbarrier_agreement_config(number);
        b->agreement = nicbarrier_agreement_start(comm, &config, rc_p);
    }
    if (b->agreement == NULL) {
        nicbarrier_messages_free(b->messages);
        free(b);
        return NULL;
    }
    lock();
    b->next = component()->all;
    component()->all = b;
    unlock();
    return b;
}

/** Out of all lists, with the requests that stand in the queue: of some that a program never waited
 *  for MPI_Finalize does not ask whether they are complete. */
static void take_out(const nicbarrier_barriers_t *b)
{
    nicbarrier_barriers_t **at = &component()->all;
    lock();
    while (*at != NULL && *at != b) {
        at = &(*at)->next;
    }
    if (*at != NULL) {
        *at = b->next;
    }
    for (at = &component()->busy; *at != NULL && *at != b;) {
        at = &(*at)->next_busy;
    }
    if (*at != NULL) {
        *at = b->next_busy;
    }
    for (const nicbarrier_item_t *i = b->queue.head; i != NULL; i = i->next) {
        atomic_fetch_sub(&component()->waiting, 1);
    }
    unlock();
}

void nicbarrier_barriers_free(nicbarrier_barriers_t *b)
{
    if (b == NULL) {
        return;
    }
    take_out(b);
    if (b->agreement != NULL) {
        nicbarrier_team_free(nicbarrier_agreement_finish(b->agreement));
    }
    if (b->team != NULL) {
        nicbarrier_add_live(&nicbarrier_counters.live_teams, -1);
    }
    nicbarrier_team_free(b->team);
    nicbarrier_messages_free(b->messages);
    free(b);
}

/* ---- moving on; the lock is held --------------------------------------------------------------
 */

static void note_skew(nicbarrier_barriers_t *b, uint64_t epoch)
{
    uint64_t nsec;
    if (b->team->on_node && nicbarrier_shm_skew(&b->team->shm, epoch, &nsec)) {
        nicbarrier_counters_t *n = &nicbarrier_counters;
        n->skew_count++;
        n->skew_total += nsec;
        n->skew_max = nsec > n->skew_max ? nsec : n->skew_max;
    }
}

/** The agreement is over: those that wait in the queue are entered. A blocking barrier of another
 * thread looks at `ready` without the lock, and must not enter before them. */
static void end_agreement(nicbarrier_barriers_t *b, int broken)
{
    b->team = nicbarrier_agreement_finish(b->agreement);
    b->agreement = NULL;
    if (broken != 0) {
        b->broken = broken;
        nicbarrier_queue_use(&b->queue, &by_nothing, b);
        return;
    }
    if (b->team == NULL && b->messages == NULL) {
        b->broken = MPI_ERR_NO_MEM;
        nicbarrier_queue_use(&b->queue, &by_nothing, b);
        return;
    }
    if (b->team == NULL) {
        nicbarrier_add(&nicbarrier_counters.declined, 1);
        nicbarrier_queue_use(&b->queue, &by_messages, b);
        return;
    }
    nicbarrier_add_live(&nicbarrier_counters.live_teams, 1);
    nicbarrier_messages_free(b->messages);
    b->messages = NULL;
    b->team->agreed = true;
#if ONIC_CAN_REVOKE
    b->team->ended = is_revoked;
    b->team->ended_arg = b->comm;
#endif
    nicbarrier_queue_use(&b->queue, &by_team, b);
    nicbarrier_team_depart(b->team);
    atomic_store_explicit(&b->ready, true, memory_order_release);
}

/** Is the first of the queue through already? */
static bool first_is_done(const nicbarrier_barriers_t *b)
{
    const nicbarrier_queue_t *q = &b->queue;
    return q->head != NULL && q->head->epoch <= q->entered &&
           nicbarrier_team_done(b->team, q->head->epoch);
}

static int step(nicbarrier_barriers_t *b)
{
    int events = 0;
    if (b->overlap.left != 0) {
        nicbarrier_overlap_back(&b->overlap, onic_now_nsec());
    }
    if (b->agreement != NULL) {
        const int rc =
            ONIC_REVOKED(b->comm) ? ONIC_ERR_REVOKED : nicbarrier_agreement_progress(b->agreement);
        if (rc == 0) {
            return events;
        }
        end_agreement(b, rc == 1 ? 0 : rc > 1 ? rc : MPI_ERR_OTHER);
        events++;
    }
    if (b->broken != 0) {
        return events;
    }
    if (b->team == NULL) {
        return events + nicbarrier_messages_progress(b->messages);
    }
    /* What the helper thread has done needs no look at the network. */
    if (first_is_done(b)) {
        return events;
    }
    if (++b->steps % STEPS_PER_LOOK == 0) {
        nicbarrier_team_look_around(b->team, onic_now_nsec());
    }
    return events + nicbarrier_team_progress(b->team);
}

/** Takes those off the queue that are complete, and puts them at the end of a list. */
static int harvest(nicbarrier_barriers_t *b, nicbarrier_item_t ***tail_p)
{
    int n = 0;
    **tail_p = nicbarrier_queue_harvest(&b->queue);
    for (; **tail_p != NULL; *tail_p = &(**tail_p)->next) {
        const uint64_t epoch = (**tail_p)->epoch;
        if (b->team != NULL && b->team->config.skew) {
            note_skew(b, epoch);
        }
        nicbarrier_overlap_done(&b->overlap, epoch);
        n++;
    }
    /* What the bound has held back and has been entered now. */
    if (n > 0 && b->queue.head != NULL && b->team != NULL) {
        nicbarrier_team_depart(b->team);
    }
    return n;
}

/** Walks over what is busy; what is complete goes to a list. */
static int walk(nicbarrier_item_t **done_p)
{
    nicbarrier_item_t **tail = done_p;
    int events = 0;
    for (nicbarrier_barriers_t **at = &component()->busy; *at != NULL;) {
        nicbarrier_barriers_t *b = *at;
        events += step(b);
        events += harvest(b, &tail);
        if (b->queue.head == NULL) {
            b->busy = false;
            *at = b->next_busy;
        } else {
            at = &b->next_busy;
        }
    }
    return events;
}

static nicbarrier_request_t *request_of(nicbarrier_item_t *item)
{
    return (nicbarrier_request_t *)(void *)((char *)item - offsetof(nicbarrier_request_t, item));
}

int nicbarrier_progress(void)
{
    if (atomic_load_explicit(&component()->waiting, memory_order_relaxed) == 0 || !try_lock()) {
        return 0;
    }
    nicbarrier_item_t *done = NULL;
    int events = walk(&done);
    unlock();
    while (done != NULL) {
        nicbarrier_request_t *r = request_of(done);
        done = done->next;
        r->super.req_status.MPI_ERROR = r->item.failure;
        atomic_fetch_sub(&component()->waiting, 1);
        nicbarrier_request_done(r);
    }
    return events;
}

/* ---- barriers ------------------------------------------------------------------------------- */

static void make_busy(nicbarrier_barriers_t *b)
{
    if (!b->busy) {
        b->busy = true;
        b->next_busy = component()->busy;
        component()->busy = b;
    }
}

/** The application goes on with other things, barriers being under way: for long, probably? */
static void leave(void)
{
    uint64_t now = 0;
    lock();
    for (nicbarrier_barriers_t *b = component()->busy; b != NULL; b = b->next_busy) {
        if (b->team != NULL && nicbarrier_team_helped(b->team)) {
            now = now != 0 ? now : onic_now_nsec();
            if (nicbarrier_overlap_leave(&b->overlap, b->queue.begun, now)) {
                nicbarrier_team_leave(b->team);
            }
        }
    }
    unlock();
}

void nicbarrier_barriers_begin(nicbarrier_barriers_t *b, nicbarrier_request_t *request)
{
    lock();
    make_busy(b);
    atomic_fetch_add(&component()->waiting, 1);
    nicbarrier_queue_add(&b->queue, &request->item);
    const bool helped = b->team != NULL && nicbarrier_team_helped(b->team);
    if (b->team != NULL) {
        nicbarrier_team_depart(b->team);
    }
    unlock();
    (void)nicbarrier_progress();
    if (helped) {
        leave();
    }
}

void nicbarrier_barriers_enter(nicbarrier_barriers_t *b)
{
    lock();
    (void)nicbarrier_queue_number(&b->queue);
    unlock();
}

bool nicbarrier_barriers_settle(nicbarrier_barriers_t *b, int *rc_p)
{
    bool settled = false;
    while (!settled) {
        /* The agreement that no barrier waits for is moved on here. */
        if (try_lock()) {
            if (b->agreement != NULL) {
                (void)step(b);
            }
            settled = b->agreement == NULL;
            unlock();
        }
        if (!settled) {
            opal_progress();
        }
    }
    *rc_p = b->broken != 0 ? broken_failure(b) : OMPI_SUCCESS;
    return b->team != NULL;
}

/** Numbers a blocking barrier behind nonblocking ones, and sees to it that it is entered. */
static uint64_t number_behind(nicbarrier_barriers_t *b)
{
    lock();
    const uint64_t epoch = nicbarrier_queue_number(&b->queue);
    bool may_wait = nicbarrier_queue_may_wait(&b->queue, epoch);
    unlock();
    while (!may_wait) {
        opal_progress();
        lock();
        may_wait = nicbarrier_queue_may_wait(&b->queue, epoch);
        unlock();
    }
    return epoch;
}

int nicbarrier_barriers_wait(nicbarrier_barriers_t *b)
{
    /* Where nothing else is under way nobody else looks at the queue. */
    const bool alone = nicbarrier_queue_is_through(&b->queue);
    uint64_t epoch;
    if (alone) {
        epoch = nicbarrier_queue_number_next(&b->queue);
        team_enter(b, epoch, 1);
    } else {
        epoch = number_behind(b);
    }
    if (!nicbarrier_team_wait(b->team, epoch)) {
        const int code = code_of(b);
        return code != OMPI_SUCCESS ? code : MPI_ERR_OTHER;
    }
    if (alone) {
        nicbarrier_queue_reached(&b->queue, epoch);
    } else {
        /* Nobody else would say so: it does not stand in the queue. */
        lock();
        nicbarrier_queue_reached(&b->queue, epoch);
        unlock();
    }
    if (b->team->config.skew) {
        note_skew(b, epoch);
    }
    return OMPI_SUCCESS;
}
