/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 3 */
/* methods: nic */
/* needs: rdma */
/* mpirun: --mca orte_allowed_exit_without_sync 1 */
/* leaks: expected */
/**
 * @file
 * Method nic, and a process that is killed with requests outstanding (killed.h), by a device:
 * test/fabric/roce makes one.
 */
#include "test/mpi/killed.h"

int main(int argc, char **argv)
{
    return killed_cases("nic", false, (MPI_Aint)4 * KILLED_BLOCK, argc, argv);
}
