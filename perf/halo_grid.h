/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The numerical side of halo_exchange: a block of a periodic grid, its stencil, its initial values.
 *
 * No MPI here: the serial computation that checks the parallel one uses the same functions.
 */
#ifndef PERF_HALO_GRID_H
#define PERF_HALO_GRID_H

#include <stdbool.h>
#include <stddef.h>

/** Dimensions are ordered z, y, x; x is contiguous in memory. A 2-D grid has one layer in z. */
enum { GRID_Z, GRID_Y, GRID_X, GRID_DIMS };

/** A block of cells with one ghost cell on both sides of each dimension in use. */
typedef struct grid {
    int n[GRID_DIMS];    /* interior cells */
    int full[GRID_DIMS]; /* with ghost cells; 1 in a dimension not in use */
    int fields;          /* doubles in a cell, next to each other */
} grid_t;

/** A box of cells in the full block. */
typedef struct grid_box {
    int start[GRID_DIMS];
    int size[GRID_DIMS];
} grid_box_t;

/** `dims` is 2 or 3; `n` are the interior cells, n[GRID_Z] is ignored for 2. */
grid_t grid_make(int dims, const int n[GRID_DIMS], int fields);

bool grid_uses(const grid_t *g, int dim);

/** Doubles of the full block. */
size_t grid_doubles(const grid_t *g);

/** Doubles from the first one to the cell (z, y, x) of the full block. */
size_t grid_index(const grid_t *g, int z, int y, int x);

/** The interior cells. */
grid_box_t grid_interior(const grid_t *g);

/**
 * The layer of one cell at the low (`side` 0) or high (1) end of `dim`: the interior's outermost
 * one, or with `ghost` the ghost cells next to it. Corners, which the stencil does not read, are
 * left out.
 */
grid_box_t grid_face(const grid_t *g, int dim, int side, bool ghost);

/** Sets the interior to values that depend on the cell's global position only. */
void grid_init(const grid_t *g, double *u, const int origin[GRID_DIMS]);

/** One step: each interior cell becomes the mean of its 4 or 6 neighbours. */
void grid_sweep(const grid_t *g, const double *from, double *to);

/** Fills the ghost cells of a block that is the whole periodic grid. */
void grid_wrap(const grid_t *g, double *u);

/** Interior doubles of `u` that differ in any bit from those of `whole`, `origin` cells into it. */
size_t grid_differences(const grid_t *g, const double *u, const grid_t *whole_grid,
                        const double *whole, const int origin[GRID_DIMS]);

#endif
