/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * An adapter in place of libibverbs's and libmlx5's, for engine mlx5: it takes work requests as
 * bytes, and does what stands there when it likes.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/** What the device is. */
typedef enum mlx5_sim {
    MLX5_SIM_NONE,  /**< there is none */
    MLX5_SIM_OTHER, /**< of another maker */
    MLX5_SIM_OLD,   /**< does not wait for memory */
    MLX5_SIM_WAITS
} mlx5_sim_t;

/** From the beginning, with a random order of what the adapter does. */
void mlx5_sim_reset(mlx5_sim_t what, uint64_t seed);

/** The adapter looks at some of its rings. */
void mlx5_sim_pass(void);

/** All connections of the i-th group that was made break. */
void mlx5_sim_cut(int i);

/** All has been given back. */
void mlx5_sim_check_closed(void);

/** Queue pairs that there are. */
int mlx5_sim_pairs(void);

/** Requests as bytes that it has taken. */
uint64_t mlx5_sim_taken(void);
