/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * A stencil computation whose halos travel by MPI_Put with derived datatypes.
 *
 * An ordinary MPI program: a periodic 2-D or 3-D grid in blocks, one for each rank. In each
 * iteration every rank puts the outermost layer of its block into its neighbours' ghost cells; the
 * layers along x are strided down to single cells. The result is compared, bit by bit, with a
 * serial computation of the whole grid.
 *
 * The grid is kept twice, for the old and the new values. A neighbour that is one iteration ahead
 * therefore never writes ghost cells that are still being read, and one synchronisation for each
 * iteration is enough.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "perf/bench.h"
#include "perf/halo_grid.h"

enum { WARM_UP = 3, MAX_FACES = 2 * GRID_DIMS, TAG_BLOCK = 1 };

typedef enum halo_sync { SYNC_FENCE, SYNC_LOCK, SYNC_PSCW, SYNCS } halo_sync_t;
static const char *const sync_names[SYNCS] = {"fence", "lock", "pscw"};
static const char *const type_names[] = {"subarray", "vector"};
static const char *const dims_names[] = {"2d", "3d"};

typedef struct options {
    bench_list_t dims, windows, syncs, types;
    int cells, fields, iterations;
    const char *json;
} options_t;

/** A layer to send and where it goes. Offsets are in bytes from the start of a grid. */
typedef struct face {
    int neighbour;
    MPI_Datatype from, to;
    MPI_Aint from_offset, to_offset;
} face_t;

typedef struct halo {
    MPI_Comm comm; /* cartesian */
    int rank, ranks;
    int procs[GRID_DIMS];
    grid_t grid;
    halo_sync_t sync;
    bench_window_t window; /* both copies of the grid, one after the other */
    MPI_Group neighbours;
    face_t face[MAX_FACES];
    int faces;
    size_t face_bytes; /* of all faces */
} halo_t;

static const char usage[] =
    "usage: mpirun -n RANKS halo_exchange [options]\n"
    "  -d LIST   dimensions of the grid: 2d, 3d (2d)\n"
    "  -n CELLS  cells of a rank's block along each dimension (1024 in 2-D, 96 in 3-D)\n"
    "  -f N      doubles in each cell (1)\n"
    "  -i N      iterations (50)\n"
    "  -w LIST   windows: create, allocate, dynamic, shared (create)\n"
    "  -s LIST   synchronisation: fence, lock (lock_all and flush), pscw (fence)\n"
    "  -l        the same as -s lock\n"
    "  -T LIST   datatypes: subarray, vector (subarray)\n"
    "  -j FILE   write the results as JSON\n";

/* ---- Datatypes ------------------------------------------------------------------------------- */

/** A box as a subarray of the full block. */
static MPI_Datatype subarray_type(const grid_t *g, const grid_box_t *box, MPI_Aint *offset_p)
{
    MPI_Datatype cell, type;
    MPI_Type_contiguous(g->fields, MPI_DOUBLE, &cell);
    MPI_Type_create_subarray(GRID_DIMS, g->full, box->size, box->start, MPI_ORDER_C, cell, &type);
    MPI_Type_free(&cell);
    MPI_Type_commit(&type);
    *offset_p = 0;
    return type;
}

/** The same box as nested vectors, starting at its first cell. */
static MPI_Datatype vector_type(const grid_t *g, const grid_box_t *box, MPI_Aint *offset_p)
{
    MPI_Datatype row, layer, type;
    MPI_Aint row_bytes = (MPI_Aint)(grid_index(g, 0, 1, 0) * sizeof(double));
    MPI_Aint layer_bytes = (MPI_Aint)(grid_index(g, 1, 0, 0) * sizeof(double));
    MPI_Type_contiguous(box->size[GRID_X] * g->fields, MPI_DOUBLE, &row);
    MPI_Type_create_hvector(box->size[GRID_Y], 1, row_bytes, row, &layer);
    MPI_Type_create_hvector(box->size[GRID_Z], 1, layer_bytes, layer, &type);
    MPI_Type_free(&row);
    MPI_Type_free(&layer);
    MPI_Type_commit(&type);
    *offset_p = (MPI_Aint)(sizeof(double) * grid_index(g, box->start[GRID_Z], box->start[GRID_Y],
                                                       box->start[GRID_X]));
    return type;
}

