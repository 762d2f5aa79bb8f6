/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2 */
/* windows: create allocate dynamic */
/* methods: nic */
/* needs: rdma */
/* mpirun: --mca osc_nicstride_key_piece 1 --mca osc_nicstride_node 0 */
/** @file Keys of method nic (keys_cases.h), by a device: test/fabric/roce makes one. */
#include "test/mpi/keys_cases.h"

int main(int argc, char **argv)
{
    return keys_cases("nic", false, argc, argv);
}
