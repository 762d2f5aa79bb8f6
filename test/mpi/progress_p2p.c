/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-4 */
/* p2p: */
/* timeout: 300 */
/** @file The matrix of progress (progress.h) of sends. */
#include "test/mpi/progress_cells.h"

int main(int argc, char **argv)
{
    progress_begin(argc, argv, &progress_sends, 1);
    tl_need_ranks(2, 16);
    progress_world();
    progress_run(&progress_sends, "", PROGRESS_ANY, PROGRESS_ANY);
    return progress_finish();
}
