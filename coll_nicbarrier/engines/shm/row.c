/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Engine shm as a row. The team uses its flags on each node in any case (shm.h); chosen as
 *  the engine it means that there is nothing else. */
#include "coll_nicbarrier/engines/shm/shm.h"

nicbarrier_shm_config_t nicbarrier_shm_config = {.fanout = 16};

static const nicbarrier_param_t params[] = {
    {.name = "fanout",
     .help =
         "Most processes of a node that watch each other's flags directly; more are arranged in "
         "a tree of such groups by caches, NUMA nodes and packages",
     .same = true,
     .number = &nicbarrier_shm_config.fanout,
     .min = 2,
     .max = 64},
    {.name = NULL},
};

static int shm_score(void)
{
    return 100;
}

const nicbarrier_engine_t nicbarrier_engine_shm = {
    .name = "shm",
    .what = "flags in shared memory",
    .needs = NICBARRIER_NEEDS_ONE_NODE,
    .params = params,
    .score = shm_score,
};
