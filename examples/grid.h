/* Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What halo_puts.c and halo_messages.c have in common: a periodic field that is smoothed step by
 * step, each cell becoming the mean of its four neighbours. The field is cut into pieces, one for
 * each process, with a halo one cell wide around each. It begins as a product of two cosines, which
 * a step multiplies by a constant, so it is known what each cell has to be.
 */
#pragma once

#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { UP, DOWN, LEFT, RIGHT, SIDES };

typedef struct {
    MPI_Comm comm; /* the processes as a torus */
    int rank;
    int n;                    /* a piece has n x n cells */
    int dims[2], place[2];    /* pieces in each direction, and which of them is mine */
    int neighbour[SIDES];     /* ranks */
    MPI_Datatype edge[SIDES]; /* my own cells along a side */
    MPI_Datatype halo[SIDES]; /* the cells beyond it, which are the neighbour's */
    double factor;            /* of the field, in each step */
} grid_t;

static inline int opposite(int side)
{
    return side ^ 1;
}

/* Cells of a piece with its halo. */
static inline size_t grid_cells(const grid_t *grid)
{
    return (size_t)(grid->n + 2) * (size_t)(grid->n + 2);
}

/* A row or a column of n cells, which begins there. Rows are contiguous, columns are not. */
static inline MPI_Datatype grid_line(const grid_t *grid, int rows, int columns, int row, int column)
{
    const int whole[2] = {grid->n + 2, grid->n + 2}, part[2] = {rows, columns};
    const int start[2] = {row, column};
    MPI_Datatype type;
    MPI_Type_create_subarray(2, whole, part, start, MPI_ORDER_C, MPI_DOUBLE, &type);
    MPI_Type_commit(&type);
    return type;
}

static inline grid_t grid_make(int n)
{
    const double pi = acos(-1);
    const int periodic[2] = {1, 1};
    grid_t grid = {.n = n};
    int size;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Dims_create(size, 2, grid.dims);
    MPI_Cart_create(MPI_COMM_WORLD, 2, grid.dims, periodic, 0, &grid.comm);
    MPI_Comm_rank(grid.comm, &grid.rank);
    MPI_Cart_coords(grid.comm, grid.rank, 2, grid.place);
    MPI_Cart_shift(grid.comm, 0, 1, &grid.neighbour[UP], &grid.neighbour[DOWN]);
    MPI_Cart_shift(grid.comm, 1, 1, &grid.neighbour[LEFT], &grid.neighbour[RIGHT]);
    const int first[SIDES] = {1, n, 1, n}, beyond[SIDES] = {0, n + 1, 0, n + 1};
    for (int side = 0; side < SIDES; side++) {
        int is_row = side == UP || side == DOWN;
        grid.edge[side] = is_row ? grid_line(&grid, 1, n, first[side], 1)
                                 : grid_line(&grid, n, 1, 1, first[side]);
        grid.halo[side] = is_row ? grid_line(&grid, 1, n, beyond[side], 1)
                                 : grid_line(&grid, n, 1, 1, beyond[side]);
    }
    grid.factor = (cos(2 * pi / (n * grid.dims[0])) + cos(2 * pi / (n * grid.dims[1]))) / 2;
    return grid;
}

/* What a cell is after so many steps; rows and columns from 1 to n. */
static inline double grid_exact(const grid_t *grid, int row, int column, int steps)
{
    const double pi = acos(-1), n = grid->n;
    return pow(grid->factor, steps) *
           cos(2 * pi * (row + n * grid->place[0]) / (n * grid->dims[0])) *
           cos(2 * pi * (column + n * grid->place[1]) / (n * grid->dims[1]));
}

static inline void grid_fill(const grid_t *grid, double *field)
{
    for (int row = 1; row <= grid->n; row++)
        for (int column = 1; column <= grid->n; column++)
            field[row * (grid->n + 2) + column] = grid_exact(grid, row, column, 0);
}

/* One step, when the halo of `now` has come. */
static inline void grid_step(const grid_t *grid, const double *now, double *next)
{
    const int width = grid->n + 2;
    for (int row = 1; row <= grid->n; row++)
        for (int i = row * width + 1; i <= row * width + grid->n; i++)
            next[i] = (now[i - width] + now[i + width] + now[i - 1] + now[i + 1]) / 4;
}

/* The largest difference from what the field has to be after so many steps. */
static inline double grid_error(const grid_t *grid, const double *field, int steps)
{
    double error = 0;
    for (int row = 1; row <= grid->n; row++)
        for (int column = 1; column <= grid->n; column++) {
            double exact = grid_exact(grid, row, column, steps);
            error = fmax(error, fabs(field[row * (grid->n + 2) + column] - exact));
        }
    return error;
}

static inline int grid_longer(const void *a, const void *b)
{
    return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

/* Says on rank 0 whether all is right, and the median time of an exchange. 0 if it is. */
static inline int grid_report(const grid_t *grid, const char *name, double error, double *seconds,
                              int count)
{
    qsort(seconds, (size_t)count, sizeof *seconds, grid_longer);
    double mine[2] = {error, seconds[count / 2]}, worst[2];
    MPI_Allreduce(mine, worst, 2, MPI_DOUBLE, MPI_MAX, grid->comm);
    int is_right = worst[0] < 1e-9;
    if (grid->rank == 0)
        printf("%s: %s, %d x %d processes of %d x %d cells: an exchange takes %.2f us\n",
               is_right ? "right" : "WRONG", name, grid->dims[0], grid->dims[1], grid->n, grid->n,
               1e6 * worst[1]);
    return !is_right;
}

static inline void grid_free(grid_t *grid)
{
    for (int side = 0; side < SIDES; side++) {
        MPI_Type_free(&grid->edge[side]);
        MPI_Type_free(&grid->halo[side]);
    }
    MPI_Comm_free(&grid->comm);
}
