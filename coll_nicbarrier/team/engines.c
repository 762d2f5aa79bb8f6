/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The engines of this build. A new one is a folder, a row in it, and a line here. */
#include "coll_nicbarrier/engines/engine.h"

const nicbarrier_engine_t *const nicbarrier_engines[NICBARRIER_ENGINES_MAX + 1] = {
    &nicbarrier_engine_shm,
    &nicbarrier_engine_put,
    &nicbarrier_engine_datagram,
    &nicbarrier_engine_mlx5,
};
