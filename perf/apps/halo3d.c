/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 1-4 */
/* windows: create allocate dynamic */
/* methods: all */
/* arguments: -n 3,17 -s fence,pscw,flush -t 1 */
/**
 * @file
 * A stencil computation on a periodic grid in three dimensions. In each step every rank puts the
 * six faces of its block, which are subarrays, into its neighbours' ghost cells.
 *
 * Cells that need no ghost cells are computed while the faces are in flight. There are two copies
 * of the grid, for the old and the new values: a neighbour that is one step ahead never writes
 * ghost cells that are still being read. The result is compared, bit by bit, with a serial
 * computation of the whole grid.
 */
#include <stdlib.h>
#include <string.h>

#include "perf/apps/app.h"
#include "perf/apps/epoch.h"
#include "perf/apps/grid.h"

enum { FACES = 2 * GRID_DIMS, TAG_BLOCK = 1 };

typedef struct halo {
    MPI_Comm comm; /* cartesian */
    int rank, ranks, step;
    int procs[GRID_DIMS];
    grid_t grid;
    grid_box_t part[1 + FACES]; /* parts of the interior; the first one needs no ghost cells */
    bench_window_t window;      /* both copies of the grid, one after the other */
    app_epochs_t epochs;
    app_peers_t neighbours;
    int neighbour[FACES];
    MPI_Datatype from[FACES], to[FACES];
    /* On rank 0: the whole grid, old and new, and its number of steps. */
    grid_t whole_grid;
    double *whole[2];
    int whole_step;
} halo_t;

static double *copy_of(const halo_t *h, int step)
{
    return (double *)(void *)h->window.base + (size_t)(step % 2) * grid_doubles(&h->grid);
}

/* ---- A step ---------------------------------------------------------------------------------- */

static void put_faces(halo_t *h)
{
    MPI_Aint offset = (MPI_Aint)((size_t)(h->step % 2) * grid_doubles(&h->grid) * sizeof(double));
    for (int i = 0; i < FACES; i++) {
        MPI_Put(copy_of(h, h->step), 1, h->from[i], h->neighbour[i],
                h->window.disp[h->neighbour[i]] + offset, 1, h->to[i], h->window.win);
    }
}

static void sweep(halo_t *h, int first, int last)
{
    for (int i = first; i <= last; i++)
        grid_sweep(&h->grid, &h->part[i], copy_of(h, h->step), copy_of(h, h->step + 1));
}

static void whole(void *state)
{
    halo_t *h = state;
    app_puts_begin(&h->epochs, &h->neighbours);
    put_faces(h);
    sweep(h, 0, 0);
    app_puts_end(&h->epochs, &h->neighbours);
    sweep(h, 1, FACES);
    h->step++;
}

/** The next step computes the new values again. */
static void compute(void *state)
{
    sweep(state, 0, FACES);
}

static void communicate(void *state)
{
    halo_t *h = state;
    app_puts_begin(&h->epochs, &h->neighbours);
    put_faces(h);
    app_puts_end(&h->epochs, &h->neighbours);
}

/* ---- Checking -------------------------------------------------------------------------------- */

static void block_origin(const halo_t *h, int rank, int origin[GRID_DIMS])
{
    MPI_Cart_coords(h->comm, rank, GRID_DIMS, origin);
    for (int d = 0; d < GRID_DIMS; d++)
        origin[d] *= h->grid.n[d];
}

/** Advances the serial result to this step. */
static void follow(halo_t *h)
{
    grid_box_t all = grid_interior(&h->whole_grid);
    for (; h->whole_step < h->step; h->whole_step++) {
        double *now = h->whole[h->whole_step % 2], *next = h->whole[(h->whole_step + 1) % 2];
        grid_wrap(&h->whole_grid, now);
        grid_sweep(&h->whole_grid, &all, now, next);
    }
}

/** Rank 0 compares every rank's block with the serial result. */
static long wrong(void *state)
{
    halo_t *h = state;
    size_t doubles = grid_doubles(&h->grid), different = 0;
    if (h->rank != 0) {
        MPI_Send(copy_of(h, h->step), (int)doubles, MPI_DOUBLE, 0, TAG_BLOCK, h->comm);
        return 0;
    }
    double *block = bench_alloc(doubles * sizeof(*block));
    memcpy(block, copy_of(h, h->step), doubles * sizeof(*block));
    follow(h);
    for (int r = 0; r < h->ranks; r++) {
        int origin[GRID_DIMS];
        if (r > 0)
            MPI_Recv(block, (int)doubles, MPI_DOUBLE, r, TAG_BLOCK, h->comm, MPI_STATUS_IGNORE);
        block_origin(h, r, origin);
        different +=
            grid_differences(&h->grid, block, &h->whole_grid, h->whole[h->step % 2], origin);
    }
    free(block);
    return (long)different;
}

