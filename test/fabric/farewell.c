/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * A short job: a window over all, a few barriers, the end. The window's component has barriers of
 * its own until late in MPI_Finalize, and the last message of the last of them may be lost like any
 * other, when those who have left it are about to go.
 */
#include <mpi.h>
#include <stdio.h>

enum { BARRIERS = 30 };

int main(int argc, char **argv)
{
    int rank, *memory;
    MPI_Win win;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    for (int i = 0; i < BARRIERS; i++)
        MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_free(&win);
    if (rank == 0) {
        printf("farewell: %d barriers\n", BARRIERS);
        fflush(stdout);
    }
    MPI_Finalize();
    return 0;
}
