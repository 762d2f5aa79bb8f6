/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What each method can do, and what it costs by the model; see method.h. Pure. */
#ifndef NICSTRIDE_ESTIMATES_H
#define NICSTRIDE_ESTIMATES_H

#include "osc_nicstride/methods/method.h"

nicstride_can_t nicstride_direct_can, nicstride_cma_can, nicstride_sieve_can, nicstride_pack_can,
    nicstride_mover_can, nicstride_zcopy_can;
nicstride_cost_t nicstride_direct_cost, nicstride_cma_cost, nicstride_sieve_cost,
    nicstride_pack_cost, nicstride_mover_cost, nicstride_zcopy_cost;

#endif
