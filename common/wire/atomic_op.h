/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The atomic operations that there are. Pure. */
#pragma once

/**
 * On integers of 4 or 8 bytes. All of them give the value from before. UCX has bitwise ones, too,
 * but as Debian has it (1.13.1) they do not do within a node what they should.
 */
typedef enum onic_atomic_op {
    ONIC_ATOMIC_ADD,
    ONIC_ATOMIC_SWAP,
    ONIC_ATOMIC_COMPARE_SWAP
} onic_atomic_op_t;
