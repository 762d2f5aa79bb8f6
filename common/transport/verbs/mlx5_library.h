/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What only the mlx5 adapters (ConnectX, BlueField) can do, by libmlx5, which libibverbs
 * loads as their driver. It is looked for when it is first asked for, so that nothing needs it that
 *  has no such adapter. Only in builds with mlx5dv (OMPI_NIC_HAVE_MLX5DV). */
#pragma once

#include <infiniband/mlx5dv.h>

#include "common/support/export.h"

/** Its functions, each as mlx5dv.h declares it. */
typedef struct onic_mlx5 {
    __typeof__(mlx5dv_is_supported) *is_supported;
    __typeof__(mlx5dv_create_qp) *create_qp;
    __typeof__(mlx5dv_qp_ex_from_ibv_qp_ex) *qp_ex_from_ibv_qp_ex;
    __typeof__(mlx5dv_devx_general_cmd) *devx_general_cmd;
} onic_mlx5_t;

/** NULL where there is no such library, or an old one. Any thread. */
ONIC_EXPORT const onic_mlx5_t *onic_mlx5(void);
