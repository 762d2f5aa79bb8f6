/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The transfers of a process, with threads that work on them, end them, report them and
 *  withdraw them: a transfer is reported once, or has been withdrawn, and never both; its end is
 * not used after that; each goes back to its pool, and its lease is released. */
#include "test/explore/explore.h"

#include <stdlib.h>
#include <string.h>

#include "common/pipeline/transfers.c"

/* ---- stands-in ------------------------------------------------------------------------------- */

bool opal_uses_threads = true;
onic_guard_t onic_transport_guard = {.threads = &opal_uses_threads, .helped = true};
onic_pipeline_counters_t onic_pipeline_counters;

void onic_transport_lock_wait(void)
{
    while (!onic_transport_trylock())
        explore_pause();
}

void onic_layout_fini(onic_layout_t *l)
{
    (void)l;
}

void onic_cursor_init(onic_cursor_t *c, const onic_layout_t *l, uint64_t pos)
{
    (void)c, (void)l, (void)pos;
}

static atomic_uint ready;

static void release_all(onic_transfer_t *t)
{
    if (t->buffers != 0)
        t->carrier->release(t, t->buffers);
}

/** Two pieces, then the end; stops as work.c does. */
int onic_transfer_work(onic_transfer_t *t, int limit)
{
    int moved = 0;
    for (;;) {
        const unsigned why = atomic_load_explicit(&t->stop, memory_order_relaxed) != 0
                                 ? atomic_exchange(&t->stop, 0)
                                 : 0;
        if ((why & ONIC_STOP_LEASE) != 0) {
            t->over = true;
            t->reports = false;
            release_all(t);
        } else if (why != 0) {
            t->reports = t->has_end;
            t->status = OMPI_ERROR;
            t->over = true;
            release_all(t);
        }
        if (moved >= limit || t->over || t->reports || atomic_load(&ready) == 0)
            return moved;
        t->receiver.pos++;
        moved++;
        if (t->receiver.pos == 2) {
            t->over = true;
            t->reports = t->has_end;
            t->status = OMPI_SUCCESS;
            release_all(t);
        }
    }
}

/* ---- one receive ----------------------------------------------------------------------------- */

static onic_transfer_t *transfer;
static unsigned released, closed;

static void release(onic_transfer_t *t, uint64_t buffers)
{
    EXPLORE_ASSERT(buffers == 1);
    t->buffers = 0;
    released++;
}

static void close_it(onic_transfer_t *t)
{
    (void)t;
    closed++;
}

static const onic_carrier_t carrier = {.release = release, .closed = close_it};

/** What the end belongs to: freed when it was reported, or withdrawn. */
typedef struct operation {
    unsigned ended;
    int status;
} operation_t;

static operation_t *operation;
static unsigned reported;
static atomic_bool over;

static void done(void *arg, int status)
{
    operation_t *o = arg;
    o->ended++;
    o->status = status;
    reported++;
    free(o);
    atomic_store(&over, true);
}

static void new_receive(void)
{
    TAILQ_INIT(&onic_transfers.under_way);
    TAILQ_INIT(&onic_transfers.pool[ONIC_SENDS]);
    TAILQ_INIT(&onic_transfers.pool[ONIC_RECEIVES]);
    STAILQ_INIT(&onic_transfers.reports);
    onic_transfers.open = true;
    operation = calloc(1, sizeof(*operation));
    onic_pipeline_end_t end = {.len = 2, .done = done, .arg = operation};
    transfer = onic_transfer_new(ONIC_RECEIVES, &carrier, NULL, &end);
    EXPLORE_ASSERT(transfer != NULL);
    transfer->buffers = 1;
    transfer->receiver = (onic_receiver_t){.pos = 0};
    onic_transfer_queue(transfer);
}

static void ready_receive(void)
{
    new_receive();
    ready = 1;
}

static void progress_until_over(void)
{
    while (!atomic_load(&over) && !onic_pipeline_idle()) {
        (void)onic_pipeline_progress();
        if (!atomic_load(&over))
            explore_pause();
    }
}

/** Two threads make progress, in which the sender's data comes. */
static void work(unsigned me)
{
    if (me == 0)
        atomic_store(&ready, 1);
    progress_until_over();
}

static void reported_once(void)
{
    (void)onic_pipeline_progress();
    EXPLORE_ASSERT(reported == 1 && released == 1 && closed == 1);
    EXPLORE_ASSERT(transfer->state == ONIC_TRANSFER_FREE && onic_transfers.active == 0);
}

static bool was_withdrawn;

/** A thread moves the data, while the one that has begun the transfer takes it back. */
static void withdraw(unsigned me)
{
    if (me == 0) {
        (void)onic_pipeline_progress();
        return;
    }
    onic_transport_lock();
    /* Only who has not been told of the end yet still knows the transfer. */
    if (!atomic_load(&over)) {
        was_withdrawn = onic_pipeline_withdraw_locked(transfer);
        if (was_withdrawn)
            free(operation);
    }
    onic_transport_unlock();
}

static void reported_or_withdrawn(void)
{
    (void)onic_pipeline_progress();
    EXPLORE_ASSERT(reported + was_withdrawn == 1);
    EXPLORE_ASSERT(released == 1 && closed == 1);
    EXPLORE_ASSERT(transfer->state == ONIC_TRANSFER_FREE && onic_transfers.active == 0);
}

static bool all_cancelled;

/** And who frees what the ends belong to cancels until no thread works for it. */
static void cancel(unsigned me)
{
    if (me == 0) {
        (void)onic_pipeline_progress();
        return;
    }
    while (!all_cancelled) {
        onic_transport_lock();
        all_cancelled = onic_pipeline_cancel_locked(operation);
        onic_transport_unlock();
        /* It may have been reported behind the look, so the caller looks again. */
        if (!all_cancelled)
            explore_pause_for_a_time();
    }
    EXPLORE_ASSERT(reported == 1);
}

/** The process closes while another thread makes progress. */
static void shut(unsigned me)
{
    if (me == 0) {
        (void)onic_pipeline_progress();
        return;
    }
    onic_transfers_shut();
    onic_transport_lock();
    onic_transfers_end_locked();
    onic_transport_unlock();
    EXPLORE_ASSERT(reported == 1);
    onic_transfers_stop();
}

static void shut_end(void)
{
    EXPLORE_ASSERT(reported == 1 && released == 1 && closed == 1);
}

static const explore_target_t targets[] = {
    {"transfers-work", 2, new_receive, work, reported_once, 2, 0},
    {"transfers-withdraw", 2, ready_receive, withdraw, reported_or_withdrawn, 0, 0},
    {"transfers-cancel", 2, ready_receive, cancel, reported_once, 0, 0},
    {"transfers-shut", 2, ready_receive, shut, shut_end, 2, 0},
};

int main(int argc, char **argv)
{
    return explore_main(argc, argv, targets, sizeof(targets) / sizeof(targets[0]));
}
