/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Chooses the row of the table (row.h) that moves the data of a message. The receiver
 *  chooses when a message has found its receive, because it knows both sides then. Only whether a
 *  message is sent whole is the sender's choice. Pure. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "pml_superpipe/protocols/row.h"

/** A case for that kind of peer, with the kind's numbers. */
superpipe_case_t superpipe_case(const superpipe_table_t *table, onic_kind_t kind);

/** The protocol for a message: the cheapest that can move it, or `forced` if that can, unless it is
 *  SUPERPIPE_AUTO. Any thread. */
superpipe_protocol_t superpipe_choose(const superpipe_case_t *c, superpipe_protocol_t forced);

/** Bytes of a long message that are sent without a CTS: all of it if it would go in fragments and
 *  is no longer than `most`; else, if its sender has to answer from another host, and that hides
 *  more than the cost of one more message, the bytes that can be packed while the RTS is answered:
 *  C0 of the superpipeline (A. Denis 2011, section 4), exact to the byte, at most `most`. The last
 *  fragment need not be full. 0 if another protocol is forced, or if `fragment`, the bytes that one
 *  holds, is 0. */
uint64_t superpipe_early(const superpipe_case_t *c, uint64_t fragment, uint64_t most,
                         superpipe_protocol_t forced);

/** The most early bytes that go at once, where one fragment holds `fragment`. Over TCP a receiver
 *  copies a piece while the next one is on its way: 64 KiB take a quarter less time in two. */
static inline uint64_t superpipe_piece(uint64_t fragment)
{
    const uint64_t most = 32 << 10;

    return fragment < most ? fragment : most;
}

/** True if a message, of which `early` bytes would go early, goes with its envelope instead, as a
 *  short one: all of it does, in one piece. */
static inline bool superpipe_goes_short(uint64_t length, uint64_t early, uint64_t fragment,
                                        superpipe_protocol_t forced)
{
    return early == length && length <= superpipe_piece(fragment) && forced != SUPERPIPE_STREAM;
}

/** Writes the choices by size and block for each kind of peer as a table with a line for each kind
 *  of data; on a node also for fresh buffers and for many messages. `eager`: most bytes of a short
 *  message. */
void superpipe_plan_table(FILE *to, const superpipe_table_t *table, superpipe_protocol_t forced,
                          uint64_t eager);
