/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The plan of a transfer: which method moves these bytes from this layout to that one.
 *
 *  Each method states its cost by linear numbers of the kind of peer (strided-RMA paper, section 4;
 *  common/model/link.h), and the cheapest that can do the transfer is taken. The numbers do not
 *  change, so neither does a plan.
 *
 *  Pure. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/model/link.h"
#include "osc_nicstride/protocol/method.h"
#include "common/layout/layout.h"

/** True if there is such a method, and it takes a transfer of these layouts; false for AUTO, which
 *  is none. */
static inline bool nicstride_fits(const nicstride_case_t *c, unsigned method)
{
    return method > NICSTRIDE_METHOD_AUTO && method < NICSTRIDE_METHODS_MAX &&
           c->rows[method] != NULL && (c->rows[method]->fits == NULL || c->rows[method]->fits(c));
}

/** True if a method that fits can do the transfer. */
static inline bool nicstride_reaches(const nicstride_case_t *c, unsigned method)
{
    return (c->reach & NICSTRIDE_REACH(method)) != 0 &&
           (c->transfer == NULL || c->rows[method]->reach(c->transfer));
}

/** A column has at least this many blocks of at most this many bytes. */
#define NICSTRIDE_COLUMN_BLOCKS 256
#define NICSTRIDE_COLUMN_BYTES  16

/** True if such a part of mapped memory is a column: each block has a cache line of its own. With
 *  stores, each of these lines travels to the origin and back to the target, and each page must
 *  first be mapped. Packed, one line carries several blocks, which the target unpacks where it has
 *  the lines. Halo steps whose columns have at least 512 blocks take 10 to 27 % less time, the
 *  first ones 60 to 70 % less. For blocks of 32 bytes and more, stores take less time. */
static inline bool nicstride_is_column(const onic_layout_t *target)
{
    const uint64_t blocks = onic_layout_blocks(target);

    return blocks >= NICSTRIDE_COLUMN_BLOCKS && target->size <= blocks * NICSTRIDE_COLUMN_BYTES &&
           (uint64_t)(target->ub - target->lb) >= (blocks - 1) * ONIC_LINK_LINE;
}

/** Sets the numbers of each kind of peer. `links` must stay. */
void nicstride_paths_set(nicstride_path_t path[ONIC_KINDS], const onic_links_t *links);

/** The method to use: the forced one if it can do the transfer, so that every program runs whatever
 *  is forced; else the cheapest that can. Messages can do every transfer. If the target is not
 *  present, the cost of methods that need it includes what messages wait for. Any thread, no lock.
 *
 *  In active target epochs every target counts as present. It must have the data by the end of its
 *  epoch, and unpacks it there; what the origin would do instead takes the origin's time, and
 *  nobody else waits for the target. */
nicstride_method_t nicstride_plan(const nicstride_case_t *c);

/** Writes what is used for each kind of peer, direction, block and size. Peers with private memory
 *  on the node appear three times: for transfers of which many are under way together, for those
 *  that are waited for alone, and for the latter while the target's server thread must be woken. */
void nicstride_plan_table(FILE *to, const nicstride_method_row_t *const *rows,
                          const nicstride_path_t path[ONIC_KINDS], nicstride_method_t forced);
