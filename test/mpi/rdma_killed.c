/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 3 */
/* methods: rdma */
/* mpirun: --mca orte_allowed_exit_without_sync 1 */
/* leaks: expected */
/** @file Method rdma, and a process that is killed (killed.h). */
#include <stddef.h>

#include "test/mpi/killed.h"

int main(int argc, char **argv)
{
    return killed_cases("rdma", NULL, KILLED_BLOCK, argc, argv);
}
