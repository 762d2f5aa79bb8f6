/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-3 */
/* windows: create allocate dynamic */
/* methods: all */
/* arguments: here */
/* arguments: alone */
/* arguments: apart */
/* timeout: 300 */
/**
 * @file
 * The matrix of progress (progress.h) of one-sided operations, between two ranks.
 *
 *  here   within a node
 *  alone  there, without server thread: between nodes an exclusive lock, of the own memory, too,
 *         needs rank 0 in MPI then. With methods for which each process is a node it is as apart
 *  apart  as between hosts
 */
#include "test/mpi/progress_cells.h"

#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    const char *node = getenv("OMPI_MCA_osc_nicstride_node");
    const bool is_node = node != NULL && strcmp(node, "0") == 0,
               alone = argc > 1 && tl_asked_for("alone", argc, argv) && !is_node,
               apart = argc > 1 && tl_asked_for("apart", argc, argv);
    MPI_Comm pair;

    if (alone)
        setenv("OMPI_MCA_osc_nicstride_server", "0", 1);
    if (apart)
        setenv("OMPI_MCA_osc_nicstride_node", "0", 1);
    progress_begin(argc, argv, &progress_accesses, 1);
    tl_need_ranks(2, 16);
    if (alone && !tl_launched_here())
        tl_skip("without server thread only within a node");
    progress_world();
    const int last = tl_size() - 1;
    MPI_Comm_split(MPI_COMM_WORLD, tl_rank() % last == 0 ? 0 : MPI_UNDEFINED, 0, &pair);
    progress_run_accesses(pair, 0, last);
    if (pair != MPI_COMM_NULL)
        MPI_Comm_free(&pair);
    return progress_finish();
}