static void make_faces(halo_t *h, bool vectors)
{
    MPI_Datatype (*make)(const grid_t *, const grid_box_t *, MPI_Aint *) =
        vectors ? vector_type : subarray_type;
    int cart_dim = 0;
    h->faces = 0;
    h->face_bytes = 0;
    for (int d = 0; d < GRID_DIMS; d++) {
        if (!grid_uses(&h->grid, d)) {
            continue;
        }
        int neighbour[2], size;
        MPI_Cart_shift(h->comm, cart_dim++, 1, &neighbour[0], &neighbour[1]);
        for (int side = 0; side < 2; side++) {
            face_t *f = &h->face[h->faces++];
            grid_box_t from = grid_face(&h->grid, d, side, false);
            grid_box_t to = grid_face(&h->grid, d, !side, true);
            f->neighbour = neighbour[side];
            f->from = make(&h->grid, &from, &f->from_offset);
            f->to = make(&h->grid, &to, &f->to_offset);
            MPI_Type_size(f->from, &size);
            h->face_bytes += (size_t)size;
        }
    }
}

static void free_faces(halo_t *h)
{
    for (int i = 0; i < h->faces; i++) {
        MPI_Type_free(&h->face[i].from);
        MPI_Type_free(&h->face[i].to);
    }
}

/* ---- Exchange -------------------------------------------------------------------------------- */

/** The group that PSCW works on: each neighbour once. */
static MPI_Group neighbour_group(const halo_t *h)
{
    MPI_Group all, group;
    int ranks[MAX_FACES], n = 0;
    for (int i = 0; i < h->faces; i++) {
        int known = 0;
        while (known < n && ranks[known] != h->face[i].neighbour) {
            known++;
        }
        if (known == n) {
            ranks[n++] = h->face[i].neighbour;
        }
    }
    MPI_Comm_group(h->comm, &all);
    MPI_Group_incl(all, n, ranks, &group);
    MPI_Group_free(&all);
    return group;
}

static void begin_epoch(const halo_t *h)
{
    if (h->sync == SYNC_FENCE) {
        MPI_Win_fence(MPI_MODE_NOPRECEDE, h->window.win);
    } else if (h->sync == SYNC_PSCW) {
        MPI_Win_post(h->neighbours, 0, h->window.win);
        MPI_Win_start(h->neighbours, 0, h->window.win);
    }
}

static void end_epoch(const halo_t *h)
{
    if (h->sync == SYNC_FENCE) {
        MPI_Win_fence(MPI_MODE_NOSUCCEED, h->window.win);
    } else if (h->sync == SYNC_PSCW) {
        MPI_Win_complete(h->window.win);
        MPI_Win_wait(h->window.win);
    } else {
        MPI_Win_flush_all(h->window.win);
        MPI_Barrier(h->comm);
        MPI_Win_sync(h->window.win);
    }
}

/** Fills all ghost cells of the old or the new grid. */
static void exchange(halo_t *h, size_t grid_offset)
{
    begin_epoch(h);
    for (int i = 0; i < h->faces; i++) {
        const face_t *f = &h->face[i];
        MPI_Put(h->window.base + grid_offset + f->from_offset, 1, f->from, f->neighbour,
                h->window.disp[f->neighbour] + (MPI_Aint)grid_offset + f->to_offset, 1, f->to,
                h->window.win);
    }
    end_epoch(h);
}

static void iterate(halo_t *h, int iterations, double *seconds)
{
    size_t bytes = grid_doubles(&h->grid) * sizeof(double);
    double *grid[2] = {(double *)(void *)h->window.base,
                       (double *)(void *)(h->window.base + bytes)};
    for (int i = 0; i < WARM_UP + iterations; i++) {
        if (h->sync == SYNC_LOCK) {
            /* The stores of the last sweep come before what the neighbours put. */
            MPI_Win_sync(h->window.win);
        }
        double start = bench_now();
        exchange(h, (size_t)(i % 2) * bytes);
        if (i >= WARM_UP) {
            seconds[i - WARM_UP] = bench_now() - start;
        }
        grid_sweep(&h->grid, grid[i % 2], grid[(i + 1) % 2]);
    }
}

