/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 1-4 */
/* windows: create allocate dynamic */
/* methods: all */
/* arguments: -n 6,13 -s fence,pscw,flush -t 1 */
/**
 * @file
 * The exchanges of the NAS benchmark BT as in its Co-Array Fortran version: puts of parts of arrays
 * directly into the neighbours' arrays.
 *
 * Each step copies two layers of faces between all cells. Then for each direction the layers of
 * cells are solved one after the other: elimination sends its result at the end of a cell to the
 * next one, then the data for substitution comes back. The grids of the classes S, W, A, B and C
 * are 12, 24, 64, 102 and 162 wide. The result is compared, bit by bit, with an undivided grid.
 *
 * With flush and an empty message for each exchange nothing is overwritten too early: before it
 * puts, a rank has always received something from that neighbour that was sent after the
 * neighbour's last read.
 */
#include <stdlib.h>
#include <string.h>

#include "perf/apps/app.h"
#include "perf/apps/bt_cell.h"
#include "perf/apps/bt_tiling.h"
#include "perf/apps/epoch.h"

enum { TAG_STATE = 1, MOST_PUTS = 2 };

/** What one cell puts into one neighbour, from one or two arrays. */
typedef struct parcel {
    int puts, rank;
    struct {
        const double *from;
        MPI_Aint to; /* place in the neighbour's window, in bytes */
        MPI_Datatype from_type, to_type;
    } put[MOST_PUTS];
} parcel_t;

/** A direction of solving: the order of cells, and the partners. */
typedef struct sweep {
    int *cell;                    /* by layer */
    parcel_t *forward, *backward; /* by layer */
    app_peers_t ahead, back;
} sweep_t;

typedef struct bt {
    MPI_Comm comm;
    int rank, n, step;
    bt_tiling_t tiling;
    int room[BT_DIMS];
    bt_cell_t *cell;
    parcel_t *face; /* six of each cell */
    sweep_t sweep[BT_DIMS];
    app_peers_t all;
    bench_window_t window;
    app_epochs_t epochs;
    size_t bytes;
    /* On rank 0: the undivided grid. */
    bt_cell_t whole;
    int whole_step;
} bt_t;

/* ---- A step ---------------------------------------------------------------------------------- */

static void send(const bt_t *b, const parcel_t *p)
{
    for (int i = 0; i < p->puts; i++) {
        MPI_Put(p->put[i].from, 1, p->put[i].from_type, p->rank,
                b->window.disp[p->rank] + p->put[i].to, 1, p->put[i].to_type, b->window.win);
    }
}

static void copy_faces(const bt_t *b)
{
    app_puts_begin(&b->epochs, &b->all);
    for (int i = 0; i < 2 * BT_DIMS * b->tiling.cells; i++)
        send(b, &b->face[i]);
    app_puts_end(&b->epochs, &b->all);
}

/** Solves all layers of cells of one direction, there and back. */
static void solve(const bt_t *b, int dim, bool communicates, bool computes)
{
    const sweep_t *s = &b->sweep[dim];
    int layers = b->tiling.cuts[dim];
    for (int layer = 0; layer < layers; layer++) {
        for (int i = 0; computes && i < b->tiling.cells / layers; i++)
            bt_forward(&b->cell[s->cell[layer * (b->tiling.cells / layers) + i]], dim);
        if (communicates && layer < layers - 1) {
            app_puts_begin(&b->epochs, &s->ahead);
            send(b, &s->forward[layer]);
            app_puts_end(&b->epochs, &s->ahead);
        }
    }
    for (int layer = layers - 1; layer >= 0; layer--) {
        for (int i = 0; computes && i < b->tiling.cells / layers; i++)
            bt_backward(&b->cell[s->cell[layer * (b->tiling.cells / layers) + i]], dim);
        if (communicates && layer > 0) {
            app_puts_begin(&b->epochs, &s->back);
            send(b, &s->backward[layer]);
            app_puts_end(&b->epochs, &s->back);
        }
    }
}

static void run(const bt_t *b, bool communicates, bool computes)
{
    if (communicates)
        copy_faces(b);
    for (int c = 0; computes && c < b->tiling.cells; c++)
        bt_right_side(&b->cell[c], b->step);
    for (int dim = BT_DIMS - 1; dim >= 0; dim--)
        solve(b, dim, communicates, computes);
    /* The computing measured alone must not change the state. */
    for (int c = 0; computes && c < b->tiling.cells; c++)
        bt_add(&b->cell[c], communicates ? 1 : 0);
}

static void whole(void *state)
{
    bt_t *b = state;
    b->step++;
    run(b, true, true);
}

static void compute(void *state)
{
    run(state, false, true);
}

static void communicate(void *state)
{
    run(state, true, false);
}

/* ---- Checking -------------------------------------------------------------------------------- */

static void follow(bt_t *b)
{
    while (b->whole_step < b->step) {
        bt_right_side(&b->whole, ++b->whole_step);
        for (int dim = BT_DIMS - 1; dim >= 0; dim--) {
            bt_forward(&b->whole, dim);
            bt_backward(&b->whole, dim);
        }
        bt_add(&b->whole, 1);
    }
}

