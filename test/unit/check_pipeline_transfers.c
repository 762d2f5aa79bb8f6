/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Ends of transfers: each is reported once, or withdrawn, and its memory is not used after
 *  that. The carrier is a word that the test writes, and a buffer. */
#include "common/pipeline/transfers.h"

#include <string.h>

#include "ompi/constants.h"

#include "test/unit/unit.h"

enum { LENGTH = 256, OPERATIONS = 4 };

/* ---- the transport --------------------------------------------------------------------------- */

static unsigned asked;

void onic_transport_ask(unsigned am_id, onic_place_t place)
{
    ck_assert(am_id == ONIC_AM_PIPELINE && place == ONIC_LOCKED);
    asked++;
}

/* ---- the carrier ----------------------------------------------------------------------------- */

static uint64_t word, published, released;
static char buffer[LENGTH];
static bool dead;
static unsigned closed;

static char *carrier_at(onic_transfer_t *t, unsigned number, uint32_t offset)
{
    (void)t;
    ck_assert_uint_eq(number, 0);
    return buffer + offset;
}

static void carrier_publish(onic_transfer_t *t, unsigned number, uint64_t w)
{
    (void)t;
    (void)number;
    published = w;
}

static uint64_t carrier_word(onic_transfer_t *t, unsigned number)
{
    (void)t;
    (void)number;
    return word;
}

static uint64_t carrier_acknowledged(onic_transfer_t *t, unsigned number)
{
    (void)t;
    (void)number;
    return 0;
}

static void carrier_release(onic_transfer_t *t, uint64_t buffers)
{
    (void)t;
    released |= buffers;
}

static bool carrier_is_dead(const onic_transfer_t *t)
{
    (void)t;
    return dead;
}

static void carrier_closed(onic_transfer_t *t)
{
    (void)t;
    closed++;
}

static const onic_carrier_t carrier = {.at = carrier_at,
                                       .publish = carrier_publish,
                                       .word = carrier_word,
                                       .acknowledged = carrier_acknowledged,
                                       .release = carrier_release,
                                       .is_dead = carrier_is_dead,
                                       .closed = carrier_closed};

/* ---- operations of a component --------------------------------------------------------------- */

typedef struct operation {
    onic_transfer_t *move;
    unsigned finished;
    int status;
    bool busy;                        /**< its taker takes nothing */
    void (*next)(struct operation *); /**< called by `done` */
    char memory[LENGTH];
} operation_t;

static operation_t operation[OPERATIONS];

static void done(void *arg, int status)
{
    operation_t *op = arg;

    op->finished++;
    op->status = status;
    if (op->next != NULL)
        op->next(op);
}

static int64_t take(void *arg, uint64_t pos, const void *data, uint64_t n)
{
    operation_t *op = arg;

    if (op->busy)
        return 0;
    memcpy(op->memory + pos, data, n);
    return (int64_t)n;
}

static void begin(operation_t *op, onic_role_t role, bool takes)
{
    const onic_schedule_choice_t choice = {.kind = ONIC_SCHEDULE_CONSTANT};
    const onic_lease_t lease = {1, LENGTH};
    onic_pipeline_end_t end = {
        .len = LENGTH, .base = op->memory, .take = takes ? take : NULL, .done = done, .arg = op};

    ck_assert(onic_layout_contig(&end.layout, 0, LENGTH) == ONIC_LAYOUT_OK);
    op->move = onic_transfer_new(role, &carrier, NULL, &end);
    ck_assert(op->move != NULL);
    op->move->buffers = 1;
    if (role == ONIC_RECEIVES)
        onic_receiver_init(&op->move->receiver, LENGTH, &lease);
    else
        onic_transfer_start_sender(op->move, &choice, &lease, 0);
    onic_transfer_begun(op->move, &end);
}

static void reset(void)
{
    word = published = released = 0;
    dead = false;
    closed = asked = 0;
    memset(operation, 0, sizeof(operation));
}

/** The sender's word once it has filled the buffer, or has given up. */
static uint64_t word_of(bool fails)
{
    onic_sender_t s;
    onic_piece_t piece;
    onic_schedule_t schedule;
    const onic_lease_t lease = {1, LENGTH};

    onic_schedule_growing(&schedule, LENGTH, 1, 1, LENGTH);
    onic_sender_init(&s, LENGTH, &lease, &schedule, 0, 1);
    if (fails)
        return onic_sender_fail(&s);
    ck_assert(onic_sender_next(&s, 0, &piece) == ONIC_PIPE_MOVE && piece.len == LENGTH);
    return onic_sender_filled(&s, &piece, LENGTH);
}

/** All is over, and each end was reported as often as that. */
static void check_over(unsigned finished)
{
    unsigned n = 0;

    (void)onic_transfers_progress();
    for (int i = 0; i < OPERATIONS; i++) {
        ck_assert_uint_le(operation[i].finished, 1);
        n += operation[i].finished;
    }
    ck_assert_uint_eq(n, finished);
    ck_assert(onic_pipeline_idle());
}

/* ---- tests ----------------------------------------------------------------------------------- */

START_TEST(data_arrives)
{
    operation_t *op = operation;

    reset();
    begin(op, ONIC_RECEIVES, false);
    ck_assert_uint_eq(asked, 1);
    ck_assert_int_eq(onic_transfers_progress(), 0);
    memset(buffer, 'x', LENGTH);
    word = word_of(false);
    ck_assert_int_eq(onic_transfers_progress(), 2);
    ck_assert(op->finished == 1 && op->status == OMPI_SUCCESS && released == 1);
    ck_assert_mem_eq(op->memory, buffer, LENGTH);
    check_over(1);
    ck_assert_uint_eq(closed, 1);
}
END_TEST