/* ---- Checking -------------------------------------------------------------------------------- */

static void block_origin(const halo_t *h, int rank, int origin[GRID_DIMS])
{
    int coords[GRID_DIMS], cart_dim = 0;
    MPI_Cart_coords(h->comm, rank, GRID_DIMS, coords);
    for (int d = 0; d < GRID_DIMS; d++) {
        origin[d] = grid_uses(&h->grid, d) ? coords[cart_dim++] * h->grid.n[d] : 0;
    }
}

/** The whole grid after so many iterations, computed by this rank alone; to be freed. */
static double *serial_result(const halo_t *h, grid_t *whole_p, int iterations)
{
    static const int origin[GRID_DIMS];
    int n[GRID_DIMS], dims = grid_uses(&h->grid, GRID_Z) ? 3 : 2;
    for (int d = 0; d < GRID_DIMS; d++) {
        n[d] = h->grid.n[d] * h->procs[d];
    }
    *whole_p = grid_make(dims, n, h->grid.fields);
    double *now = bench_alloc(grid_doubles(whole_p) * sizeof(*now));
    double *next = bench_alloc(grid_doubles(whole_p) * sizeof(*next));
    grid_init(whole_p, now, origin);
    for (int i = 0; i < iterations; i++) {
        grid_wrap(whole_p, now);
        grid_sweep(whole_p, now, next);
        double *swap = now;
        now = next;
        next = swap;
    }
    free(next);
    return now;
}

/** Rank 0 compares every rank's block with the serial result. Returns the differences there. */
static size_t check(halo_t *h, int iterations)
{
    size_t doubles = grid_doubles(&h->grid), different = 0;
    double *mine = (double *)(void *)h->window.base + (size_t)(iterations % 2) * doubles;
    if (h->rank != 0) {
        MPI_Send(mine, (int)doubles, MPI_DOUBLE, 0, TAG_BLOCK, h->comm);
        return 0;
    }
    grid_t whole_grid;
    double *whole = serial_result(h, &whole_grid, iterations);
    double *block = bench_alloc(doubles * sizeof(*block));
    memcpy(block, mine, doubles * sizeof(*block));
    for (int r = 0; r < h->ranks; r++) {
        int origin[GRID_DIMS];
        if (r > 0) {
            MPI_Recv(block, (int)doubles, MPI_DOUBLE, r, TAG_BLOCK, h->comm, MPI_STATUS_IGNORE);
        }
        block_origin(h, r, origin);
        different += grid_differences(&h->grid, block, &whole_grid, whole, origin);
    }
    free(whole);
    free(block);
    return different;
}

/* ---- One case -------------------------------------------------------------------------------- */

typedef struct result {
    double exchange, iteration; /* seconds; medians over iterations, the slowest rank of each */
    double line_ns;
    size_t bytes, different;
} result_t;

static void measure(halo_t *h, const options_t *o, bench_line_t *line, result_t *r)
{
    double *seconds = bench_alloc((size_t)o->iterations * sizeof(*seconds));
    if (h->sync == SYNC_LOCK) {
        MPI_Win_lock_all(MPI_MODE_NOCHECK, h->window.win);
    }
    r->line_ns = bench_line_ns(line);
    MPI_Barrier(h->comm);
    double start = bench_now();
    iterate(h, o->iterations, seconds);
    r->iteration = (bench_now() - start) / (WARM_UP + o->iterations);
    if (h->sync == SYNC_LOCK) {
        MPI_Win_unlock_all(h->window.win);
    }
    r->line_ns = 0.5 * (r->line_ns + bench_line_ns(line));
    const void *send = h->rank == 0 ? MPI_IN_PLACE : seconds;
    MPI_Reduce(send, seconds, o->iterations, MPI_DOUBLE, MPI_MAX, 0, h->comm);
    r->exchange = bench_median(seconds, o->iterations);
    r->bytes = h->face_bytes;
    r->different = check(h, WARM_UP + o->iterations);
    free(seconds);
}