/* ---- Making a case --------------------------------------------------------------------------- */

static MPI_Datatype subarray(const grid_t *g, grid_box_t box)
{
    MPI_Datatype type;
    MPI_Type_create_subarray(GRID_DIMS, g->full, box.size, box.start, MPI_ORDER_C, MPI_DOUBLE,
                             &type);
    MPI_Type_commit(&type);
    return type;
}

static size_t make_faces(halo_t *h)
{
    size_t bytes = 0;
    for (int i = 0; i < FACES; i++) {
        int d = i / 2, side = i % 2, below, above;
        MPI_Cart_shift(h->comm, d, 1, &below, &above);
        h->neighbour[i] = side == 0 ? below : above;
        h->from[i] = subarray(&h->grid, grid_face(&h->grid, d, side, false));
        h->to[i] = subarray(&h->grid, grid_face(&h->grid, d, !side, true));
        int size;
        MPI_Type_size(h->from[i], &size);
        bytes += (size_t)size;
    }
    app_peers_make(&h->neighbours, h->comm, h->neighbour, FACES, h->neighbour, FACES);
    return bytes;
}

/** Divides the grid into blocks for ranks; x, whose faces are the hardest, is cut most often. */
static void decompose(halo_t *h, const app_case_t *c)
{
    int periods[GRID_DIMS] = {1, 1, 1}, all[GRID_DIMS];
    MPI_Dims_create(c->ranks, GRID_DIMS, h->procs);
    int most = h->procs[GRID_Z];
    h->procs[GRID_Z] = h->procs[GRID_X];
    h->procs[GRID_X] = most;
    MPI_Cart_create(c->comm, GRID_DIMS, h->procs, periods, 0, &h->comm);
    MPI_Comm_set_errhandler(h->comm, MPI_ERRORS_RETURN);
    h->grid = grid_make((int[GRID_DIMS]){c->n, c->n, c->n});
    grid_parts(&h->grid, h->part);
    for (int d = 0; d < GRID_DIMS; d++)
        all[d] = h->procs[d] * c->n;
    h->whole_grid = grid_make(all);
}

static void start(halo_t *h)
{
    int origin[GRID_DIMS];
    block_origin(h, h->rank, origin);
    grid_init(&h->grid, copy_of(h, 0), origin);
    if (h->rank == 0) {
        for (int i = 0; i < 2; i++)
            h->whole[i] = bench_alloc(grid_doubles(&h->whole_grid) * sizeof(double));
        grid_init(&h->whole_grid, h->whole[0], (int[GRID_DIMS]){0});
    }
}

static void *open_case(const app_case_t *c, size_t *bytes_p)
{
    halo_t *h = bench_alloc(sizeof(*h));
    h->rank = c->rank;
    h->ranks = c->ranks;
    decompose(h, c);
    size_t bytes = 2 * grid_doubles(&h->grid) * sizeof(double);
    if (bench_window_open(c->window, bytes, h->comm, &h->window) != 0) {
        MPI_Comm_free(&h->comm);
        free(h);
        return NULL;
    }
    *bytes_p = make_faces(h);
    start(h);
    app_epochs_open(&h->epochs, h->comm, h->window.win, (app_sync_t)c->sync);
    return h;
}

static void close_case(void *state)
{
    halo_t *h = state;
    app_epochs_close(&h->epochs);
    app_peers_free(&h->neighbours);
    for (int i = 0; i < FACES; i++) {
        MPI_Type_free(&h->from[i]);
        MPI_Type_free(&h->to[i]);
    }
    bench_window_close(&h->window);
    MPI_Comm_free(&h->comm);
    free(h->whole[0]);
    free(h->whole[1]);
    free(h);
}

int main(int argc, char **argv)
{
    static const app_t app = {.name = "halo3d",
                              .n_is = "cells of a rank's block along each dimension",
                              .n_default = "16,64,128",
                              .syncs = app_sync_names,
                              .nsyncs = APP_SYNCS,
                              .open = open_case,
                              .close = close_case,
                              .whole = whole,
                              .compute = compute,
                              .communicate = communicate,
                              .wrong = wrong};
    return app_main(&app, argc, argv);
}
