/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The rows of the methods, as the component has them, for tests of what is chosen. Such
 *  tests are linked with what the rows start, which is not called: nothing initialises MPI. */
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

/** The plan of a transfer to that kind of peer. */
static inline nicstride_method_t plan_for(const nicstride_path_t path[ONIC_KINDS], onic_kind_t kind,
                                          nicstride_case_t c)
{
    c.path = &path[kind];
    return nicstride_plan(&c);
}
