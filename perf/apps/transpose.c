/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 1-4 */
/* windows: create allocate dynamic */
/* methods: all */
/* arguments: -n 5,64 -s fence,pscw,flush -t 1 */
/**
 * @file
 * The transposition of a matrix that is distributed by rows, as between the two halves of a
 * Fourier transform: each rank puts to each other rank that rank's part of its rows.
 *
 * The datatype of the origin takes columns, the one of the target writes rows. The data for one
 * rank is computed while that for the previous rank is in flight. Received data is added to a sum,
 * so that errors of every step are noticed. There are two copies of the result, so that nothing is
 * overwritten while it is being read.
 */
#include <stdlib.h>

#include "perf/apps/app.h"
#include "perf/apps/epoch.h"

typedef struct transpose {
    int n, rank, ranks, step;
    int rows, first;       /* of this rank */
    int summed;            /* the last step that is not in the sum */
    double *a;             /* rows * n */
    double *sum, *scratch; /* the sum of results, and an unused one, each of that size */
    bench_window_t window; /* two results of most * n doubles */
    size_t result;         /* doubles of one */
    app_epochs_t epochs;
    app_peers_t all;
    MPI_Datatype *columns, *there; /* for each rank */
} transpose_t;

static int first_of(const transpose_t *t, int rank)
{
    return (int)((long)t->n * rank / t->ranks);
}

static int rows_of(const transpose_t *t, int rank)
{
    return first_of(t, rank + 1) - first_of(t, rank);
}

static double value(int i, int j, int step)
{
    return ((double)i * 3 + 1) * ((double)j + 5) + step;
}

static void fill(transpose_t *t, int to)
{
    int first = first_of(t, to), end = first + rows_of(t, to);
    for (int i = 0; i < t->rows; i++)
        for (int j = first; j < end; j++)
            t->a[(size_t)i * (size_t)t->n + (size_t)j] = value(t->first + i, j, t->step);
}

static double *result(const transpose_t *t)
{
    return (double *)(void *)t->window.base + (size_t)(t->step % 2) * t->result;
}

static void add(const transpose_t *t, double *restrict sum)
{
    const double *restrict b = result(t);
    size_t n = (size_t)t->rows * (size_t)t->n;
    for (size_t i = 0; i < n; i++)
        sum[i] += b[i];
}

/** Runs a step and adds what arrives to `sum`; NULL for communication alone. */
static void run(transpose_t *t, bool communicates, double *sum)
{
    MPI_Aint place =
        (MPI_Aint)(((size_t)(t->step % 2) * t->result + (size_t)t->first) * sizeof(double));
    if (communicates)
        app_puts_begin(&t->epochs, &t->all);
    for (int i = 1; i <= t->ranks; i++) {
        int to = (t->rank + i) % t->ranks;
        if (sum != NULL)
            fill(t, to);
        if (communicates) {
            MPI_Put(t->a + first_of(t, to), rows_of(t, to), t->columns[to], to,
                    t->window.disp[to] + place, 1, t->there[to], t->window.win);
        }
    }
    if (communicates)
        app_puts_end(&t->epochs, &t->all);
    if (sum != NULL)
        add(t, sum);
}

static void whole(void *state)
{
    transpose_t *t = state;
    t->step++;
    run(t, true, t->sum);
}

static void compute(void *state)
{
    transpose_t *t = state;
    run(t, false, t->scratch);
}

static void communicate(void *state)
{
    run(state, true, NULL);
}

static long wrong(void *state)
{
    transpose_t *t = state;
    double steps = t->step - t->summed, numbers = 0.5 * steps * (t->step + t->summed + 1);
    long different = 0;
    for (int i = 0; i < t->rows; i++) {
        for (int j = 0; j < t->n; j++) {
            double *sum = &t->sum[(size_t)i * (size_t)t->n + (size_t)j];
            different += *sum != steps * value(j, t->first + i, 0) + numbers;
            *sum = 0;
        }
    }
    t->summed = t->step;
    return different;
}

/** For rank `to`: a column of its data, one element wide, and the same as rows in its result. */
static void make_types(transpose_t *t, int to)
{
    MPI_Datatype column;
    MPI_Type_vector(t->rows, 1, t->n, MPI_DOUBLE, &column);
    MPI_Type_create_resized(column, 0, sizeof(double), &t->columns[to]);
    MPI_Type_free(&column);
    MPI_Type_vector(rows_of(t, to), t->rows, t->n, MPI_DOUBLE, &t->there[to]);
    MPI_Type_commit(&t->columns[to]);
    MPI_Type_commit(&t->there[to]);
}

static void *open_case(const app_case_t *c, size_t *bytes_p)
{
    transpose_t *t = bench_alloc(sizeof(*t));
    *t = (transpose_t){.n = c->n, .rank = c->rank, .ranks = c->ranks};
    t->rows = rows_of(t, c->rank);
    t->first = first_of(t, c->rank);
    t->result = (size_t)(c->n / c->ranks + 1) * (size_t)c->n;
    if (bench_window_open(c->window, 2 * t->result * sizeof(double), c->comm, &t->window) != 0) {
        free(t);
        return NULL;
    }
    *bytes_p = (size_t)t->rows * (size_t)c->n * sizeof(double);
    t->a = bench_alloc(*bytes_p);
    t->sum = bench_alloc(*bytes_p);
    t->scratch = bench_alloc(*bytes_p);
    t->columns = bench_alloc((size_t)c->ranks * sizeof(*t->columns));
    t->there = bench_alloc((size_t)c->ranks * sizeof(*t->there));
    int *ranks = bench_alloc((size_t)c->ranks * sizeof(*ranks));
    for (int r = 0; r < c->ranks; r++) {
        ranks[r] = r;
        make_types(t, r);
    }
    app_peers_make(&t->all, c->comm, ranks, c->ranks, ranks, c->ranks);
    free(ranks);
    app_epochs_open(&t->epochs, c->comm, t->window.win, (app_sync_t)c->sync);
    return t;
}

static void close_case(void *state)
{
    transpose_t *t = state;
    app_epochs_close(&t->epochs);
    app_peers_free(&t->all);
    bench_window_close(&t->window);
    for (int r = 0; r < t->ranks; r++) {
        MPI_Type_free(&t->columns[r]);
        MPI_Type_free(&t->there[r]);
    }
    free(t->columns);
    free(t->there);
    free(t->a);
    free(t->sum);
    free(t->scratch);
    free(t);
}

int main(int argc, char **argv)
{
    static const app_t app = {.name = "transpose",
                              .n_is = "rows and columns of the matrix",
                              .n_default = "64,256,1024",
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
