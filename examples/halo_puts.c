/* Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A halo exchange by puts of subarrays: each process puts the cells along its sides into the halos
 * of its neighbours, then all meet in a fence.
 *
 *     apt-get install libopenmpi-dev
 *     mpicc -O3 -o halo_puts halo_puts.c -lm
 *     mpirun -np 2 ./halo_puts
 *     mpirun -np 2 --mca osc nicstride ./halo_puts
 *
 * The second run has ours. A number behind the program's name is the width of a process's piece
 * (256).
 */
#include "grid.h"

enum { CHECKED = 50, STEPS = 400 };

/* Into the field that begins `base` cells from the start of the neighbours' windows. The two fields
 * take turns, so a neighbour that is a step ahead writes where nobody reads, and one fence is
 * enough. */
static void exchange(const grid_t *grid, MPI_Win win, const double *field, size_t base)
{
    for (int side = 0; side < SIDES; side++)
        MPI_Put(field, 1, grid->edge[side], grid->neighbour[side], (MPI_Aint)base, 1,
                grid->halo[opposite(side)], win);
    MPI_Win_fence(0, win);
}

int main(int argc, char **argv)
{
    static double seconds[STEPS];
    double *fields, error = 0;
    MPI_Win win;
    MPI_Init(&argc, &argv);
    grid_t grid = grid_make(argc > 1 ? atoi(argv[1]) : 256);
    const size_t cells = grid_cells(&grid);
    MPI_Win_allocate((MPI_Aint)(2 * cells * sizeof(double)), sizeof(double), MPI_INFO_NULL,
                     grid.comm, &fields, &win);
    grid_fill(&grid, fields);
    MPI_Win_fence(0, win);
    for (int step = 0; step < STEPS; step++) {
        size_t now = step % 2 * cells, next = cells - now;
        double start = MPI_Wtime();
        exchange(&grid, win, fields + now, now);
        seconds[step] = MPI_Wtime() - start;
        grid_step(&grid, fields + now, fields + next);
        if (step < CHECKED || step == STEPS - 1)
            error = fmax(error, grid_error(&grid, fields + next, step + 1));
    }
    MPI_Win_free(&win);
    int status = grid_report(&grid, "halo by puts", error, seconds, STEPS);
    grid_free(&grid);
    MPI_Finalize();
    return status;
}