/** Rank 0 compares every rank's cells with the undivided grid. */
static long wrong(void *state)
{
    bt_t *b = state;
    int doubles = (int)bt_elements(b->room, BT_U);
    long different = 0;
    if (b->rank != 0) {
        for (int c = 0; c < b->tiling.cells; c++)
            MPI_Send(b->cell[c].array[BT_U], doubles, MPI_DOUBLE, 0, TAG_STATE, b->comm);
        return 0;
    }
    follow(b);
    double *u = bench_alloc((size_t)doubles * sizeof(*u));
    for (int r = 0; r < b->tiling.ranks; r++) {
        for (int c = 0; c < b->tiling.cells; c++) {
            bt_cell_t cell = b->cell[c];
            if (r > 0) {
                int place[BT_DIMS];
                bt_tiling_place(&b->tiling, r, c, place);
                bt_tiling_extent(&b->tiling, b->n, place, &cell);
                cell.array[BT_U] = u;
                MPI_Recv(u, doubles, MPI_DOUBLE, r, TAG_STATE, b->comm, MPI_STATUS_IGNORE);
            }
            different += bt_differences(&cell, &b->whole);
        }
    }
    free(u);
    return different;
}

/* ---- Making a case --------------------------------------------------------------------------- */

/** The offset of an array in the window, in bytes. */
static MPI_Aint array_place(const bt_t *b, int cell, bt_array_t a)
{
    size_t all = 0, before = 0;
    for (int i = 0; i < BT_ARRAYS; i++) {
        before += i < (int)a ? bt_elements(b->room, (bt_array_t)i) : 0;
        all += bt_elements(b->room, (bt_array_t)i);
    }
    return (MPI_Aint)(((size_t)cell * all + before) * sizeof(double));
}

/** The datatype of `layers` layers of an array, from `first` on, counted along `dim` from the first
 *  point that is no ghost; in other dimensions the cell's points. */
static MPI_Datatype layers_of(const bt_t *b, bt_array_t a, const int size[BT_DIMS], int dim,
                              int first, int layers)
{
    MPI_Datatype point, type;
    int full[BT_DIMS], part[BT_DIMS], start[BT_DIMS];
    for (int d = 0; d < BT_DIMS; d++) {
        full[d] = bt_extent(b->room, a, d);
        part[d] = d == dim ? layers : size[d];
        start[d] = bt_layers[a] + (d == dim ? first : 0);
    }
    MPI_Type_contiguous(bt_doubles[a], MPI_DOUBLE, &point);
    MPI_Type_create_subarray(BT_DIMS, full, part, start, MPI_ORDER_C, point, &type);
    MPI_Type_free(&point);
    MPI_Type_commit(&type);
    return type;
}

/** Adds to `p` the data for the neighbour of a cell at its `side` (0 low, 1 high) along `dim`: as
 *  many layers as the array has ghosts. Adds nothing if there is no neighbour. */
static void add_put(bt_t *b, parcel_t *p, int cell, bt_array_t a, int dim, int side)
{
    const bt_cell_t *c = &b->cell[cell];
    bt_cell_t there;
    int place[BT_DIMS], number, size;
    bt_tiling_place(&b->tiling, b->rank, cell, place);
    place[dim] += side == 0 ? -1 : 1;
    int rank = bt_tiling_owner(&b->tiling, place, &number), layers = bt_layers[a];
    if (rank < 0)
        return;
    bt_tiling_extent(&b->tiling, b->n, place, &there);
    p->rank = rank;
    p->put[p->puts].from = c->array[a];
    p->put[p->puts].to = array_place(b, number, a);
    p->put[p->puts].from_type =
        layers_of(b, a, c->size, dim, side == 0 ? 0 : c->size[dim] - layers, layers);
    p->put[p->puts].to_type =
        layers_of(b, a, c->size, dim, side == 0 ? there.size[dim] : -layers, layers);
    MPI_Type_size(p->put[p->puts].from_type, &size);
    b->bytes += (size_t)size;
    p->puts++;
}

static void free_parcel(parcel_t *p)
{
    for (int i = 0; i < p->puts; i++) {
        MPI_Type_free(&p->put[i].from_type);
        MPI_Type_free(&p->put[i].to_type);
    }
}

/** The rank next to this one's cells, which is the same for all cells with a neighbour; -1 if none
 *  has one. */
static int neighbour(const bt_t *b, int dim, int side)
{
    int rank = -1;
    for (int c = 0; c < b->tiling.cells && rank < 0; c++) {
        int place[BT_DIMS], number;
        bt_tiling_place(&b->tiling, b->rank, c, place);
        place[dim] += side == 0 ? -1 : 1;
        rank = bt_tiling_owner(&b->tiling, place, &number);
    }
    return rank;
}

