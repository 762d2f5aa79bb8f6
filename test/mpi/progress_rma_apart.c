/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2 */
/* windows: create allocate dynamic */
/* timeout: 300 */
/** @file The matrix of progress (progress.h) of one-sided operations, as between hosts. */
#include "test/mpi/progress_cells.h"

#include <stdlib.h>

int main(int argc, char **argv)
{
    setenv("OMPI_MCA_osc_nicstride_node", "0", 1);
    return progress_main_accesses(argc, argv);
}
