/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Which method moves a transfer: gathers what the plan (plan.h) has to know, and says why.
 */
#ifndef NICSTRIDE_CHOOSE_H
#define NICSTRIDE_CHOOSE_H

#include "osc_nicstride/module.h"

struct nicstride_target;

/** Chooses the method; `*cell_p` is where its cost is to be noted, NULL for nowhere. */
nicstride_method_t nicstride_choose(nicstride_module_t *m, const struct nicstride_target *a,
                                    nicstride_direction_t dir, nicstride_tune_cell_t **cell_p);

static inline bool nicstride_is_single_copy(nicstride_method_t method)
{
    return method == NICSTRIDE_METHOD_CMA || method == NICSTRIDE_METHOD_SIEVE;
}

#endif
