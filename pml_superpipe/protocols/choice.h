/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Which row of the table (row.h) brings the data of a message. The receiver chooses, when a
 *  message has found its receive: it knows both sides then. Whether a message goes as a whole is
 *  its sender's choice. Pure. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "pml_superpipe/protocols/row.h"

/** A case of a kind, with the numbers of that. */
superpipe_case_t superpipe_case(const superpipe_table_t *table, onic_kind_t kind);

/** The protocol for a message: the first of the table that can; `forced` where it can, unless that
 *  is SUPERPIPE_AUTO. Any thread. */
superpipe_protocol_t superpipe_choose(superpipe_table_t *table, const superpipe_case_t *c,
                                      superpipe_protocol_t forced);

/** Bytes of a long message that are sent without a CTS: all of it where it would go in fragments
 *  and they are no more than `most`; else, where its sender has to answer from another host, and
 *  where that hides more than a message more costs, what is packed while the RTS is answered: C0 of
 *  the superpipeline (A. Denis 2011, section 4), to the byte, not more than `most`. The last
 *  fragment need not be full. None where another protocol is forced, or `fragment`, what one holds,
 *  is 0. */
uint64_t superpipe_early(superpipe_table_t *table, const superpipe_case_t *c, uint64_t fragment,
                         uint64_t most, superpipe_protocol_t forced);

/** Most bytes of superpipe_plan_table with the closing 0. */
#define SUPERPIPE_PLAN_MAX 8192

/** Writes what is chosen by size and block for each kind of peer, of the node for fresh buffers and
 *  for many messages, too, as a table with a line for each kind of data. `eager`: up to how many
 *  bytes messages are short. */
void superpipe_plan_table(superpipe_table_t *table, superpipe_protocol_t forced, uint64_t eager,
                          char *text, size_t cap);
