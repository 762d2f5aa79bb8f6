/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The row of UCX: messages to all that no other row reaches, and data. */
#pragma once

extern const struct onic_row onic_row_ucx;
