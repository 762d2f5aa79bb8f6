/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What the ways of starting a transfer share. All is called with the wire lock held. */
#ifndef NICSTRIDE_START_INTERNAL_H
#define NICSTRIDE_START_INTERNAL_H

#include <stdbool.h>

#include "osc_nicstride/channel/send.h"
#include "osc_nicstride/window/transfer.h"

/** An operation of the transfer, with its reply's place; the rest of its layouts where it is
 *  `queued`. NULL where memory is exhausted. */
nicstride_op_t *nicstride_op_of_locked(nicstride_transfer_t *t, bool queued);

/** Enters it among what is under way; NULL: something is that needs no object. Flushes look at the
 *  number without the lock. */
void nicstride_op_enter_locked(nicstride_peer_t *p, nicstride_op_t *op);

/** Describes all bytes of the target behind the header; false where that takes too much room.
 *  No lock is needed. */
bool nicstride_describe(nicstride_framed_t *f, const nicstride_transfer_t *t);

#endif
