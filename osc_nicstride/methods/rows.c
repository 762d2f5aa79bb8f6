/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The table of all rows, and the rows whose data goes in messages. */
#include "osc_nicstride/methods/methods.h"
#include "osc_nicstride/methods/plan.h"

#include "osc_nicstride/queue/send.h"
#include "osc_nicstride/queue/operation.h"
#include "osc_nicstride/window/state.h"

static const nicstride_method_row_t none = {.name = "auto"};

const nicstride_method_row_t *nicstride_methods[NICSTRIDE_METHODS_MAX] = {
    [NICSTRIDE_METHOD_AUTO] = &none,           [NICSTRIDE_METHOD_DIRECT] = &nicstride_direct,
    [NICSTRIDE_METHOD_CMA] = &nicstride_cma,   [NICSTRIDE_METHOD_SIEVE] = &nicstride_sieve,
    [NICSTRIDE_METHOD_PACK] = &nicstride_pack, [NICSTRIDE_METHOD_PIPELINE] = &nicstride_pipeline,
    [NICSTRIDE_METHOD_RDMA] = &nicstride_rdma, [NICSTRIDE_METHOD_NIC] = &nicstride_nic,
};

/* ---- pack: in messages ----------------------------------------------------------------------- */

static bool anywhere(const nicstride_transfer_t *t)
{
    (void)t;
    return true;
}

const nicstride_method_row_t nicstride_pack = {.name = "pack",
                                               .needs_target = true,
                                               .cost = nicstride_pack_cost,
                                               .reach = anywhere,
                                               .start = nicstride_message_start};
