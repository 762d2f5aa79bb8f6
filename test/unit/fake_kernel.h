/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * A kernel that takes the steps of engine datagram, played by the process in place of the functions
 * of bpf/client.h; it may lose its programs. It sends by the engine's socket, and gets its words
 * from the process.
 */
#pragma once

#include <stdbool.h>

/** To be set before groups are made. */
typedef struct fake_kernel {
    bool absent;      /**< it can have no group */
    unsigned ends_at; /**< its programs are gone when a group has asked them so often; 0: never */
} fake_kernel_t;

extern fake_kernel_t fake_kernel;
