/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2 */
/* windows: create allocate dynamic */
/* methods: nic */
/* needs: rdma */
/** @file Method nic (nic_cases.h), by a device: test/fabric/roce makes one. */
#include "test/mpi/nic_cases.h"

int main(int argc, char **argv)
{
    return nic_cases(false, argc, argv);
}
