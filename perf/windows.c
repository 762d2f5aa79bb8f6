/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The time of starting: MPI_Init, the first window of each of two kinds, and later ones.
 * Microseconds of the slowest rank; for later windows the median.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { LATER = 31, BYTES = 4096 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

static double slowest(double usec)
{
    MPI_Allreduce(MPI_IN_PLACE, &usec, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return usec;
}

static double window(int create)
{
    static char mine[BYTES];
    void *base;
    MPI_Win win;
    MPI_Barrier(MPI_COMM_WORLD);
    const double begun = now();
    if (create)
        MPI_Win_create(mine, BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    else
        MPI_Win_allocate(BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    const double usec = now() - begun;
    MPI_Win_free(&win);
    return slowest(usec);
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double later(int create)
{
    double usec[LATER];
    for (int i = 0; i < LATER; i++)
        usec[i] = window(create);
    qsort(usec, LATER, sizeof(*usec), ascending);
    return usec[LATER / 2];
}

int main(int argc, char **argv)
{
    int rank;
    const double begun = now();
    MPI_Init(&argc, &argv);
    const double init = slowest(now() - begun), first = window(0), create = window(1);
    const double allocates = later(0), creates = later(1);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) {
        printf("init %.0f, first allocate %.0f, first create %.0f, allocate %.0f, create %.0f us\n",
               init, first, create, allocates, creates);
    }
    MPI_Finalize();
    return 0;
}
