/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The transfers of this process: memory, the threads that work on them, and reports of their
 *  ends. */
#include "common/pipeline/transfers.h"

#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "ompi/constants.h"

#include "common/support/pause.h"

/** Most transfers in all: answers wait for their peers. */
#define MOST 4096
/** Pieces of one transfer before others are served. */
#define TURN 64
/** Pieces before the transport lock is released for other threads. */
#define TURN_LOCKED 16
/** Each lease has at least one buffer, and a transfer may still wait for its report when its
 *  buffers are free again. */
#define RECEIVERS (2 * ONIC_RX_BUFFERS_MAX)

onic_transfers_t onic_transfers;

static void lock_list(void)
{
    for (unsigned spins = 1;
         atomic_load_explicit(&onic_transfers.lock, memory_order_relaxed) ||
         atomic_exchange_explicit(&onic_transfers.lock, true, memory_order_acquire);
         spins++)
        onic_pause_for_holder(spins);
}

static void unlock_list(void)
{
    atomic_store_explicit(&onic_transfers.lock, false, memory_order_release);
}

bool onic_transfers_enter(void)
{
    atomic_fetch_add(&onic_transfers.inside, 1);
    if (atomic_load(&onic_transfers.open))
        return true;
    atomic_fetch_sub(&onic_transfers.inside, 1);
    return false;
}

void onic_transfers_leave(void)
{
    atomic_fetch_sub(&onic_transfers.inside, 1);
}

bool onic_pipeline_idle(void)
{
    return atomic_load_explicit(&onic_transfers.active, memory_order_relaxed) == 0;
}

/* ---- memory ---------------------------------------------------------------------------------- */

/** Returns it to its pool; the lock is held. */
static void put_free(onic_transfer_t *t)
{
    t->state = ONIC_TRANSFER_FREE;
    TAILQ_INSERT_HEAD(&onic_transfers.pool[t->role], t, list);
}

/** Adds one for a role; the lock is held. */
static bool grow(onic_role_t role)
{
    onic_transfer_t *t = onic_transfers.ntransfers < MOST ? calloc(1, sizeof(*t)) : NULL;
    if (t == NULL)
        return false;
    onic_transfers.ntransfers++;
    t->role = role;
    put_free(t);
    return true;
}

bool onic_transfers_start(void)
{
    bool ok = true;
    lock_list();
    TAILQ_INIT(&onic_transfers.under_way);
    TAILQ_INIT(&onic_transfers.pool[ONIC_SENDS]);
    TAILQ_INIT(&onic_transfers.pool[ONIC_RECEIVES]);
    STAILQ_INIT(&onic_transfers.reports);
    for (int n = 0; n < RECEIVERS && ok; n++)
        ok = grow(ONIC_RECEIVES);
    unlock_list();
    if (!ok)
        onic_transfers_stop();
    atomic_store(&onic_transfers.open, ok);
    return ok;
}

void onic_transfers_shut(void)
{
    atomic_store(&onic_transfers.open, false);
    while (atomic_load(&onic_transfers.inside) != 0)
        sched_yield();
}

void onic_transfers_stop(void)
{
    lock_list();
    for (int role = 0; role < 2; role++) {
        for (onic_transfer_t *t; (t = TAILQ_FIRST(&onic_transfers.pool[role])) != NULL;) {
            TAILQ_REMOVE(&onic_transfers.pool[role], t, list);
            free(t);
        }
    }
    onic_transfers.ntransfers = 0;
    unlock_list();
}

onic_transfer_t *onic_transfer_new(onic_role_t role, const onic_carrier_t *carrier,
                                   onic_peer_t *peer, const onic_pipeline_end_t *end)
{
    lock_list();
    if (TAILQ_EMPTY(&onic_transfers.pool[role]))
        (void)grow(role);
    onic_transfer_t *t = TAILQ_FIRST(&onic_transfers.pool[role]);
    if (t != NULL) {
        TAILQ_REMOVE(&onic_transfers.pool[role], t, list);
        t->state = ONIC_TRANSFER_NEW;
    }
    unlock_list();
    if (t != NULL) {
        t->over = t->reports = false;
        t->status = OMPI_SUCCESS;
        atomic_store_explicit(&t->stop, 0, memory_order_relaxed);
        t->carrier = carrier;
        t->peer = peer;
        t->buffers = t->freed = 0;
        t->chunks = t->waits = t->stalls = 0;
        t->waits_now = false;
        t->stalled = 0;
        t->streams = false;
        t->has_end = end != NULL;
        if (end != NULL)
            t->end = *end;
    }
    return t;
}