/** Its maker is in the call that has begun it, and would be told of the end of what it does not
 *  know yet. */
START_TEST(nothing_is_reported_by_run)
{
    reset();
    begin(operation, ONIC_SENDS, false);
    onic_pipeline_run_locked(operation->move);
    ck_assert_uint_eq(published, word_of(false));
    ck_assert_uint_eq(operation->finished, 0);
    check_over(1);
    ck_assert_int_eq(operation->status, OMPI_SUCCESS);
}
END_TEST

/** The operation would be freed, and then told of the end. */
START_TEST(an_end_is_not_withdrawn)
{
    reset();
    begin(operation, ONIC_RECEIVES, false);
    word = word_of(true);
    onic_pipeline_run_locked(operation->move);
    ck_assert(!onic_pipeline_withdraw_locked(operation->move));
    check_over(1);
    ck_assert_int_eq(operation->status, OMPI_ERROR);
}
END_TEST

START_TEST(an_end_is_told_of_by_cancel)
{
    reset();
    begin(operation, ONIC_RECEIVES, false);
    word = word_of(false);
    onic_pipeline_run_locked(operation->move);
    onic_pipeline_cancel_locked(operation);
    ck_assert(operation->finished == 1 && operation->status == OMPI_SUCCESS);
    check_over(1);
}
END_TEST

START_TEST(what_is_withdrawn_is_not_told_of)
{
    reset();
    begin(operation, ONIC_RECEIVES, false);
    ck_assert(onic_pipeline_withdraw_locked(operation->move));
    ck_assert_uint_eq(released, 1);
    check_over(0);
    ck_assert_uint_eq(closed, 1);
}
END_TEST

/** The sender goes on: its data is dropped, and then the buffer is given back. */
START_TEST(a_cancelled_receiver_drops_data)
{
    reset();
    begin(operation, ONIC_RECEIVES, false);
    onic_pipeline_cancel_locked(operation);
    ck_assert(operation->finished == 1 && operation->status == OMPI_ERROR && released == 0);
    (void)onic_transfers_progress();
    ck_assert(!onic_pipeline_idle());
    memset(buffer, 'x', LENGTH);
    word = word_of(false);
    check_over(1);
    ck_assert_uint_eq(released, 1);
    ck_assert_int_eq(operation->memory[0], 0);
}
END_TEST

START_TEST(a_cancelled_sender_says_so)
{
    reset();
    begin(operation, ONIC_SENDS, false);
    onic_pipeline_cancel_locked(operation);
    ck_assert(operation->finished == 1 && operation->status == OMPI_ERROR);
    ck_assert(onic_word_fails(published));
    check_over(1);
}
END_TEST

static void cancel_next_and_begin(operation_t *op)
{
    onic_pipeline_cancel_locked(op + 1);
    op[2].next = NULL;
    begin(op + 2, ONIC_RECEIVES, false);
}

START_TEST(reports_begin_and_cancel_others)
{
    reset();
    operation[0].next = cancel_next_and_begin;
    begin(operation, ONIC_RECEIVES, false);
    begin(operation + 1, ONIC_RECEIVES, false);
    word = word_of(false);
    (void)onic_transfers_progress();
    ck_assert(operation[0].status == OMPI_SUCCESS && operation[1].status == OMPI_ERROR);
    check_over(3);
    ck_assert_int_eq(operation[2].status, OMPI_SUCCESS);
    ck_assert_uint_eq(closed, 3);
}
END_TEST

START_TEST(the_dead_are_not_awaited)
{
    reset();
    begin(operation, ONIC_RECEIVES, false);
    (void)onic_transfers_progress();
    dead = true;
    check_over(1);
    ck_assert(operation->status == OMPI_ERR_UNREACH && released == 1);
}
END_TEST

/** All of the data is there, and its taker waits for a lock. */
START_TEST(what_the_dead_have_sent_is_taken)
{
    reset();
    operation->busy = true;
    begin(operation, ONIC_RECEIVES, true);
    word = word_of(false);
    dead = true;
    for (int i = 0; i < 3; i++)
        (void)onic_transfers_progress();
    ck_assert_uint_eq(operation->finished, 0);
    operation->busy = false;
    check_over(1);
    ck_assert_int_eq(operation->status, OMPI_SUCCESS);
}
END_TEST

START_TEST(all_ends_at_the_end)
{
    reset();
    begin(operation, ONIC_RECEIVES, false);
    begin(operation + 1, ONIC_SENDS, false);
    begin(operation + 2, ONIC_RECEIVES, false);
    onic_pipeline_cancel_locked(operation + 2);
    onic_transfers_end();
    ck_assert(onic_pipeline_idle());
    check_over(3);
    ck_assert_uint_eq(closed, 3);
}
END_TEST

int main(void)
{
    return UNIT_RUN(
        "pipeline transfers", UNIT_ONCE(data_arrives), UNIT_ONCE(nothing_is_reported_by_run),
        UNIT_ONCE(an_end_is_not_withdrawn), UNIT_ONCE(an_end_is_told_of_by_cancel),
        UNIT_ONCE(what_is_withdrawn_is_not_told_of), UNIT_ONCE(a_cancelled_receiver_drops_data),
        UNIT_ONCE(a_cancelled_sender_says_so), UNIT_ONCE(reports_begin_and_cancel_others),
        UNIT_ONCE(the_dead_are_not_awaited), UNIT_ONCE(what_the_dead_have_sent_is_taken),
        UNIT_ONCE(all_ends_at_the_end));
}
