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

/** Can this method do it? Not that which is none. */
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

/** Is such a part of mapped memory a column, each of whose blocks has a cache line for itself? By
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

/** The methods for a transfer (all of `c` but what reaches the target and is forced), the cheapest
 *  first, ended by messages, which can do any. What messages wait for where the target is not there
 *  counts with those that need it. Any thread, no lock.
 *
 *  In active target epochs every target counts as present: what it is sent must be there when it
 *  comes to the end of its epoch, and is unpacked then, while what the origin would do instead it
 *  does while nobody waits for the target but itself. */
onic_order_t nicstride_choices(nicstride_table_t *table, onic_kind_t kind,
                               const nicstride_case_t *c);

/** The method to use: the first that can. `forced` is taken where it can do the transfer; where it
 *  cannot, the table decides, so that every program runs whatever is forced. */
nicstride_method_t nicstride_plan(nicstride_table_t *table, onic_kind_t kind,
                                  const nicstride_case_t *c);

/** Are messages the cheapest for contiguous bytes of private memory by themselves, with a target of
 *  the node, or by TCP, that is there? False, too, before such a transfer was planned. Any thread,
 *  no lock. */
static inline bool nicstride_messages_are_first(const nicstride_table_t *table, onic_kind_t kind,
                                                nicstride_direction_t dir, uint64_t bytes)
{
    if (kind == ONIC_ADAPTER)
        return false;
    onic_order_t order = __atomic_load_n(
        &table->order[kind][NICSTRIDE_PRESENT][dir][false][0][onic_size(bytes)], __ATOMIC_RELAXED);
    const unsigned first = onic_order_take(&order);

    return (first == NICSTRIDE_METHOD_DIRECT ? onic_order_take(&order) : first) ==
           NICSTRIDE_METHOD_PACK;
}

/** The rows' pure parts (plan.c). */
bool nicstride_sieve_fits(const nicstride_case_t *c);
bool nicstride_pipeline_fits(const nicstride_case_t *c);
bool nicstride_rdma_fits(const nicstride_case_t *c);
bool nicstride_nic_fits(const nicstride_case_t *c);
double nicstride_direct_cost(const nicstride_case_t *c);
double nicstride_cma_cost(const nicstride_case_t *c);
double nicstride_sieve_cost(const nicstride_case_t *c);
double nicstride_pack_cost(const nicstride_case_t *c);
double nicstride_pipeline_cost(const nicstride_case_t *c);
double nicstride_rdma_cost(const nicstride_case_t *c);
double nicstride_nic_cost(const nicstride_case_t *c);

/** Writes what each method that can do a transfer would take, for one line. */
void nicstride_plan_reason(FILE *to, const nicstride_case_t *c);

/** Writes what is used for which kind of peer, direction, block and size. Peers with private memory
 *  on the node come three times: for transfers of which many are under way together, for those that
 *  are waited for alone, and for these while the target's server thread has to be woken. */
void nicstride_plan_table(FILE *to, nicstride_table_t *table, nicstride_method_t forced);

/* ---- sieving ------------------------------------------------------------------------------------
 *
 * Reading the extent that covers many blocks at once and gathering them here, where each block
 * by itself would cost more than the bytes between the blocks. */

/** One piece to read: `bytes` packed bytes, all inside [lo, lo + len). */
typedef struct nicstride_cover {
    int64_t lo;
    uint64_t len;
    uint64_t bytes;
} nicstride_cover_t;

/** The cover of the next piece of a stride-form layout at packed position `pos` (below its size):
 *  as many whole passes as fit in `piece` bytes (at least 1), without reading gaps of more than
 *  `gap_max` bytes at once. Where not even one block fits, part of a block. */
nicstride_cover_t nicstride_sieve_next(const onic_layout_t *l, uint64_t pos, uint64_t piece,
                                       uint64_t gap_max);

/** Most bytes read for one that is wanted. */
#define NICSTRIDE_SIEVE_SPARSE 4

/** A gap up to this many bytes is cheaper to read than to skip by another system call. */
#define NICSTRIDE_SIEVE_GAP 4096
