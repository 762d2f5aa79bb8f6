/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * A diagonal multi-partition of a grid: the assignment of cells to ranks.
 *
 * The grid is cut into cells so that each rank has the same number of cells in every layer of cells
 * in every direction, and in each direction the same rank follows all cells of a rank. With a
 * square number of ranks, as BT requires, all three dimensions are cut, and a rank has one cell in
 * each layer. With any other number P two dimensions are cut in P. Pure: no MPI.
 */
#pragma once

#include <stdbool.h>

#include "perf/apps/bt_cell.h"

typedef struct bt_tiling {
    int ranks;
    int cuts[BT_DIMS]; /**< cells along each dimension: z, y, x */
    int cells;         /**< of each rank */
} bt_tiling_t;

bt_tiling_t bt_tiling_make(int ranks);

/** The place of a rank's cell, in cells. */
void bt_tiling_place(const bt_tiling_t *t, int rank, int cell, int place[BT_DIMS]);

/** The owner of the cell at a place, and its number there in `cell_p`. -1 outside of the grid. */
int bt_tiling_owner(const bt_tiling_t *t, const int place[BT_DIMS], int *cell_p);

/** Sets the extent of the cell at `place` in a grid of `n` points along each dimension; leaves
 *  `array` alone. */
void bt_tiling_extent(const bt_tiling_t *t, int n, const int place[BT_DIMS], bt_cell_t *c);
