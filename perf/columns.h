/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The halo by columns, for any kind of communication: a rank's grid, its contents, and how long
 * ranks compute between two steps.
 *
 * Each rank has a grid of N x N doubles. In each step a column goes to each of its two neighbours,
 * periodically, which find it in a ghost column. Each step stores its number in one row of the
 * columns that are sent, so that data of another step is detected.
 */
#pragma once

#include "perf/bench.h"

/** Left and right: indices of neighbours, columns, and messages. */
enum { LEFT, RIGHT, SIDES };

/** Fewest columns, two sent ones and two ghosts, and most columns. */
enum { COLUMNS_FEWEST = 4, COLUMNS_MOST = 16384 };

typedef enum compute { COMPUTE_NONE, COMPUTE_ALL, COMPUTE_ONE, COMPUTES } compute_t;
extern const char *const compute_names[COMPUTES];

typedef struct columns {
    MPI_Comm comm;
    int rank, ranks;
    int neighbour[SIDES];
    int n;
    uint64_t *grid;      /**< the bits of n x n doubles */
    MPI_Datatype column; /**< it begins where it is sent from */
    double compute;      /**< seconds of computing in each step of this rank */
    int steps;           /**< steps done so far */
} columns_t;

/** Sets ranks and neighbours; the other functions set the rest. */
void columns_init(columns_t *g, MPI_Comm comm);

/** Bytes of a grid. */
size_t columns_bytes(const columns_t *g);

/** Makes the datatype of a column, to be freed by the caller. */
void columns_make_type(columns_t *g);

/** Begins a case: sets how this rank computes, and the grid's contents. */
void columns_start(columns_t *g, compute_t compute);

/** The beginning of the column sent to a side. */
uint64_t *columns_sent(const columns_t *g, int side);

/** The offset in the grid, in doubles, of the ghost column written by the neighbour on a side. */
size_t columns_ghost(const columns_t *g, int side);

/** Done in each step before anything is sent: computes, and stores the step's number. */
void columns_compute(columns_t *g);

/** The number of words in the ghost columns that are not those of the last step. */
long columns_wrong_ghosts(const columns_t *g);

/** Overwrites the ghost columns, so that omissions of the next step are detected. */
void columns_spoil_ghosts(columns_t *g);

/** The number of words between the ghost columns that have changed although nobody wrote there. */
long columns_wrong_inside(const columns_t *g);

/** Parses a list of column counts. Returns 0, or -1 with a message on stderr. */
int columns_parse(const char *text, bench_list_t *list_p);
