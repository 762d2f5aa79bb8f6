/* Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * ARMCI, the layer below Global Arrays, over MPI's one-sided operations (ARMCI-MPI): each process
 * puts a patch of its matrix into its neighbour's and gets another one back. ARMCI-MPI makes
 * derived datatypes of patches when it is told DIRECT.
 *
 *     apt-get install libopenmpi-dev libarmci-mpi-dev
 *     mpicc -O3 -o armci_patch armci_patch.c -larmci-openmpi
 *     mpirun -np 2 -x ARMCI_STRIDED_METHOD=DIRECT ./armci_patch
 *     mpirun -np 2 -x ARMCI_STRIDED_METHOD=DIRECT --mca osc nicstride ./armci_patch
 *
 * The second run has ours.
 */
#include <armci.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 512, ROWS = 128, COLUMNS = 16, STEPS = 300 };

static double value(int rank, int row, int column, int step)
{
    return step + 1e-3 * rank + 10.0 * (row * N + column);
}

/* A put and a get of ROWS x COLUMNS cells, from and to the same place in the other matrix. */
static void transfer(double *mine, double *theirs, double *back, int rank)
{
    int counts[2] = {COLUMNS * sizeof(double), ROWS}, stride = N * sizeof(double);
    ARMCI_PutS(mine, &stride, theirs, &stride, counts, 1, rank);
    ARMCI_Fence(rank);
    ARMCI_GetS(theirs, &stride, back, &stride, counts, 1, rank);
}

int main(int argc, char **argv)
{
    int rank, ranks, is_right = 1, all_right;
    MPI_Init(&argc, &argv);
    ARMCI_Init();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    void **matrices = malloc((size_t)ranks * sizeof *matrices);
    double *mine = ARMCI_Malloc_local(N * N * sizeof(double));
    double *back = ARMCI_Malloc_local(N * N * sizeof(double));
    ARMCI_Malloc(matrices, N * N * sizeof(double));
    int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
    double seconds = 0;
    for (int step = 0; step < STEPS; step++) {
        int row = step % (N - ROWS), column = 7 * step % (N - COLUMNS);
        size_t patch = (size_t)row * N + (size_t)column;
        for (int i = 0; i < ROWS; i++)
            for (int j = 0; j < COLUMNS; j++)
                mine[patch + i * N + j] = value(rank, i, j, step);
        ARMCI_Barrier();
        double start = MPI_Wtime();
        transfer(mine + patch, (double *)matrices[next] + patch, back + patch, next);
        seconds += MPI_Wtime() - start;
        ARMCI_Barrier();
        ARMCI_Access_begin(matrices[rank]);
        const double *come = (double *)matrices[rank] + patch;
        for (int i = 0; i < ROWS; i++)
            for (int j = 0; j < COLUMNS; j++)
                is_right = is_right && back[patch + i * N + j] == value(rank, i, j, step) &&
                           come[i * N + j] == value(before, i, j, step);
        ARMCI_Access_end(matrices[rank]);
    }
    MPI_Allreduce(&is_right, &all_right, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%s: armci patches, %d processes, %d x %d reals: a put and a get take %.2f us\n",
               all_right ? "right" : "WRONG", ranks, ROWS, COLUMNS, 1e6 * seconds / STEPS);
    ARMCI_Free(matrices[rank]);
    ARMCI_Free_local(mine);
    ARMCI_Free_local(back);
    free(matrices);
    ARMCI_Finalize();
    MPI_Finalize();
    return !all_right;
}
