/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The plan of a transfer: which method moves these bytes from this layout to that one.
 *
 *  Every method states its cost by the linear model of the strided-RMA paper (section 4, see
 *  common/model/link.h), and the cheapest that the peer supports is taken; what transfers really
 *  cost corrects the model (common/model/learn.h). Planning reads two layouts and a few numbers,
 *  allocates nothing and is done anew for each call.
 *
 *  Pure. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/model/link.h"
#include "osc_nicstride/protocol/method.h"
#include "common/layout/layout.h"

/** Can this method do it? Not that which is none. */
static inline bool nicstride_can(const nicstride_case_t *c, unsigned method)
{
    return method < NICSTRIDE_METHODS_MAX && (c->reach & NICSTRIDE_REACH(method)) != 0 &&
           c->rows[method] != NULL && (c->rows[method]->fits == NULL || c->rows[method]->fits(c));
}

/** So many blocks of at most a cache line each. */
#define NICSTRIDE_LINES_LEAST 256

/** Is it better to send such a part of mapped memory to its process than to store it there, while
 *  that is in MPI? By stores each block is a cache line that both sides have in turn, and a page
 *  that is not mapped at first; packed, neither is, and the target unpacks. Fewer or longer blocks
 *  are stored in less time than both sides need for packing. */
static inline bool nicstride_shares_lines(const onic_layout_t *target)
{
    const uint64_t blocks = onic_layout_blocks(target);

    return blocks >= NICSTRIDE_LINES_LEAST && target->size <= blocks * ONIC_LINK_LINE;
}

/** And does each block have its line for itself? Only then are packing and the wait for the target
 *  worth it where the origin waits for that. */
static inline bool nicstride_has_lines(const onic_layout_t *target)
{
    return nicstride_shares_lines(target) &&
           (uint64_t)(target->ub - target->lb) >= (onic_layout_blocks(target) - 1) * ONIC_LINK_LINE;
}

/** The method to use. `forced` is taken where it can do the transfer; where it cannot, the chooser
 *  decides among the others, so that every program runs whatever is forced. What was learned stands
 *  for the model's estimates where it is known and, with a budget, takes note of the choice, which
 *  may be a trial.
 *
 *  In active target epochs every target counts as present: what it is sent must be there when it
 *  comes to the end of its epoch, and is unpacked then, while what the origin would do instead it
 *  does while nobody waits for the target but itself. */
nicstride_method_t nicstride_plan(const nicstride_case_t *c);

/** The rows' pure parts (plan.c). */
bool nicstride_sieve_fits(const nicstride_case_t *c);
bool nicstride_mover_fits(const nicstride_case_t *c);
bool nicstride_rdma_fits(const nicstride_case_t *c);
bool nicstride_nic_fits(const nicstride_case_t *c);
double nicstride_direct_cost(const nicstride_case_t *c);
double nicstride_cma_cost(const nicstride_case_t *c);
double nicstride_sieve_cost(const nicstride_case_t *c);
double nicstride_pack_cost(const nicstride_case_t *c);
double nicstride_mover_cost(const nicstride_case_t *c);
double nicstride_rdma_cost(const nicstride_case_t *c);
double nicstride_nic_cost(const nicstride_case_t *c);

/** Writes why a transfer goes as it does, for one line: the model's estimates of what can be done,
 *  and what was learned. */
void nicstride_plan_reason(FILE *to, const nicstride_case_t *c);

/** Writes the table of what is used for which kind of peer, direction, block and size where nothing
 *  was learned yet. Peers with private memory on the node come twice: as in active target and
 *  wherever they are in MPI, and as in passive target while their server thread has to be woken. */
void nicstride_plan_table(FILE *to, const nicstride_method_row_t *const *rows,
                          nicstride_method_t forced, const nicstride_paths_t *paths);

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

/** Pieces and bytes that sieving the whole layout reads, about: for the cost model. */
void nicstride_sieve_total(const onic_layout_t *l, uint64_t piece, uint64_t gap_max,
                           double *pieces_p, double *bytes_p);

/** A gap up to this many bytes is cheaper to read than to skip by another system call. */
#define NICSTRIDE_SIEVE_GAP 4096
