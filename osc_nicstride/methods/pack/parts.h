/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Method pack: its parts, and what other rows leave to it. */
#pragma once

#include "osc_nicstride/protocol/method.h"
#include "osc_nicstride/queue/operation.h"

extern const nicstride_method_row_t nicstride_pack;

/** An operation that was to go another way, of which nothing is under way any more, goes by
 * message: before all that is queued, since flushes wait in the order of numbers. It was made as a
 * queued one, and entered. Transport lock. */
void nicstride_op_by_message_locked(nicstride_op_t *op);

/** nicstride_op_t's `send`. Transport lock. */
int nicstride_send_fragment(nicstride_op_t *op);

/* ---- at the target: nicstride_handler_t --------------------------------------------------------
 */

bool nicstride_on_put(const nicstride_incoming_t *in);
bool nicstride_on_get(const nicstride_incoming_t *in);
/** Vectors of them (protocol/vector.h). */
bool nicstride_on_putv(const nicstride_incoming_t *in);
bool nicstride_on_getv(const nicstride_incoming_t *in);
/** Accumulates, those that fetch among them. */
bool nicstride_on_accumulate(const nicstride_incoming_t *in);
/** Compare and swap. */
bool nicstride_on_swap(const nicstride_incoming_t *in);

/** Answers a get fragment by fragment, of whatever length. Transport lock. */
void nicstride_answer_in_fragments(const nicstride_incoming_t *in);

/** `refuse` of those without a reply, of those with one, and by how long that is. */
void nicstride_refuse_put(const nicstride_incoming_t *in, int error);
void nicstride_refuse_fetch(const nicstride_incoming_t *in, int error);
void nicstride_refuse_getv(const nicstride_incoming_t *in, int error);
void nicstride_refuse_swap(const nicstride_incoming_t *in, int error);
