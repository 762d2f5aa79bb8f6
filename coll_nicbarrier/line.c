/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Lines of barriers: agreement, then one epoch for each, and their completion.
 */
#include "coll_nicbarrier/module.h"
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

nicbarrier_line_t *nicbarrier_line_new(struct ompi_communicator_t *comm, int *rc_p)
{
    nicbarrier_line_t *line = calloc(1, sizeof(*line));
    *rc_p = OMPI_ERR_OUT_OF_RESOURCE;
    if (line == NULL) {
        return NULL;
    }
    line->comm = comm;
    line->epoch = NICBARRIER_TRIAL_EPOCH;
    line->scratch = malloc((size_t)ompi_comm_size(comm));
    if (line->scratch != NULL) {
        *rc_p = register_progress();
    }
    if (*rc_p == OMPI_SUCCESS) {
        nicbarrier_counters.agreements++;
        line->agreement = nicbarrier_agreement_start(comm, rc_p);
    }
    if (line->agreement == NULL) {
        free(line->scratch);
        free(line);
        return NULL;
    }
    lock();
    line->next = component()->lines;
    component()->lines = line;
    unlock();
    return line;
}

/** Out of all lists, with the requests that stand in it: of some that a program never waited for
 *  MPI_Finalize does not ask whether they are complete. */
static void take_out(const nicbarrier_line_t *line)
{
    nicbarrier_line_t **at = &component()->lines;
    lock();
    while (*at != NULL && *at != line) {
        at = &(*at)->next;
    }
    if (*at != NULL) {
        *at = line->next;
    }
    for (at = &component()->busy; *at != NULL && *at != line;) {
        at = &(*at)->next_busy;
    }
    if (*at != NULL) {
        *at = line->next_busy;
    }
    for (const nicbarrier_request_t *r = line->head; r != NULL; r = r->next) {
        atomic_fetch_sub(&component()->waiting, 1);
    }
    unlock();
}

void nicbarrier_line_free(nicbarrier_line_t *line)
{
    if (line == NULL) {
        return;
    }
    take_out(line);
    if (line->agreement != NULL) {
        nicbarrier_carrier_free(nicbarrier_agreement_finish(line->agreement));
    }
    nicbarrier_counters.live_carriers -= line->carrier != NULL;
    nicbarrier_carrier_free(line->carrier);
    free(line->scratch);
    free(line);
}

/* ---- moving on; the lock is held --------------------------------------------------------------
 */

static void count(nicbarrier_kind_t kind)
{
    nicbarrier_counters.barriers[kind]++;
}

static void note_skew(nicbarrier_line_t *line, uint64_t epoch)
{
    uint64_t nsec;
    if (line->carrier->on_node && nicbarrier_shm_skew(&line->carrier->shm, epoch, &nsec)) {
        nicbarrier_counters_t *n = &nicbarrier_counters;
        n->skew_count++;
        n->skew_total += nsec;
        n->skew_max = nsec > n->skew_max ? nsec : n->skew_max;
    }
}

static void enter(nicbarrier_carrier_t *carrier, uint64_t epoch)
{
    count(carrier->kind);
    nicbarrier_carrier_enter(carrier, epoch);
}

/** The agreement is over: those who stand in line enter. A blocking barrier of another thread looks
 *  at `carrier` without the lock, and must not enter before them. */
static void end_agreement(nicbarrier_line_t *line)
{
    nicbarrier_carrier_t *carrier = nicbarrier_agreement_finish(line->agreement);
    line->agreement = NULL;
    if (carrier == NULL) {
        nicbarrier_counters.declined++;
        line->by_exchange = true;
        return;
    }
    nicbarrier_counters.live_carriers++;
    carrier->agreed = true;
    for (nicbarrier_request_t *r = line->head; r != NULL; r = r->next) {
        enter(carrier, r->epoch);
    }
    nicbarrier_carrier_depart(carrier);
    __atomic_store_n(&line->carrier, carrier, __ATOMIC_RELEASE);
}

/** One barrier by exchange; 1 where it is complete. */
static int exchange_step(nicbarrier_line_t *line)
{
    unsigned char byte = 0;
    int rc = OMPI_SUCCESS;
    if (!line->exchanging) {
        count(NICBARRIER_AUTO);
        rc =
            nicbarrier_exchange_start(&line->exchange, line->comm, NULL, ompi_comm_size(line->comm),
                                      ompi_comm_rank(line->comm), &byte, 1, line->scratch);
        line->exchanging = rc == OMPI_SUCCESS;
    }
    if (rc == OMPI_SUCCESS) {
        rc = nicbarrier_exchange_progress(&line->exchange);
    }
    if (rc != 0) {
        line->exchanging = false;
    }
    return rc;
}

