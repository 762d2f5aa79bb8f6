/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The numerical part of halo3d: a block of a periodic grid, its stencil, its initial values.
 *
 * No MPI here: the serial computation that checks the parallel one uses the same functions.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/** Dimensions are ordered z, y, x; x is contiguous in memory. */
enum { GRID_Z, GRID_Y, GRID_X, GRID_DIMS };

/** A block of cells, one double each, with one ghost cell on both sides of each dimension. */
typedef struct grid {
    int n[GRID_DIMS];    /* interior cells */
    int full[GRID_DIMS]; /* with ghost cells */
} grid_t;

/** A box of cells in the full block. */
typedef struct grid_box {
    int start[GRID_DIMS];
    int size[GRID_DIMS];
} grid_box_t;

grid_t grid_make(const int n[GRID_DIMS]);

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

/** One step in a box of the interior: each cell becomes the mean of itself and its 6 neighbours,
 *  plus one, so that old data is never right. */
void grid_sweep(const grid_t *g, const grid_box_t *box, const double *from, double *to);

/**
 * Divides the interior: box[0] needs no ghost cells; the 6 others, of which some may be empty, are
 * the rest.
 */
void grid_parts(const grid_t *g, grid_box_t box[1 + 2 * GRID_DIMS]);

/** Fills the ghost cells of a block that is the whole periodic grid. */
void grid_wrap(const grid_t *g, double *u);

/** Interior doubles of `u` that differ in any bit from those of `whole`, `origin` cells into it. */
size_t grid_differences(const grid_t *g, const double *u, const grid_t *whole_grid,
                        const double *whole, const int origin[GRID_DIMS]);
