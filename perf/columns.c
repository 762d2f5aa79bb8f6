/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "perf/columns.h"
#include "perf/steps.h"

const char *const compute_names[COMPUTES] = {"none", "20us", "200us"};
static const double all_seconds = 20e-6, one_seconds = 200e-6;

/** The column sent to a side, and the column that the neighbour on that side writes. */
static int sent_column(const columns_t *g, int side)
{
    return side == LEFT ? 1 : g->n - 2;
}

static int ghost_column(const columns_t *g, int side)
{
    return side == LEFT ? 0 : g->n - 1;
}

static uint64_t *cell(const columns_t *g, int row, int column)
{
    return &g->grid[(size_t)row * (size_t)g->n + (size_t)column];
}

/** The word that a rank sends to a side in a row, stored in that step; step 0 is the initial value.
 */
static uint64_t word(int rank, int side, int row, int step)
{
    return (uint64_t)(rank + 1) << 48 | (uint64_t)side << 47 | (uint64_t)row << 32 | (uint32_t)step;
}

void columns_init(columns_t *g, MPI_Comm comm)
{
    *g = (columns_t){.comm = comm};
    MPI_Comm_rank(comm, &g->rank);
    MPI_Comm_size(comm, &g->ranks);
    g->neighbour[LEFT] = (g->rank + g->ranks - 1) % g->ranks;
    g->neighbour[RIGHT] = (g->rank + 1) % g->ranks;
}

size_t columns_bytes(const columns_t *g)
{
    return (size_t)g->n * (size_t)g->n * sizeof(*g->grid);
}

void columns_make_type(columns_t *g)
{
    MPI_Type_vector(g->n, 1, g->n, MPI_DOUBLE, &g->column);
    MPI_Type_commit(&g->column);
}

void columns_start(columns_t *g, compute_t compute)
{
    g->compute = compute == COMPUTE_ALL                   ? all_seconds
                 : compute == COMPUTE_ONE && g->rank == 0 ? one_seconds
                                                          : 0;
    g->steps = 0;
    memset(g->grid, 0, columns_bytes(g));
    for (int row = 0; row < g->n; row++)
        for (int side = 0; side < SIDES; side++)
            *cell(g, row, sent_column(g, side)) = word(g->rank, side, row, 0);
}

uint64_t *columns_sent(const columns_t *g, int side)
{
    return cell(g, 0, sent_column(g, side));
}

size_t columns_ghost(const columns_t *g, int side)
{
    return (size_t)ghost_column(g, side);
}

void columns_compute(columns_t *g)
{
    if (g->compute > 0)
        bench_compute(g->compute);
    g->steps++;
    for (int side = 0; side < SIDES; side++) {
        int row = g->steps % g->n;
        *cell(g, row, sent_column(g, side)) = word(g->rank, side, row, g->steps);
    }
}

long columns_wrong_ghosts(const columns_t *g)
{
    long wrong = 0;
    for (int side = 0; side < SIDES; side++) {
        for (int row = 0; row < g->n; row++) {
            int step = steps_last_at(g->steps, row, g->n);
            uint64_t sent = word(g->neighbour[side], !side, row, step);
            wrong += memcmp(cell(g, row, ghost_column(g, side)), &sent, sizeof(sent)) != 0;
        }
    }
    return wrong;
}

void columns_spoil_ghosts(columns_t *g)
{
    for (int side = 0; side < SIDES; side++)
        for (int row = 0; row < g->n; row++)
            *cell(g, row, ghost_column(g, side)) = UINT64_MAX;
}

long columns_wrong_inside(const columns_t *g)
{
    long wrong = 0;
    for (int row = 0; row < g->n; row++) {
        for (int column = 1; column < g->n - 1; column++) {
            uint64_t there = 0;
            for (int side = 0; side < SIDES; side++)
                if (column == sent_column(g, side))
                    there = word(g->rank, side, row, steps_last_at(g->steps, row, g->n));
            wrong += memcmp(cell(g, row, column), &there, sizeof(there)) != 0;
        }
    }
    return wrong;
}

int columns_parse(const char *text, bench_list_t *list_p)
{
    if (bench_parse_sizes(text, NULL, list_p) != 0)
        return -1;
    for (int i = 0; i < list_p->n; i++) {
        if (list_p->v[i] < COLUMNS_FEWEST || list_p->v[i] > COLUMNS_MOST) {
            fprintf(stderr, "-n: %zu is not in %d..%d\n", list_p->v[i], COLUMNS_FEWEST,
                    COLUMNS_MOST);
            return -1;
        }
    }
    return 0;
}
