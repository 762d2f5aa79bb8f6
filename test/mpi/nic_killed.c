/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 3 */
/* methods: nic */
/* mpirun: --mca orte_allowed_exit_without_sync 1 */
/* leaks: expected */
/** @file Method nic, and a process that is killed (killed.h), by the adapter of the test's own. */
#include "common/config.h"

#include "test/mpi/killed.h"
#include "test/mpi/testlib.h"

int main(int argc, char **argv)
{
#if !OMPI_NIC_HAVE_VERBS
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    tl_skip("this build is without libibverbs");
#endif
    return killed_cases("nic", true, (MPI_Aint)4 * KILLED_BLOCK, argc, argv);
}
