/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-3 */
/* windows: create allocate dynamic */
/* timeout: 300 */
/** @file The matrix of progress (progress.h) of one-sided operations, between two ranks. */
#include "test/mpi/progress_cells.h"

int main(int argc, char **argv)
{
    return progress_main_accesses(argc, argv);
}
