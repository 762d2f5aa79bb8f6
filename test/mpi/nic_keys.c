/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2 */
/* windows: create allocate */
/* methods: nic */
/** @file Keys of method nic (keys_cases.h). */
#include "test/mpi/keys_cases.h"
#include "test/mpi/nic_device.h"

int main(int argc, char **argv)
{
    return keys_cases("nic", nic_need_device, argc, argv);
}
