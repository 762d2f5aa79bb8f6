/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What the runner of the matrix of progress asks of the sides of cells. */
#pragma once

#include "test/mpi/progress.h"

typedef struct progress_sides {
    MPI_Comm base;
    int me, size;
    bool show;       /**< prints what has become of each cell */
    double patience; /**< seconds of a holder */
} progress_sides_t;
extern progress_sides_t progress_sides;

/** Between the ranks of `base`. Collective. */
void progress_sides_open(MPI_Comm base);
void progress_sides_close(void);

/** A cell of this process begins, as soon as the first one is there. */
void progress_sides_begin(const progress_cell_t *cell);
