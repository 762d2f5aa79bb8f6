/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 3 */
/* methods: nic */
/* mpirun: --mca orte_allowed_exit_without_sync 1 */
/* leaks: expected */
/** @file Method nic, and a process that is killed with requests outstanding (killed.h). */
#include "test/mpi/killed.h"
#include "test/mpi/nic_device.h"

int main(int argc, char **argv)
{
    return killed_cases("nic", nic_need_device, (MPI_Aint)4 * KILLED_BLOCK, argc, argv);
}