static void make_sweep(bt_t *b, int dim)
{
    sweep_t *s = &b->sweep[dim];
    int cells = b->tiling.cells, layers = b->tiling.cuts[dim], used = 0;
    int before = neighbour(b, dim, 0), behind = neighbour(b, dim, 1), n = layers > 1;
    s->cell = bench_alloc((size_t)cells * sizeof(*s->cell));
    s->forward = bench_alloc((size_t)layers * sizeof(*s->forward));
    s->backward = bench_alloc((size_t)layers * sizeof(*s->backward));
    for (int layer = 0; layer < layers; layer++) {
        for (int c = 0; c < cells; c++) {
            int place[BT_DIMS];
            bt_tiling_place(&b->tiling, b->rank, c, place);
            if (place[dim] == layer) {
                s->cell[used++] = c;
                add_put(b, &s->forward[layer], c, BT_LHS, dim, 1);
                add_put(b, &s->forward[layer], c, BT_RHS, dim, 1);
                add_put(b, &s->backward[layer], c, BT_RHS, dim, 0);
            }
        }
    }
    app_peers_make(&s->ahead, b->comm, &behind, n, &before, n);
    app_peers_make(&s->back, b->comm, &before, n, &behind, n);
}

static void make_exchanges(bt_t *b)
{
    int ranks[2 * BT_DIMS], n = 0;
    b->face = bench_alloc((size_t)(2 * BT_DIMS * b->tiling.cells) * sizeof(*b->face));
    for (int i = 0; i < 2 * BT_DIMS * b->tiling.cells; i++)
        add_put(b, &b->face[i], i / (2 * BT_DIMS), BT_U, i / 2 % BT_DIMS, i % 2);
    for (int d = 0; d < BT_DIMS; d++) {
        make_sweep(b, d);
        for (int side = 0; side < 2; side++) {
            int rank = neighbour(b, d, side);
            ranks[n] = rank;
            n += rank >= 0;
        }
    }
    app_peers_make(&b->all, b->comm, ranks, n, ranks, n);
}

static void make_cells(bt_t *b)
{
    b->cell = bench_alloc((size_t)b->tiling.cells * sizeof(*b->cell));
    for (int c = 0; c < b->tiling.cells; c++) {
        int place[BT_DIMS];
        bt_tiling_place(&b->tiling, b->rank, c, place);
        bt_tiling_extent(&b->tiling, b->n, place, &b->cell[c]);
        for (int a = 0; a < BT_ARRAYS; a++) {
            b->cell[c].array[a] =
                (double *)(void *)(b->window.base + array_place(b, c, (bt_array_t)a));
        }
    }
    if (b->rank == 0) {
        bt_tiling_t undivided = bt_tiling_make(1);
        bt_tiling_extent(&undivided, b->n, (int[BT_DIMS]){0}, &b->whole);
        for (int a = 0; a < BT_ARRAYS; a++) {
            b->whole.array[a] =
                bench_alloc(bt_elements(b->whole.room, (bt_array_t)a) * sizeof(double));
        }
    }
}

static void *open_case(const app_case_t *c, size_t *bytes_p)
{
    bt_tiling_t tiling = bt_tiling_make(c->ranks);
    if (c->n < BT_LAYERS * tiling.cells) {
        fprintf(stderr, "bt: %d points are too few for %d cells\n", c->n, tiling.cells);
        return NULL;
    }
    bt_t *b = bench_alloc(sizeof(*b));
    bt_cell_t any = {.size = {0}};
    *b = (bt_t){.comm = c->comm, .rank = c->rank, .n = c->n, .tiling = tiling};
    bt_tiling_extent(&b->tiling, c->n, (int[BT_DIMS]){0}, &any);
    memcpy(b->room, any.room, sizeof(b->room));
    size_t bytes = (size_t)array_place(b, b->tiling.cells, BT_U);
    if (bench_window_open(c->window, bytes, c->comm, &b->window) != 0) {
        free(b);
        return NULL;
    }
    make_cells(b);
    make_exchanges(b);
    app_epochs_open(&b->epochs, c->comm, b->window.win, (app_sync_t)c->sync);
    *bytes_p = b->bytes;
    return b;
}

static void close_case(void *state)
{
    bt_t *b = state;
    app_epochs_close(&b->epochs);
    for (int i = 0; i < 2 * BT_DIMS * b->tiling.cells; i++)
        free_parcel(&b->face[i]);
    for (int d = 0; d < BT_DIMS; d++) {
        sweep_t *s = &b->sweep[d];
        for (int layer = 0; layer < b->tiling.cuts[d]; layer++) {
            free_parcel(&s->forward[layer]);
            free_parcel(&s->backward[layer]);
        }
        app_peers_free(&s->ahead);
        app_peers_free(&s->back);
        free(s->cell);
        free(s->forward);
        free(s->backward);
    }
    for (int a = 0; a < BT_ARRAYS; a++)
        free(b->whole.array[a]);
    app_peers_free(&b->all);
    bench_window_close(&b->window);
    free(b->face);
    free(b->cell);
    free(b);
}

int main(int argc, char **argv)
{
    static const app_t app = {.name = "bt",
                              .n_is = "points of the grid along each dimension",
                              .n_default = "12,24,64",
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
