/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The methods as tests of pure code see them: what fits, and what it costs. */
#pragma once

#include "common/pipeline/core/chunks.h"
#include "osc_nicstride/methods/plan.h"

static const nicstride_method_row_t
    none = {.name = "auto"},
    direct = {.name = "direct", .cost = nicstride_direct_cost},
    cma = {.name = "cma", .cost = nicstride_cma_cost},
    sieve = {.name = "sieve", .fits = nicstride_sieve_fits, .cost = nicstride_sieve_cost},
    pack = {.name = "pack", .needs_target = true, .cost = nicstride_pack_cost},
    pipeline = {.name = "pipeline",
                .needs_target = true,
                .fits = nicstride_pipeline_fits,
                .cost = nicstride_pipeline_cost},
    rdma = {.name = "rdma", .fits = nicstride_rdma_fits, .cost = nicstride_rdma_cost},
    nic = {.name = "nic", .fits = nicstride_nic_fits, .cost = nicstride_nic_cost};

static const nicstride_method_row_t *const rows[NICSTRIDE_METHODS_MAX] = {
    [NICSTRIDE_METHOD_AUTO] = &none, [NICSTRIDE_METHOD_DIRECT] = &direct,
    [NICSTRIDE_METHOD_CMA] = &cma,   [NICSTRIDE_METHOD_SIEVE] = &sieve,
    [NICSTRIDE_METHOD_PACK] = &pack, [NICSTRIDE_METHOD_PIPELINE] = &pipeline,
    [NICSTRIDE_METHOD_RDMA] = &rdma, [NICSTRIDE_METHOD_NIC] = &nic,
};

/** What reaches a target in private memory on the node, by single copy, through slots; and
 *  anywhere. */
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
    path[ONIC_NET] = (nicstride_path_t){.link = links->net,
                                        .pipeline_slot = ONIC_PIPELINE_RX_BUFFER,
                                        .pipeline_block = ONIC_PIPELINE_RX_BUFFER};
    path[ONIC_ADAPTER] = path[ONIC_NET];
    path[ONIC_ADAPTER].link = links->adapter;
}
