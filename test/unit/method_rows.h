/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The rows of the methods, as the component has them, for tests of what is chosen. Such
 * tests are linked with what the rows start, which is not called: nothing initialises MPI. */
#pragma once

#include "osc_nicstride/methods/methods.h"
#include "osc_nicstride/methods/plan.h"

static const nicstride_method_row_t *const *const rows = nicstride_methods;

/** What reaches a target in private memory on the node, by single copy, through receive
 *  buffers; and anywhere. */
#define REACH_MESSAGE NICSTRIDE_REACH(NICSTRIDE_METHOD_PACK)
#define REACH_COPY    (NICSTRIDE_REACH(NICSTRIDE_METHOD_CMA) | NICSTRIDE_REACH(NICSTRIDE_METHOD_SIEVE))
#define REACH_SLOTS   NICSTRIDE_REACH(NICSTRIDE_METHOD_PIPELINE)
#define REACH_DIRECT  NICSTRIDE_REACH(NICSTRIDE_METHOD_DIRECT)
#define REACH_ADAPTER                                                                              \
    (NICSTRIDE_REACH(NICSTRIDE_METHOD_RDMA) | NICSTRIDE_REACH(NICSTRIDE_METHOD_NIC))

/** An empty table of these, with such numbers, which must stay. */
static inline void table_init(nicstride_table_t *table, const onic_links_t *links)
{
    nicstride_path_t *path = table->path;

    *table = (nicstride_table_t){.rows = rows};
    for (unsigned d = 0; d < ONIC_DISTANCES; d++)
        path[d] = (nicstride_path_t){.link = links->node, .costs = &links->costs[d]};
    path[ONIC_NET] = (nicstride_path_t){.link = links->net};
    path[ONIC_ADAPTER] = (nicstride_path_t){.link = links->adapter};
}
