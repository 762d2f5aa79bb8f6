/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The plan of a transfer: which method moves these bytes from this layout to that one.
 *
 *  Every method states its cost by linear numbers of the kind of peer (strided-RMA paper, section
 * 4; common/model/link.h). A table has for each kind of peer, presence, direction, shape and size
 * the methods in the order of their cost, and the first one that can do the transfer is taken. So a
 *  plan is read, and is the same each time. For an adapter it is computed: there it counts which
 *  side is in pieces, and how many lists of requests these make.
 *
 *  Pure. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/model/link.h"
#include "common/model/table.h"
#include "osc_nicstride/protocol/method.h"
#include "common/layout/layout.h"

/** True if this method can do it; false for AUTO, which is none. */
static inline bool nicstride_can(const nicstride_case_t *c, unsigned method)
{
    return method > NICSTRIDE_METHOD_AUTO && method < NICSTRIDE_METHODS_MAX &&
           c->rows[method] != NULL &&
           (c->reaches != NULL ? c->reaches(c, method)
                               : (c->reach & NICSTRIDE_REACH(method)) != 0) &&
           (c->rows[method]->fits == NULL || c->rows[method]->fits(c));
}

/** Columns are at least so many blocks of at most so many bytes. */
#define NICSTRIDE_COLUMN_BLOCKS 256
#define NICSTRIDE_COLUMN_BYTES  16

/** True if such a part of mapped memory is a column: each block has a cache line for itself. By
 *  stores each of these lines goes to the origin and back to the target that reads it, and each
 * page is mapped at first; packed, one line brings several blocks, which the target unpacks where
 * it has the lines. Steps of halos whose columns have 512 blocks and more take 10 to 27 % less
 * time, the first ones 60 to 70 % less. Blocks of 32 bytes and more are stored in less time. */
static inline bool nicstride_is_column(const onic_layout_t *target)
{
    const uint64_t blocks = onic_layout_blocks(target);

    return blocks >= NICSTRIDE_COLUMN_BLOCKS && target->size <= blocks * NICSTRIDE_COLUMN_BYTES &&
           (uint64_t)(target->ub - target->lb) >= (blocks - 1) * ONIC_LINK_LINE;
}

/** The methods for a transfer (all of `c` but what reaches the target, is forced and its path), the
 * cheapest first, ended by messages, which can do any. What messages wait for where the target is
 * not there counts with those that need it. Any thread, no lock.
 *
 *  In active target epochs every target counts as present: what it is sent must be there when it
 *  comes to the end of its epoch, and is unpacked then, while what the origin would do instead it
 *  does while nobody waits for the target but itself. */
onic_order_t nicstride_choices(nicstride_table_t *table, onic_kind_t kind,
                               const nicstride_case_t *c);

/** The method to use: the first that can. The path is set here. `forced` is taken where it can do
 * the transfer; where it cannot, the table decides, so that every program runs whatever is forced.
 */
nicstride_method_t nicstride_plan(nicstride_table_t *table, onic_kind_t kind,
                                  const nicstride_case_t *transfer);

/** Writes what each method that can do a transfer would take, for one line. */
void nicstride_plan_reason(FILE *to, const nicstride_case_t *c);

/** Writes what is used for which kind of peer, direction, block and size. Peers with private memory
 *  on the node come three times: for transfers of which many are under way together, for those that
 *  are waited for alone, and for these while the target's server thread has to be woken. */
void nicstride_plan_table(FILE *to, nicstride_table_t *table, nicstride_method_t forced);