void onic_transfer_begun(onic_transfer_t *t, onic_pipeline_end_t *end)
{
    if (end != NULL) {
        if (t->role == ONIC_SENDS || end->take == NULL)
            onic_cursor_init(&t->cursor, &t->end.layout, t->end.at);
        end->layout.nruns = 0;
        end->layout.runs = NULL;
        end->layout.run_start = NULL;
    }
}

void onic_transfer_drop(onic_transfer_t *t)
{
    lock_list();
    put_free(t);
    unlock_list();
}

/* ---- lists; the lock is held ----------------------------------------------------------------- */

static void list(onic_transfer_t *t, onic_transfer_state_t state)
{
    t->state = state;
    TAILQ_INSERT_TAIL(&onic_transfers.under_way, t, list);
    atomic_fetch_add_explicit(&onic_transfers.active, 1, memory_order_release);
}

static void count(const onic_transfer_t *t)
{
    onic_pipeline_counters_t *n = &onic_pipeline_counters;
    if (t->chunks > 0)
        onic_pipeline_count(&n->chunks, t->chunks);
    if (t->waits > 0)
        onic_pipeline_count(t->role == ONIC_SENDS ? &n->gaps : &n->stalls, t->waits);
}

static void unlist(onic_transfer_t *t)
{
    TAILQ_REMOVE(&onic_transfers.under_way, t, list);
    count(t);
    t->carrier->closed(t);
    put_free(t);
    atomic_fetch_sub_explicit(&onic_transfers.active, 1, memory_order_release);
}

/** Moves it to its next state after a thread has worked on it. */
static void put_back(onic_transfer_t *t)
{
    /* Withdrawn while the thread has ended it: nobody waits for the report any more. */
    if ((atomic_load_explicit(&t->stop, memory_order_relaxed) & ONIC_STOP_LEASE) != 0)
        t->reports = false;
    if (t->reports) {
        t->state = ONIC_TRANSFER_REPORTED;
        STAILQ_INSERT_TAIL(&onic_transfers.reports, t, report);
    } else if (t->over) {
        if (t->has_end) {
            onic_layout_fini(&t->end.layout);
            t->has_end = false;
        }
        unlist(t);
    } else {
        t->state = ONIC_TRANSFER_QUEUED;
    }
}

/** Works on an unclaimed transfer, without the lock; `holds`: the caller has the transport lock.
 *  Returns the next of the list. */
static onic_transfer_t *work_on(onic_transfer_t *t, int limit, bool holds, int *moved_p)
{
    const bool takes = t->carrier->locked && !holds;
    if (takes && !onic_transport_trylock())
        return TAILQ_NEXT(t, list);
    t->state = ONIC_TRANSFER_CLAIMED;
    unlock_list();
    *moved_p += onic_transfer_work(t, takes && limit > TURN_LOCKED ? TURN_LOCKED : limit);
    lock_list();
    onic_transfer_t *next = TAILQ_NEXT(t, list);
    put_back(t);
    if (takes)
        onic_transport_unlock();
    return next;
}

void onic_transfer_queue(onic_transfer_t *t)
{
    lock_list();
    list(t, ONIC_TRANSFER_QUEUED);
    unlock_list();
}

/* ---- reports --------------------------------------------------------------------------------- */

/** The first transfer to be reported; the lock is held. */
static onic_transfer_t *next_report(void)
{
    onic_transfer_t *t = STAILQ_FIRST(&onic_transfers.reports);
    if (t != NULL)
        STAILQ_REMOVE_HEAD(&onic_transfers.reports, report);
    return t;
}

