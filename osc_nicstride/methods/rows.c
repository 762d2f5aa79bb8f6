/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "osc_nicstride/methods/methods.h"

#include "osc_nicstride/methods/pack/parts.h"

static const nicstride_method_row_t none = {.name = "auto"};

const nicstride_method_row_t *nicstride_methods[NICSTRIDE_METHODS_MAX] = {
    [NICSTRIDE_METHOD_AUTO] = &none,           [NICSTRIDE_METHOD_DIRECT] = &nicstride_direct,
    [NICSTRIDE_METHOD_CMA] = &nicstride_cma,   [NICSTRIDE_METHOD_SIEVE] = &nicstride_sieve,
    [NICSTRIDE_METHOD_PACK] = &nicstride_pack, [NICSTRIDE_METHOD_PIPELINE] = &nicstride_pipeline,
    [NICSTRIDE_METHOD_RDMA] = &nicstride_rdma, [NICSTRIDE_METHOD_NIC] = &nicstride_nic,
};
