/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "osc_nicstride/methods/methods.h"

#define ROW(method, target)                                                                        \
    {                                                                                              \
        .name = #method, .needs_target = (target), .can = nicstride_##method##_can,                \
        .cost = nicstride_##method##_cost, .start = nicstride_##method##_start                     \
    }

const nicstride_method_row_t nicstride_methods[NICSTRIDE_METHOD_LAST] = {
    [NICSTRIDE_METHOD_AUTO] = {.name = "auto"},  [NICSTRIDE_METHOD_DIRECT] = ROW(direct, false),
    [NICSTRIDE_METHOD_CMA] = ROW(cma, false),    [NICSTRIDE_METHOD_SIEVE] = ROW(sieve, false),
    [NICSTRIDE_METHOD_PACK] = ROW(pack, true),   [NICSTRIDE_METHOD_MOVER] = ROW(mover, true),
    [NICSTRIDE_METHOD_ZCOPY] = ROW(zcopy, true),
};
