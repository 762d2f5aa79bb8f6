/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Ends of transfers, with threads: what is told of, or withdrawn, is told of or withdrawn
 *  once. The carrier is a word that the test writes: the sender that gives up, or nothing. */
#include "common/pipeline/transfers.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "ompi/constants.h"

#include "test/unit/unit.h"

#ifdef __SANITIZE_THREAD__ /* sees a race that there is in a few */
enum { LENGTH = 256, ROUNDS = 3000 };
#else
enum { LENGTH = 256, ROUNDS = 20000 };
#endif

/* ---- the transport lock
 * --------------------------------------------------------------------------- */

static const bool threads = true;

onic_guard_t onic_transport_guard = {.threads = &threads};

void onic_transport_lock_wait(void)
{
    while (!onic_transport_trylock())
        sched_yield();
}

/* ---- the carrier ----------------------------------------------------------------------------- */

static _Atomic uint64_t word;
static atomic_uint closed;

static char *carrier_at(onic_transfer_t *t, unsigned buffer, uint32_t offset)
{
    (void)t;
    (void)buffer;
    (void)offset;
    return NULL;
}

static uint64_t carrier_word(onic_transfer_t *t, unsigned buffer)
{
    (void)t;
    (void)buffer;
    return atomic_load(&word);
}

static void carrier_release(onic_transfer_t *t, uint64_t buffers)
{
    (void)t;
    (void)buffers;
}

static bool carrier_is_dead(const onic_transfer_t *t)
{
    (void)t;
    return false;
}

static void carrier_closed(onic_transfer_t *t)
{
    (void)t;
    atomic_fetch_add(&closed, 1);
}

static const onic_carrier_t carrier = {.at = carrier_at,
                                       .word = carrier_word,
                                       .release = carrier_release,
                                       .is_dead = carrier_is_dead,
                                       .closed = carrier_closed};

/* ---- operations of a component --------------------------------------------------------------- */

/** Freed when it is over, as those of components are. Under the transport lock. */
typedef struct operation {
    onic_transfer_t *move;
    char memory[LENGTH];
} operation_t;

static unsigned finished, withdrawn, cancelled;
static int last_status;

static void done(void *arg, int status)
{
    operation_t *op = arg;

    finished++;
    last_status = status;
    free(op);
}

/** The receiving end of a get. */
static operation_t *begin(void)
{
    operation_t *op = malloc(sizeof(*op));
    onic_pipeline_end_t end = {.len = LENGTH, .base = op->memory, .done = done, .arg = op};
    const onic_lease_t lease = {1, LENGTH};

    UNIT_CHECK(onic_layout_contig(&end.layout, 0, LENGTH) == ONIC_LAYOUT_OK);
    op->move = onic_transfer_new(ONIC_RECEIVES, &carrier, NULL, &end);
    UNIT_CHECK(op->move != NULL);
    op->move->buffers = lease.buffers;
    onic_receiver_init(&op->move->receiver, LENGTH, &lease);
    onic_transfer_begun(op->move, &end);
    onic_transfer_queue(op->move);
    return op;
}

static void reset(void)
{
    atomic_store(&word, 0);
    atomic_store(&closed, 0);
    finished = withdrawn = cancelled = 0;
    ck_assert(onic_transfers_start());
}

static void give_up(void)
{
    onic_sender_t s = {.round = 1};

    atomic_store(&word, onic_sender_fail(&s));
}

static void *make_progress(void *unused)
{
    (void)unused;
    (void)onic_pipeline_progress();
    return NULL;
}

/** Another thread sees the end of a transfer while this one holds the transport lock. */
static void end_elsewhere(void)
{
    pthread_t thread;

    give_up();
    ck_assert_int_eq(pthread_create(&thread, NULL, make_progress, NULL), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
}

/* ---- tests ----------------------------------------------------------------------------------- */

/** Its operation was freed, and then told of the end. */
START_TEST(an_end_is_not_withdrawn)
{
    reset();
    onic_transport_lock();
    operation_t *op = begin();
    end_elsewhere();
    ck_assert_uint_eq(finished, 0);
    ck_assert(!onic_pipeline_withdraw_locked(op->move));
    onic_transport_unlock();
    (void)onic_pipeline_progress();
    ck_assert_uint_eq(finished, 1);
    ck_assert_int_eq(last_status, OMPI_ERROR);
    ck_assert(onic_pipeline_idle());
    ck_assert_uint_eq(atomic_load(&closed), 1);
    onic_transfers_stop();
}
END_TEST

/** Nobody is inside a copy then. */
START_TEST(an_end_is_told_of_by_cancel)
{
    reset();
    onic_transport_lock();
    operation_t *op = begin();
    end_elsewhere();
    ck_assert(onic_pipeline_cancel_locked(op));
    ck_assert_uint_eq(finished, 1);
    onic_transport_unlock();
    ck_assert(onic_pipeline_idle());
    onic_transfers_stop();
}
END_TEST

START_TEST(what_is_withdrawn_is_not_told_of)
{
    reset();
    onic_transport_lock();
    operation_t *op = begin();
    ck_assert(onic_pipeline_withdraw_locked(op->move));
    free(op);
    onic_transport_unlock();
    (void)onic_pipeline_progress();
    ck_assert_uint_eq(finished, 0);
    ck_assert(onic_pipeline_idle());
    ck_assert_uint_eq(atomic_load(&closed), 1);
    onic_transfers_stop();
}
END_TEST

static atomic_bool over;

static void *work(void *unused)
{
    (void)unused;
    while (!atomic_load(&over))
        (void)onic_pipeline_progress();
    return NULL;
}

/** The other side refuses, or the operation's peer is lost, while its sender gives up. */
static void one_round(unit_random_t *random)
{
    const unsigned before = finished;
    const bool cancels = unit_once_in(random, 4);

    atomic_store(&word, 0);
    onic_transport_lock();
    operation_t *op = begin();
    onic_transport_unlock();
    for (uint64_t n = unit_below(random, 200); n > 0; n--)
        atomic_load(&word);
    give_up();
    for (uint64_t n = unit_below(random, 400); n > 0; n--)
        atomic_load(&word);
    for (bool ended = false; !ended;) {
        onic_transport_lock();
        ended = finished != before;
        if (!ended && cancels) {
            cancelled += ended = onic_pipeline_cancel_locked(op);
            UNIT_CHECK(!ended || finished != before);
        } else if (!ended && onic_pipeline_withdraw_locked(op->move)) {
            withdrawn++;
            free(op);
            ended = true;
        }
        onic_transport_unlock();
    }
    while (!onic_pipeline_idle())
        sched_yield();
}

START_TEST(threads_race)
{
    unit_random_t random = {unit_seed()};
    pthread_t thread[2];

    reset();
    atomic_store(&over, false);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(pthread_create(&thread[i], NULL, work, NULL), 0);
    for (int i = 0; i < ROUNDS; i++)
        one_round(&random);
    atomic_store(&over, true);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
    ck_assert_uint_eq(finished + withdrawn, ROUNDS);
    ck_assert_uint_eq(atomic_load(&closed), ROUNDS);
    onic_transfers_stop();
}
END_TEST

int main(void)
{
    return UNIT_RUN("pipeline transfers", UNIT_ONCE(an_end_is_not_withdrawn),
                    UNIT_ONCE(an_end_is_told_of_by_cancel),
                    UNIT_ONCE(what_is_withdrawn_is_not_told_of), UNIT_ONCE(threads_race));
}
