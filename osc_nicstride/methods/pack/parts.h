/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The parts of method pack, including what other rows hand over to it. */
#pragma once

#include "osc_nicstride/protocol/method.h"
#include "osc_nicstride/queue/operation.h"
#include "osc_nicstride/target/access.h"

extern const nicstride_method_row_t nicstride_pack;

/** Sends an operation by message that was to take another way and of which nothing is under way any
 *  more. It goes before everything that is queued, since flushes wait in the order of numbers. The
 *  operation must have been made as a queued one and entered. Transport lock. */
void nicstride_op_by_message_locked(nicstride_op_t *op);

/* ---- at the target: nicstride_handler_t ------------------------------------------------------ */

void nicstride_on_put(const nicstride_incoming_t *in);
void nicstride_on_get(const nicstride_incoming_t *in);
/** Vectors of puts and gets (protocol/vector.h). */
void nicstride_on_putv(const nicstride_incoming_t *in);
void nicstride_on_getv(const nicstride_incoming_t *in);
/** Accumulates, including those that fetch. */
void nicstride_on_accumulate(const nicstride_incoming_t *in);
/** Compare and swap. */
void nicstride_on_swap(const nicstride_incoming_t *in);

/** A get that is being answered in fragments. */
typedef struct nicstride_answering {
    nicstride_pending_access_t access; /**< `at` is the next packed byte of the layout */
    uint64_t offset;                   /**< the same position in the origin's operation */
    uint64_t left;
    bool running; /**< it is in the sending loop, so completions need not continue it */
    unsigned in_flight;
} nicstride_answering_t;

/** Answers a get of any length, whose access is open, fragment by fragment. Takes over the access,
 *  which is in a record with room for nicstride_answering_t. Transport lock. */
void nicstride_answer_opened(nicstride_pending_access_t *access);
