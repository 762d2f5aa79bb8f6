/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The numerical part of bt: the computation in one cell of a multi-partition of the grid.
 *
 * A model of the NAS benchmark BT with its data and dependences: five unknowns in each point, a
 * right-hand side that reads two layers of the neighbours, and for each direction a block
 * tridiagonal system that is solved along its lines, forward by an elimination of 5 x 5 blocks and
 * back by a substitution. The blocks' contents are made up.
 *
 * No MPI here: a cell that is the whole grid gives the plain result, bit by bit.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/** Dimensions are ordered z, y, x; x is contiguous in memory. Unknowns of a point, and layers of
 * ghost points of `u` and of the other arrays on both sides. */
enum { BT_DIMS = 3, BT_UNKNOWNS = 5, BT_BLOCK = 25, BT_LAYERS = 2, BT_GHOSTS = 1 };

/** The arrays of a cell. */
typedef enum bt_array {
    BT_U,   /* the state: 5 doubles per point, 2 layers of ghosts */
    BT_RHS, /* right-hand sides, finally the change of the state: 5 doubles, 1 layer */
    BT_LHS, /* the next block in the line after elimination: 25 doubles, 1 layer */
    BT_ARRAYS
} bt_array_t;

extern const int bt_doubles[BT_ARRAYS], bt_layers[BT_ARRAYS];

typedef struct bt_cell {
    int size[BT_DIMS];  /**< points */
    int room[BT_DIMS];  /**< points for which the arrays have room, without ghosts */
    int start[BT_DIMS]; /**< place of the first point in the grid */
    bool first[BT_DIMS], last[BT_DIMS]; /**< it is the first or last cell of the grid */
    double *array[BT_ARRAYS];
} bt_cell_t;

/** Points of an array along `dim`, including ghosts and room, and doubles of the whole array. */
int bt_extent(const int room[BT_DIMS], bt_array_t a, int dim);
size_t bt_elements(const int room[BT_DIMS], bt_array_t a);

/** Computes the right-hand side of a step. Reads both layers of ghosts if there are neighbours;
 *  outside of the grid everything is zero, and stays so. */
void bt_right_side(const bt_cell_t *c, int step);

/** Elimination along a dimension. Reads the ghosts before the cell unless it is the first one. */
void bt_forward(const bt_cell_t *c, int dim);

/** Substitution along a dimension. Reads the ghosts after the cell unless it is the last one. */
void bt_backward(const bt_cell_t *c, int dim);

/** Adds the change, times `factor`, to the state. */
void bt_add(const bt_cell_t *c, double factor);

/** Numbers of the state that differ in any bit from those of a cell that is the whole grid. */
long bt_differences(const bt_cell_t *c, const bt_cell_t *whole);
