/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The row of messages of this process to itself. They wait for the next progress: no handler
 *  ever runs inside a send. */
#pragma once

#include "common/transport/row/row.h"

extern const onic_row_t onic_row_loop;
