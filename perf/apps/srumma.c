/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 1-4 */
/* windows: create allocate dynamic */
/* methods: all */
/* arguments: -n 33,70 -s flush,rget -t 1 */
/**
 * @file
 * Dense matrix multiplication C = A B that fetches blocks of A and B by strided gets from the
 * windows of their owners: SRUMMA, as in section 6.4 of "Optimizing Strided Remote Memory Access
 * Operations on the Quadrics QsNetII Network Interconnect".
 *
 * The matrices are distributed in blocks over a grid of ranks. Each rank computes its block of C
 * from chunks of the blocks of A in its row and of B in its column. The next chunk is fetched while
 * the previous one is multiplied. The first chunks are the rank's own, which are read in place.
 *
 * The elements are small integers, so that the product is exact in whatever order it is summed.
 */
#include <stdlib.h>

#include "perf/apps/app.h"

/* Columns of A in a chunk, and unused doubles after each row of a block. */
enum { CHUNK = 128, PADDING = 8 };

/* After a chunk has been multiplied one in this many elements is made wrong, so that the next step
 * is only right if it fetches them again. */
enum { SPOILT = 64 };
static const double wrong_element = -1e6;

enum { FLUSH, RGET, SYNCS };
static const char *const sync_names[SYNCS] = {"flush", "rget"};

/** A part of the sum over k, with one owner of its part of A and one of its part of B. */
typedef struct chunk {
    int k, count;
    int owner[2];         /* of A's and of B's part */
    MPI_Aint place[2];    /* place of the part in the owner's window, in bytes */
    MPI_Datatype type[2]; /* there */
    int elements[2];
} chunk_t;

typedef struct srumma {
    MPI_Comm comm;
    int n, sync, rank;
    int grid[2], at[2];    /* ranks along rows and columns, and this rank's place */
    int rows, cols, ld;    /* of this rank's blocks; doubles from row to row */
    bench_window_t window; /* the block of A, behind it that of B */
    size_t block;          /* doubles of a block, the same on all ranks */
    double *c, *expected;  /* rows * cols: the sum of several products, and a single one */
    double *scratch;       /* for products that are not used */
    int steps;             /* number of products in the sum */
    chunk_t *chunk;
    int chunks;
    double *buffer[2][2];      /* of A and of B, two each */
    MPI_Request request[2][2]; /* of their gets */
} srumma_t;

static double a_value(int i, int k)
{
    return (i * 7 + k * 3) % 11 - 5;
}

static double b_value(int k, int j)
{
    return (k * 5 + j * 2) % 13 - 6;
}

/** The first of `n` items that belongs to part `i` of `parts`. */
static int first_of(int n, int parts, int i)
{
    return (int)((long)n * i / parts);
}

static int part_of(int n, int parts, int k)
{
    int i = 0;
    while (first_of(n, parts, i + 1) <= k)
        i++;
    return i;
}

/* ---- Multiplication -------------------------------------------------------------------------- */

/** C += A B with `k` columns of A, four rows of C at a time. */
static void multiply(int rows, int cols, int k, const double *a, int lda, const double *b, int ldb,
                     double *c)
{
    for (int i = 0; i < rows; i += 4) {
        int height = rows - i < 4 ? rows - i : 4;
        for (int l = 0; l < k; l++) {
            const double *restrict row = b + (size_t)l * (size_t)ldb;
            for (int r = 0; r < height; r++) {
                double *restrict sum = c + (size_t)(i + r) * (size_t)cols;
                double factor = a[(size_t)(i + r) * (size_t)lda + (size_t)l];
                for (int j = 0; j < cols; j++)
                    sum[j] += factor * row[j];
            }
        }
    }
}

/** Multiplies the chunk's parts where they are: in the own window or in a buffer. */
static void multiply_chunk(srumma_t *s, const chunk_t *c, int buffer, double *sum)
{
    const double *part[2];
    int ld[2] = {c->count, s->cols};
    for (int m = 0; m < 2; m++) {
        bool own = c->owner[m] == s->rank;
        part[m] = own ? (const double *)(const void *)(s->window.base + c->place[m])
                      : s->buffer[m][buffer];
        ld[m] = own ? s->ld : ld[m];
    }
    multiply(s->rows, s->cols, c->count, part[0], ld[0], part[1], ld[1], sum);
    for (int m = 0; m < 2; m++)
        for (int i = 0; c->owner[m] != s->rank && i < c->elements[m]; i += SPOILT)
            s->buffer[m][buffer][i] = wrong_element;
}