static void report(const halo_t *h, const char *types, bench_json_t *json, const result_t *r)
{
    int dims = grid_uses(&h->grid, GRID_Z) ? 3 : 2;
    const char *window = bench_window_names[h->window.kind], *sync = sync_names[h->sync];
    double mbps = 1e-6 * (double)r->bytes / r->exchange;
    printf("%dd  %-9s %-6s %-9s %6d %8.1f %12.1f %12.1f %10.1f %8.0f  %s\n", dims, window, sync,
           types, h->ranks, (double)r->bytes / 1024, 1e6 * r->iteration, 1e6 * r->exchange, mbps,
           r->line_ns, r->different ? "WRONG" : "ok");
    fflush(stdout);
    bench_json_begin(json);
    bench_json_num(json, "dims", dims);
    bench_json_str(json, "window", window);
    bench_json_str(json, "sync", sync);
    bench_json_str(json, "types", types);
    bench_json_num(json, "ranks", h->ranks);
    bench_json_num(json, "cells", h->grid.n[GRID_X]);
    bench_json_num(json, "fields", h->grid.fields);
    bench_json_num(json, "halo_bytes", (double)r->bytes);
    bench_json_num(json, "iteration_seconds", r->iteration);
    bench_json_num(json, "seconds", r->exchange);
    bench_json_num(json, "mbps", mbps);
    bench_json_num(json, "line_ns", r->line_ns);
    bench_json_bool(json, "data_ok", r->different == 0);
    bench_json_end(json);
}

typedef struct run {
    const options_t *opt;
    bench_json_t *json;
    bench_line_t *line;
    int measured, wrong; /* on rank 0 */
} run_t;

static grid_t block_grid(int dims, const options_t *o)
{
    int n = o->cells > 0 ? o->cells : dims == 2 ? 1024 : 96;
    return grid_make(dims, (int[GRID_DIMS]){n, n, n}, o->fields);
}

/** Blocks of cells for each rank; x, whose faces are the hardest ones, is cut most often. */
static void decompose(halo_t *h, int dims, const options_t *o)
{
    int shape[GRID_DIMS] = {0}, periods[GRID_DIMS] = {1, 1, 1};
    MPI_Comm_size(MPI_COMM_WORLD, &h->ranks);
    MPI_Dims_create(h->ranks, dims, shape);
    int most = shape[0];
    shape[0] = shape[dims - 1];
    shape[dims - 1] = most;
    MPI_Cart_create(MPI_COMM_WORLD, dims, shape, periods, 0, &h->comm);
    MPI_Comm_set_errhandler(h->comm, MPI_ERRORS_RETURN);
    MPI_Comm_rank(h->comm, &h->rank);
    h->grid = block_grid(dims, o);
    for (int d = 0, cart_dim = 0; d < GRID_DIMS; d++) {
        h->procs[d] = grid_uses(&h->grid, d) ? shape[cart_dim++] : 1;
    }
}

static void run_case(halo_t *h, bench_window_kind_t kind, bool vectors, run_t *run)
{
    size_t bytes = grid_doubles(&h->grid) * sizeof(double);
    int origin[GRID_DIMS];
    result_t r;
    if (bench_window_open(kind, 2 * bytes, h->comm, &h->window) != 0) {
        return;
    }
    make_faces(h, vectors);
    h->neighbours = neighbour_group(h);
    block_origin(h, h->rank, origin);
    grid_init(&h->grid, (double *)(void *)h->window.base, origin);
    measure(h, run->opt, run->line, &r);
    if (h->rank == 0) {
        report(h, type_names[vectors], run->json, &r);
    }
    run->measured++;
    run->wrong += r.different != 0;
    MPI_Group_free(&h->neighbours);
    free_faces(h);
    bench_window_close(&h->window);
}

