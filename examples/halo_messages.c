/* Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A halo exchange by messages of subarrays, each of which is sent and received where it stands.
 *
 *     apt-get install libopenmpi-dev
 *     mpicc -O3 -o halo_messages halo_messages.c -lm
 *     mpirun -np 2 ./halo_messages
 *     mpirun -np 2 --mca pml superpipe ./halo_messages
 *
 * The second run has ours. A number behind the program's name is the width of a process's piece
 * (256).
 */
#include "grid.h"

enum { CHECKED = 50, STEPS = 400 };

static void exchange(const grid_t *grid, double *field)
{
    MPI_Request requests[2 * SIDES];
    for (int side = 0; side < SIDES; side++)
        MPI_Irecv(field, 1, grid->halo[side], grid->neighbour[side], opposite(side), grid->comm,
                  &requests[side]);
    for (int side = 0; side < SIDES; side++)
        MPI_Isend(field, 1, grid->edge[side], grid->neighbour[side], side, grid->comm,
                  &requests[SIDES + side]);
    MPI_Waitall(2 * SIDES, requests, MPI_STATUSES_IGNORE);
}

int main(int argc, char **argv)
{
    static double seconds[STEPS];
    double error = 0;
    MPI_Init(&argc, &argv);
    grid_t grid = grid_make(argc > 1 ? atoi(argv[1]) : 256);
    const size_t cells = grid_cells(&grid);
    double *fields = calloc(2 * cells, sizeof(double));
    if (fields == NULL)
        MPI_Abort(MPI_COMM_WORLD, 1);
    grid_fill(&grid, fields);
    for (int step = 0; step < STEPS; step++) {
        double *now = fields + step % 2 * cells, *next = fields + (step + 1) % 2 * cells;
        double start = MPI_Wtime();
        exchange(&grid, now);
        seconds[step] = MPI_Wtime() - start;
        grid_step(&grid, now, next);
        if (step < CHECKED || step == STEPS - 1)
            error = fmax(error, grid_error(&grid, next, step + 1));
    }
    free(fields);
    int status = grid_report(&grid, "halo by messages", error, seconds, STEPS);
    grid_free(&grid);
    MPI_Finalize();
    return status;
}