/* ---- Communication --------------------------------------------------------------------------- */

static void fetch(srumma_t *s, const chunk_t *c, int buffer)
{
    for (int m = 0; m < 2; m++) {
        int owner = c->owner[m];
        double *to = s->buffer[m][buffer];
        MPI_Aint place = s->window.disp[owner] + c->place[m];
        s->request[m][buffer] = MPI_REQUEST_NULL;
        if (owner == s->rank)
            continue;
        if (s->sync == RGET) {
            MPI_Rget(to, c->elements[m], MPI_DOUBLE, owner, place, 1, c->type[m], s->window.win,
                     &s->request[m][buffer]);
        } else {
            MPI_Get(to, c->elements[m], MPI_DOUBLE, owner, place, 1, c->type[m], s->window.win);
        }
    }
}

static void await(srumma_t *s, const chunk_t *c, int buffer)
{
    for (int m = 0; m < 2; m++) {
        if (c->owner[m] == s->rank)
            continue;
        if (s->sync == RGET)
            MPI_Wait(&s->request[m][buffer], MPI_STATUS_IGNORE);
        else if (m == 0 || c->owner[1] != c->owner[0])
            MPI_Win_flush(c->owner[m], s->window.win);
    }
}

/** Adds the product to `sum`; NULL for communication alone. */
static void run(srumma_t *s, bool communicates, double *sum)
{
    for (int i = 0; i <= s->chunks; i++) {
        /* With flush a fetch must be over before the next one begins; otherwise both would be
         * waited for. */
        if (i > 0 && communicates)
            await(s, &s->chunk[i - 1], (i - 1) % 2);
        if (i < s->chunks && communicates)
            fetch(s, &s->chunk[i], i % 2);
        if (i > 0 && sum != NULL)
            multiply_chunk(s, &s->chunk[i - 1], (i - 1) % 2, sum);
    }
}

static void whole(void *state)
{
    srumma_t *s = state;
    s->steps++;
    run(s, true, s->c);
}

static void compute(void *state)
{
    srumma_t *s = state;
    run(s, false, s->scratch);
}

static void communicate(void *state)
{
    run(state, true, NULL);
}

static long wrong(void *state)
{
    srumma_t *s = state;
    size_t elements = (size_t)s->rows * (size_t)s->cols;
    long different = 0;
    for (size_t i = 0; i < elements; i++) {
        different += s->c[i] != s->steps * s->expected[i];
        s->c[i] = 0;
    }
    s->steps = 0;
    return different;
}

/* ---- Making a case --------------------------------------------------------------------------- */

static void add_chunk(srumma_t *s, int k, int count)
{
    chunk_t *c = &s->chunk[s->chunks++];
    int column = part_of(s->n, s->grid[1], k), row = part_of(s->n, s->grid[0], k);
    size_t a = (size_t)(k - first_of(s->n, s->grid[1], column));
    size_t b = s->block + (size_t)(k - first_of(s->n, s->grid[0], row)) * (size_t)s->ld;
    *c = (chunk_t){.k = k,
                   .count = count,
                   .owner = {s->at[0] * s->grid[1] + column, row * s->grid[1] + s->at[1]},
                   .place = {(MPI_Aint)(a * sizeof(double)), (MPI_Aint)(b * sizeof(double))},
                   .elements = {s->rows * count, s->cols * count}};
    MPI_Type_vector(s->rows, count, s->ld, MPI_DOUBLE, &c->type[0]);
    MPI_Type_vector(count, s->cols, s->ld, MPI_DOUBLE, &c->type[1]);
    MPI_Type_commit(&c->type[0]);
    MPI_Type_commit(&c->type[1]);
}

/** Divides k into chunks, beginning with this rank's own columns of A and wrapping around. */
static void make_chunks(srumma_t *s)
{
    int start = first_of(s->n, s->grid[1], s->at[1]);
    s->chunk =
        bench_alloc((size_t)(s->n / CHUNK + 2 + s->grid[0] + s->grid[1]) * sizeof(*s->chunk));
    for (int done = 0, count; done < s->n; done += count) {
        int k = (start + done) % s->n, end = done < s->n - start ? s->n : start;
        for (int d = 0; d < 2; d++) {
            int next = first_of(s->n, s->grid[d], part_of(s->n, s->grid[d], k) + 1);
            end = next < end ? next : end;
        }
        count = end - k < CHUNK ? end - k : CHUNK;
        add_chunk(s, k, count);
    }
}

