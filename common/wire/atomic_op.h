/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The atomic operations that there are; see atomic.h. Pure. */
#ifndef ONIC_WIRE_ATOMIC_OP_H
#define ONIC_WIRE_ATOMIC_OP_H

/** On integers of 4 or 8 bytes. All of them give the value from before. */
typedef enum onic_atomic_op {
    ONIC_ATOMIC_ADD,
    ONIC_ATOMIC_AND,
    ONIC_ATOMIC_OR,
    ONIC_ATOMIC_XOR,
    ONIC_ATOMIC_SWAP,
    ONIC_ATOMIC_COMPARE_SWAP
} onic_atomic_op_t;

#endif
