/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2 */
/* p2p: auto */
/* timeout: 300 */
/** @file The matrix of progress (progress.h) of short messages without credit. */
#include "test/mpi/progress_cells.h"

#include <stdlib.h>

int main(int argc, char **argv)
{
    /* There is little of it. */
    setenv("OMPI_MCA_pml_superpipe_memory", "1", 1);
    progress_begin(argc, argv, &progress_sends_without_credit, 1);
    tl_need_ranks(2, 2);
    progress_world();
    progress_run(&progress_sends_without_credit, "", PROGRESS_ANY, PROGRESS_ANY);
    return progress_finish();
}