static int report_locked(void)
{
    int n = 0;
    lock_list();
    for (onic_transfer_t *t; (t = next_report()) != NULL; n++) {
        void (*done)(void *, int) = t->end.done;
        void *arg = t->end.arg;
        const int status = t->status;
        onic_layout_fini(&t->end.layout);
        t->has_end = t->reports = false;
        put_back(t);
        unlock_list();
        done(arg, status);
        lock_list();
    }
    unlock_list();
    return n;
}

/** Reports if there is anything to report and the transport lock is free; a holder of the lock will
 *  report later itself. */
static int try_to_report(void)
{
    int n = 0;
    lock_list();
    const bool any = !STAILQ_EMPTY(&onic_transfers.reports);
    unlock_list();
    if (any && onic_transport_trylock()) {
        n = report_locked();
        onic_transport_unlock();
    }
    return n;
}

/* ---- for components -------------------------------------------------------------------------- */

int onic_pipeline_progress(void)
{
    int moved = 0;
    if (onic_pipeline_idle() || !onic_transfers_enter())
        return 0;
    lock_list();
    for (onic_transfer_t *t = TAILQ_FIRST(&onic_transfers.under_way); t != NULL;)
        t = t->state == ONIC_TRANSFER_QUEUED ? work_on(t, TURN, false, &moved)
                                             : TAILQ_NEXT(t, list);
    unlock_list();
    moved += try_to_report();
    onic_transfers_leave();
    return moved;
}

void onic_pipeline_run(onic_transfer_t *t)
{
    int moved = 0;
    lock_list();
    /* Only senders are returned to their makers before others may work on them. */
    if (t->state == ONIC_TRANSFER_NEW && t->role == ONIC_SENDS)
        list(t, ONIC_TRANSFER_QUEUED);
    if (t->state == ONIC_TRANSFER_QUEUED)
        (void)work_on(t, INT_MAX, false, &moved);
    unlock_list();
    (void)try_to_report();
}

/** Asks for a stop; the lock is held. False if a thread is working on it. A transfer that has ended
 *  stays as it is: only the holder of the transport lock, which is the caller, may report it. */
static bool ask_to_stop(onic_transfer_t *t, unsigned why, onic_transfer_t **next_p)
{
    int moved = 0;
    const onic_transfer_state_t state = t->state;
    if (state != ONIC_TRANSFER_REPORTED)
        atomic_fetch_or(&t->stop, why);
    *next_p = state == ONIC_TRANSFER_QUEUED ? work_on(t, 0, true, &moved) : TAILQ_NEXT(t, list);
    return state != ONIC_TRANSFER_CLAIMED;
}

bool onic_pipeline_cancel_locked(void *arg)
{
    bool all = true;
    (void)report_locked();
    lock_list();
    for (onic_transfer_t *t = TAILQ_FIRST(&onic_transfers.under_way), *next; t != NULL; t = next) {
        next = TAILQ_NEXT(t, list);
        if (t->has_end && t->end.arg == arg)
            all = ask_to_stop(t, ONIC_STOP_END, &next) && all;
    }
    unlock_list();
    (void)report_locked();
    return all;
}

bool onic_transfers_name(const onic_peer_t *peer)
{
    lock_list();
    const onic_transfer_t *t = TAILQ_FIRST(&onic_transfers.under_way);
    while (t != NULL && t->peer != peer)
        t = TAILQ_NEXT(t, list);
    unlock_list();
    return t != NULL;
}

void onic_transfers_end_locked(void)
{
    (void)report_locked();
    lock_list();
    for (onic_transfer_t *t = TAILQ_FIRST(&onic_transfers.under_way), *next; t != NULL; t = next)
        (void)ask_to_stop(t, ONIC_STOP_END, &next);
    unlock_list();
    (void)report_locked();
    lock_list();
    /* These are receivers that drop their data. */
    while (!TAILQ_EMPTY(&onic_transfers.under_way))
        unlist(TAILQ_FIRST(&onic_transfers.under_way));
    unlock_list();
}

bool onic_pipeline_withdraw_locked(onic_transfer_t *t)
{
    onic_transfer_t *next;
    lock_list();
    if (t->state == ONIC_TRANSFER_REPORTED) {
        unlock_list();
        return false;
    }
    (void)ask_to_stop(t, ONIC_STOP_LEASE, &next);
    unlock_list();
    return true;
}
