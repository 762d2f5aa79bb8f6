/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2 */
/* windows: create allocate dynamic */
/* methods: auto direct cma sieve pack pipeline */
/* timeout: 300 */
/** @file The matrix of progress (progress.h) of one-sided operations without server thread, within
 * a node: between nodes an exclusive lock, of the own memory, too, needs rank 0 in MPI then. */
#include "test/mpi/progress_cells.h"

#include <stdlib.h>

int main(int argc, char **argv)
{
    setenv("OMPI_MCA_osc_nicstride_server", "0", 1);
    return progress_main_accesses(argc, argv);
}
