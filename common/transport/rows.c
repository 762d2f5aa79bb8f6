/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The rows of the transport. */
#include "common/transport/internal.h"

#include "common/transport/shm/rings.h"
#include "common/transport/ucx/ucx.h"

const onic_row_t *const onic_rows[ONIC_ROWS + 1] = {&onic_row_shm, &onic_row_ucx, NULL};
