/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Memory of devices, such as GPUs, which processors cannot load from and store to. Only Open
 *  MPI knows it, and only where it was built for such devices. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/support/export.h"

/** True if the byte at `p`, any address, is in memory that only a device can reach. Any thread in
 *  MPI. */
typedef bool (*onic_device_fn_t)(const void *p);

/** The function that can tell; NULL where nothing can. Written by onic_device_init, and by tests
 * while no other thread is in MPI. */
ONIC_EXPORT extern onic_device_fn_t onic_device_fn;

/** Finds what can tell, once Open MPI has found its devices. MPI threads. */
ONIC_EXPORT void onic_device_init(void);

/** True if memory of devices can be told at all. After onic_device_init; any thread. */
static inline bool onic_devices_told(void)
{
    return __atomic_load_n(&onic_device_fn, __ATOMIC_ACQUIRE) != NULL;
}

/** True if the byte at `p` is in memory that only a device can reach. False where that cannot be
 *  told, and for memory that moves by itself. Some 100 ns. Threads that are in MPI. */
static inline bool onic_on_device(const void *p)
{
    return onic_devices_told() && onic_device_fn(p);
}