static void make_matrices(srumma_t *s)
{
    int row = first_of(s->n, s->grid[0], s->at[0]), col = first_of(s->n, s->grid[1], s->at[1]);
    double *a = (double *)(void *)s->window.base, *b = a + s->block;
    for (int i = 0; i < s->rows; i++) {
        for (int j = 0; j < s->cols; j++) {
            a[i * s->ld + j] = a_value(row + i, col + j);
            b[i * s->ld + j] = b_value(row + i, col + j);
        }
    }
    for (int i = 0; i < s->rows; i++) {
        for (int k = 0; k < s->n; k++)
            for (int j = 0; j < s->cols; j++)
                s->expected[i * s->cols + j] += a_value(row + i, k) * b_value(k, col + j);
    }
}

static void *open_case(const app_case_t *c, size_t *bytes_p)
{
    srumma_t *s = bench_alloc(sizeof(*s));
    int most[2] = {0, 0};
    *s = (srumma_t){.comm = c->comm, .n = c->n, .sync = c->sync, .rank = c->rank};
    /* Columns are cut most often, which makes A's parts strided. */
    MPI_Dims_create(c->ranks, 2, most);
    s->grid[0] = most[1];
    s->grid[1] = most[0];
    s->at[0] = c->rank / s->grid[1];
    s->at[1] = c->rank % s->grid[1];
    s->rows = first_of(c->n, s->grid[0], s->at[0] + 1) - first_of(c->n, s->grid[0], s->at[0]);
    s->cols = first_of(c->n, s->grid[1], s->at[1] + 1) - first_of(c->n, s->grid[1], s->at[1]);
    s->ld = c->n / s->grid[1] + 1 + PADDING;
    s->block = (size_t)(c->n / s->grid[0] + 1) * (size_t)s->ld;
    if (bench_window_open(c->window, 2 * s->block * sizeof(double), c->comm, &s->window) != 0) {
        free(s);
        return NULL;
    }
    size_t product = (size_t)s->rows * (size_t)s->cols * sizeof(double);
    s->c = bench_alloc(product);
    s->expected = bench_alloc(product);
    s->scratch = bench_alloc(product);
    for (int b = 0; b < 2; b++) {
        s->buffer[0][b] = bench_alloc((size_t)s->rows * CHUNK * sizeof(double));
        s->buffer[1][b] = bench_alloc((size_t)s->cols * CHUNK * sizeof(double));
    }
    make_chunks(s);
    make_matrices(s);
    *bytes_p = 0;
    for (int i = 0; i < s->chunks; i++) {
        for (int m = 0; m < 2; m++) {
            bool own = s->chunk[i].owner[m] == s->rank;
            *bytes_p += own ? 0 : (size_t)s->chunk[i].elements[m] * sizeof(double);
        }
    }
    MPI_Win_lock_all(MPI_MODE_NOCHECK, s->window.win);
    MPI_Win_sync(s->window.win);
    MPI_Barrier(c->comm);
    return s;
}

static void close_case(void *state)
{
    srumma_t *s = state;
    MPI_Win_unlock_all(s->window.win);
    bench_window_close(&s->window);
    for (int i = 0; i < s->chunks; i++) {
        MPI_Type_free(&s->chunk[i].type[0]);
        MPI_Type_free(&s->chunk[i].type[1]);
    }
    for (int b = 0; b < 2; b++) {
        free(s->buffer[0][b]);
        free(s->buffer[1][b]);
    }
    free(s->chunk);
    free(s->c);
    free(s->expected);
    free(s->scratch);
    free(s);
}

int main(int argc, char **argv)
{
    static const app_t app = {.name = "srumma",
                              .n_is = "rows and columns of the matrices",
                              .n_default = "256,512,1024",
                              .syncs = sync_names,
                              .nsyncs = SYNCS,
                              .open = open_case,
                              .close = close_case,
                              .whole = whole,
                              .compute = compute,
                              .communicate = communicate,
                              .wrong = wrong};
    return app_main(&app, argc, argv);
}
