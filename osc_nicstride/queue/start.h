/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Starting transfers by message. What is short and has nothing before it goes at once, in
 *  one message with its data inline; all else becomes an operation in the peer's queue, from which
 *  fragments are sent as credit allows. Of a transfer through slots the message says where the data
 *  belongs and in which slots it comes (methods/by_slots.c). */
#ifndef NICSTRIDE_START_H
#define NICSTRIDE_START_H

#include <stdbool.h>

#include "osc_nicstride/queue/send.h"
#include "osc_nicstride/window/transfer.h"

/**
 * Starts a transfer, and takes over those of its layouts that are needed longer. Waits, with
 * progress, only where very many operations are queued already. MPI threads, no lock held.
 *
 * @param rendezvous  put, get: the data goes by rendezvous; both sides must be contiguous
 * @param done_p      set to whether it is locally complete; else the transfer's request, if any,
 *                    will be completed
 */
int nicstride_message_start(nicstride_transfer_t *t, bool rendezvous, bool *done_p);

/* ---- what the ways of starting a transfer share; wire lock ----------------------------------- */

/** An operation of the transfer, with its reply's place; the rest of its layouts where it is
 *  `queued`. NULL where memory is exhausted. */
nicstride_op_t *nicstride_op_of_locked(nicstride_transfer_t *t, bool queued);

/** Enters it among what is under way; NULL: something is that needs no object. Flushes look at the
 *  number without the lock. */
void nicstride_op_enter_locked(nicstride_peer_t *p, nicstride_op_t *op);

/** An operation that was to go another way, of which nothing is under way any more, goes by
 * message: before all that is queued, since flushes wait in the order of numbers. It was made as a
 * queued one, and entered. */
void nicstride_op_by_message_locked(nicstride_op_t *op);

/** Describes all bytes of the target behind the header; false where that takes too much room.
 *  No lock is needed. */
bool nicstride_describe(nicstride_framed_t *f, const nicstride_transfer_t *t);

#endif
