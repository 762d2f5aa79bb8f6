/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The halo by columns, whatever carries it: a rank's grid, what stands in it, and how long ranks
 * compute between two steps.
 *
 * Each rank has a grid of N x N doubles. In each step a column goes to each of its two neighbours,
 * periodically, which find it in a ghost column. Each step stores its number in one row of the
 * columns that are sent, so that data of another step is found.
 */
#pragma once

#include "perf/bench.h"

/** Left and right: neighbours, columns, and messages. */
enum { LEFT, RIGHT, SIDES };

/** The fewest columns there can be: two that are sent and two ghost ones. And the most. */
enum { COLUMNS_FEWEST = 4, COLUMNS_MOST = 16384 };

typedef enum compute { COMPUTE_NONE, COMPUTE_ALL, COMPUTE_ONE, COMPUTES } compute_t;
extern const char *const compute_names[COMPUTES];

typedef struct columns {
    MPI_Comm comm;
    int rank, ranks;
    int neighbour[SIDES];
    int n;
    uint64_t *grid;      /**< the bits of n x n doubles */
    MPI_Datatype column; /**< that begins where it is sent from */
    double compute;      /**< seconds in each step of this rank */
    int steps;           /**< done so far */
} columns_t;

/** Ranks and neighbours; the rest is for the others to set. */
void columns_init(columns_t *g, MPI_Comm comm);

/** Bytes of a grid. */
size_t columns_bytes(const columns_t *g);

/** The datatype of a column, to be freed by the caller. */
void columns_make_type(columns_t *g);

/** Puts the case at its beginning: how this rank computes, and what stands in the grid. */
void columns_start(columns_t *g, compute_t compute);

/** Where the column that goes to a side begins. */
uint64_t *columns_sent(const columns_t *g, int side);

/** How many doubles into the grid the column begins that comes from the neighbour on a side. */
size_t columns_ghost(const columns_t *g, int side);

/** What is done in each step before anything is sent: computes, and stores the step's number. */
void columns_compute(columns_t *g);

/** Words of the ghost columns that are not those of the step done last. */
long columns_wrong_ghosts(const columns_t *g);

/** Overwrites the ghost columns: what the next step leaves out is found. */
void columns_spoil_ghosts(columns_t *g);

/** Words between the ghost columns that have changed though nobody wrote there. */
long columns_wrong_inside(const columns_t *g);

/** Parses a list of numbers of columns. Returns 0, or -1 with a message on stderr. */
int columns_parse(const char *text, bench_list_t *list_p);
