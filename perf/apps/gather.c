/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 1-4 */
/* windows: create allocate dynamic */
/* methods: all */
/* arguments: -n 3,1000 -s fence,pscw,flush -t 1 */
/**
 * @file
 * An irregular gather as in iterative solvers with sparse matrices: each rank gets elements at
 * random places of every other rank's vector, with the same indexed datatypes in each step.
 *
 * Rows of the matrix that need only the rank's own elements are computed while the others are in
 * flight. The products are added to a sum, so that errors of every step are noticed. There are two
 * copies of the vector, so that nothing is changed while it is being read.
 */
#include <stdlib.h>

#include "perf/apps/app.h"
#include "perf/apps/epoch.h"

/* One in SPARSE elements is got; each row uses its neighbours SWEEPS times. */
enum { SPARSE = 4, SWEEPS = 4 };

typedef struct gather {
    int n, rank, ranks, step;
    int length;            /* of a rank's part of the vector */
    bench_window_t window; /* two copies of it */
    app_epochs_t epochs;
    app_peers_t others;
    MPI_Datatype *type;  /* for each other rank */
    int **index;         /* elements to get from each rank, ascending */
    double **got;        /* n each */
    double *y, *scratch; /* length doubles each: a sum of products, and an unused result */
    int summed;          /* the last step that is not in the sum */
} gather_t;

static double value(int rank, int i, int step)
{
    return (double)i * 7 + rank * 13 + step;
}

static double *part_of(const gather_t *g)
{
    return (double *)(void *)g->window.base + (size_t)(g->step % 2) * (size_t)g->length;
}

static MPI_Aint place_of(const gather_t *g, int rank)
{
    return g->window.disp[rank] +
           (MPI_Aint)((size_t)(g->step % 2) * (size_t)g->length * sizeof(double));
}

/** Sets the vector of this step; that of the last step is not changed. */
static void set_vector(gather_t *g)
{
    double *x = part_of(g);
    for (int i = 0; i < g->length; i++)
        x[i] = value(g->rank, i, g->step);
}

static void own_rows(const gather_t *g, double *restrict y)
{
    const double *restrict x = part_of(g);
    for (int i = 0; i < g->length; i++)
        y[i] += 2 * x[i];
    for (int s = 1; s <= SWEEPS; s++)
        for (int i = 0; i < g->length - s; i++)
            y[i] += x[i + s];
}

static void other_rows(const gather_t *g, double *restrict y)
{
    for (int r = 0; r < g->ranks; r++)
        for (int i = 0; r != g->rank && i < g->n; i++)
            y[i] += g->got[r][i];
}

/** Runs a step and adds its product to `y`; NULL for communication alone. */
static void run(gather_t *g, bool communicates, double *y)
{
    if (y != NULL)
        set_vector(g);
    if (communicates) {
        app_gets_begin(&g->epochs, &g->others);
        for (int i = 1; i < g->ranks; i++) {
            int from = (g->rank + i) % g->ranks;
            MPI_Get(g->got[from], g->n, MPI_DOUBLE, from, place_of(g, from), 1, g->type[from],
                    g->window.win);
        }
    }
    if (y != NULL)
        own_rows(g, y);
    if (communicates)
        app_gets_end(&g->epochs, &g->others);
    if (y != NULL)
        other_rows(g, y);
}

static void whole(void *state)
{
    gather_t *g = state;
    g->step++;
    run(g, true, g->y);
}

static void compute(void *state)
{
    gather_t *g = state;
    run(g, false, g->scratch);
}

static void communicate(void *state)
{
    run(state, true, NULL);
}

static long wrong(void *state)
{
    gather_t *g = state;
    double steps = g->step - g->summed, numbers = 0.5 * steps * (g->step + g->summed + 1);
    long different = 0;
    for (int i = 0; i < g->length; i++) {
        double sum = 2 * value(g->rank, i, 0);
        int terms = 2;
        for (int s = 1; s <= SWEEPS && i + s < g->length; s++, terms++)
            sum += value(g->rank, i + s, 0);
        for (int r = 0; i < g->n && r < g->ranks; r++) {
            sum += r != g->rank ? value(r, g->index[r][i], 0) : 0;
            terms += r != g->rank;
        }
        different += g->y[i] != steps * sum + numbers * terms;
        g->y[i] = 0;
    }
    g->summed = g->step;
    return different;
}

static unsigned next_random(unsigned *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 16;
}

static void choose_elements(gather_t *g, int from)
{
    unsigned seed = (unsigned)(g->rank * g->ranks + from);
    g->index[from] = bench_alloc((size_t)g->n * sizeof(*g->index[from]));
    g->got[from] = bench_alloc((size_t)g->n * sizeof(*g->got[from]));
    for (int i = 0; i < g->n; i++)
        g->index[from][i] = SPARSE * i + (int)(next_random(&seed) % SPARSE);
    MPI_Type_create_indexed_block(g->n, 1, g->index[from], MPI_DOUBLE, &g->type[from]);
    MPI_Type_commit(&g->type[from]);
}

static void *open_case(const app_case_t *c, size_t *bytes_p)
{
    gather_t *g = bench_alloc(sizeof(*g));
    *g = (gather_t){.n = c->n, .rank = c->rank, .ranks = c->ranks, .length = SPARSE * c->n};
    size_t bytes = 2 * (size_t)g->length * sizeof(double);
    if (bench_window_open(c->window, bytes, c->comm, &g->window) != 0) {
        free(g);
        return NULL;
    }
    g->type = bench_alloc((size_t)c->ranks * sizeof(*g->type));
    g->index = bench_alloc((size_t)c->ranks * sizeof(*g->index));
    g->got = bench_alloc((size_t)c->ranks * sizeof(*g->got));
    g->y = bench_alloc((size_t)g->length * sizeof(*g->y));
    g->scratch = bench_alloc((size_t)g->length * sizeof(*g->scratch));
    int *others = bench_alloc((size_t)c->ranks * sizeof(*others)), n = 0;
    for (int r = 0; r < c->ranks; r++) {
        if (r != c->rank) {
            others[n++] = r;
            choose_elements(g, r);
        }
    }
    app_peers_make(&g->others, c->comm, others, n, others, n);
    free(others);
    app_epochs_open(&g->epochs, c->comm, g->window.win, (app_sync_t)c->sync);
    *bytes_p = (size_t)n * (size_t)c->n * sizeof(double);
    return g;
}

static void close_case(void *state)
{
    gather_t *g = state;
    app_epochs_close(&g->epochs);
    app_peers_free(&g->others);
    bench_window_close(&g->window);
    for (int r = 0; r < g->ranks; r++) {
        if (r != g->rank) {
            MPI_Type_free(&g->type[r]);
            free(g->index[r]);
            free(g->got[r]);
        }
    }
    free(g->type);
    free(g->index);
    free(g->got);
    free(g->y);
    free(g->scratch);
    free(g);
}

int main(int argc, char **argv)
{
    static const app_t app = {.name = "gather",
                              .n_is = "elements that a rank gets from each other one",
                              .n_default = "1000,30000,300000",
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