static void run_dims(int dims, run_t *run)
{
    const options_t *o = run->opt;
    halo_t h = {.faces = 0};
    decompose(&h, dims, o);
    for (int w = 0; w < o->windows.n; w++) {
        for (int s = 0; s < o->syncs.n; s++) {
            for (int t = 0; t < o->types.n; t++) {
                h.sync = (halo_sync_t)o->syncs.v[s];
                run_case(&h, (bench_window_kind_t)o->windows.v[w], o->types.v[t] != 0, run);
            }
        }
    }
    MPI_Comm_free(&h.comm);
}

/* ---- Main ------------------------------------------------------------------------------------ */

static int parse_option(int c, const char *text, options_t *o)
{
    switch (c) {
    case 'd':
        return bench_parse_names(text, dims_names, 2, &o->dims);
    case 'n':
        return bench_parse_int("-n", text, 1, 16384, &o->cells);
    case 'f':
        return bench_parse_int("-f", text, 1, 1024, &o->fields);
    case 'i':
        return bench_parse_int("-i", text, 1, 1000000, &o->iterations);
    case 'w':
        return bench_parse_names(text, bench_window_names, BENCH_WIN_KINDS, &o->windows);
    case 's':
        return bench_parse_names(text, sync_names, SYNCS, &o->syncs);
    case 'l':
        return bench_parse_names("lock", sync_names, SYNCS, &o->syncs);
    case 'T':
        return bench_parse_names(text, type_names, 2, &o->types);
    case 'j':
        o->json = text;
        return 0;
    default:
        return -1;
    }
}

static int parse_options(int argc, char **argv, options_t *o)
{
    *o = (options_t){.dims = {{0}, 1},
                     .windows = {{BENCH_WIN_CREATE}, 1},
                     .syncs = {{SYNC_FENCE}, 1},
                     .types = {{0}, 1},
                     .fields = 1,
                     .iterations = 50};
    for (int c; (c = getopt(argc, argv, "d:n:f:i:w:s:lT:j:h")) != -1;) {
        if (parse_option(c, optarg, o) != 0) {
            return -1;
        }
    }
    for (int i = 0; i < o->dims.n; i++) {
        grid_t block = block_grid(2 + (int)o->dims.v[i], o);
        if (grid_doubles(&block) > INT_MAX) {
            fprintf(stderr, "-n and -f: a block of more than %d doubles\n", INT_MAX);
            return -1;
        }
    }
    return optind == argc ? 0 : -1;
}

static int run_all(const options_t *o, int rank)
{
    run_t run = {.opt = o};
    int opened = rank == 0 ? bench_json_open(o->json, "halo_exchange", &run.json) : 0;
    MPI_Bcast(&opened, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (opened != 0) {
        return BENCH_EXIT_USAGE;
    }
    if (rank == 0) {
        printf("# halo exchange; 'halo' is what one rank puts in an iteration; times are the "
               "slowest rank's\n");
        printf("%-3s %-9s %-6s %-9s %6s %8s %12s %12s %10s %8s  %s\n", "#", "window", "sync",
               "types", "ranks", "halo KiB", "us/iteration", "us/exchange", "halo MB/s", "line ns",
               "data");
    }
    run.line = bench_line_open(MPI_COMM_WORLD);
    for (int i = 0; i < o->dims.n; i++) {
        run_dims(2 + (int)o->dims.v[i], &run);
    }
    bench_line_close(run.line);
    int rc = bench_json_close(run.json) != 0 ? BENCH_EXIT_USAGE
             : run.measured == 0             ? BENCH_EXIT_NO_CASE
             : run.wrong > 0                 ? BENCH_EXIT_WRONG_DATA
                                             : BENCH_EXIT_OK;
    MPI_Bcast(&rc, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return rc;
}

int main(int argc, char **argv)
{
    options_t options;
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    opterr = rank == 0;
    int rc = parse_options(argc, argv, &options);
    if (rc == 0) {
        rc = run_all(&options, rank);
    } else {
        fputs(rank == 0 ? usage : "", stderr);
        rc = BENCH_EXIT_USAGE;
    }
    MPI_Finalize();
    return rc;
}