/** Is the first in line through? 1, 0, or an OMPI error. */
static int first_is_done(nicbarrier_line_t *line)
{
    if (line->carrier != NULL) {
        return nicbarrier_carrier_done(line->carrier, line->head->epoch) ? 1
               : nicbarrier_carrier_failed(line->carrier)                ? OMPI_ERR_UNREACH
                                                                         : 0;
    }
    return line->by_exchange ? exchange_step(line) : 0;
}

static uint64_t now_nsec(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

static int step(nicbarrier_line_t *line)
{
    int events = 0;
    if (line->habit.left != 0) {
        nicbarrier_habit_back(&line->habit, now_nsec());
    }
    if (line->agreement != NULL && nicbarrier_agreement_progress(line->agreement) != 0) {
        end_agreement(line);
        events++;
    }
    /* What the helper thread has done needs no look at the network. */
    if (line->carrier == NULL ||
        (line->head != NULL && nicbarrier_carrier_done(line->carrier, line->head->epoch))) {
        return events;
    }
    return events + nicbarrier_carrier_progress(line->carrier);
}

/** Takes those off the line that are complete, and puts them at the end of a list. */
static int harvest(nicbarrier_line_t *line, nicbarrier_request_t ***tail_p)
{
    int n = 0, rc;
    while (line->head != NULL && (rc = first_is_done(line)) != 0) {
        nicbarrier_request_t *r = line->head;
        line->head = r->next;
        r->next = NULL;
        r->super.req_status.MPI_ERROR = rc < 0 ? rc : OMPI_SUCCESS;
        if (line->carrier != NULL && line->carrier->skew) {
            note_skew(line, r->epoch);
        }
        nicbarrier_habit_done(&line->habit, r->epoch);
        **tail_p = r;
        *tail_p = &r->next;
        n++;
    }
    return n;
}

/** Walks over the busy lines; what is complete goes to a list. */
static int walk(nicbarrier_request_t **done_p)
{
    nicbarrier_request_t **tail = done_p;
    int events = 0;
    for (nicbarrier_line_t **at = &component()->busy; *at != NULL;) {
        nicbarrier_line_t *line = *at;
        events += step(line);
        events += harvest(line, &tail);
        if (line->head == NULL) {
            line->busy = false;
            *at = line->next_busy;
        } else {
            at = &line->next_busy;
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

static void make_busy(nicbarrier_line_t *line)
{
    if (!line->busy) {
        line->busy = true;
        line->next_busy = component()->busy;
        component()->busy = line;
    }
}

/** The application goes on with other things, barriers being under way: for long, probably? */
static void leave(void)
{
    uint64_t now = 0;
    lock();
    for (nicbarrier_line_t *line = component()->busy; line != NULL; line = line->next_busy) {
        if (line->carrier != NULL && nicbarrier_carrier_helped(line->carrier)) {
            now = now != 0 ? now : now_nsec();
            if (nicbarrier_habit_leave(&line->habit, line->epoch, now)) {
                nicbarrier_carrier_leave(line->carrier);
            }
        }
    }
    unlock();
}

void nicbarrier_line_begin(nicbarrier_line_t *line, nicbarrier_request_t *request)
{
    lock();
    request->epoch = ++line->epoch;
    request->next = NULL;
    if (line->head == NULL) {
        line->head = request;
    } else {
        line->tail->next = request;
    }
    line->tail = request;
    make_busy(line);
    atomic_fetch_add(&component()->waiting, 1);
    if (line->carrier != NULL) {
        enter(line->carrier, request->epoch);
        nicbarrier_carrier_depart(line->carrier);
    }
    unlock();
    (void)nicbarrier_progress();
    if (line->carrier != NULL && nicbarrier_carrier_helped(line->carrier)) {
        leave();
    }
}

bool nicbarrier_line_settle(nicbarrier_line_t *line)
{
    bool settled = false;
    while (!settled) {
        /* The agreement that nobody stands in line for is moved on here. */
        if (try_lock()) {
            if (line->agreement != NULL) {
                (void)step(line);
            }
            settled = line->agreement == NULL && (line->carrier != NULL || line->head == NULL);
            unlock();
        }
        if (!settled) {
            opal_progress();
        }
    }
    return line->carrier != NULL;
}

int nicbarrier_line_barrier(nicbarrier_line_t *line)
{
    uint64_t epoch = ++line->epoch;
    enter(line->carrier, epoch);
    if (!nicbarrier_carrier_wait(line->carrier, epoch)) {
        return OMPI_ERR_UNREACH;
    }
    if (line->carrier->skew) {
        note_skew(line, epoch);
    }
    return OMPI_SUCCESS;
}
