/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Each contiguous operation of each size with each synchronisation on each kind of window, between
 * two ranks: one cell of a large table for each combination.
 *
 * For each operation all synchronisations follow each other, and windows vary slowest, in the order
 * given: if an operation crashes a component, earlier results are kept.
 */
#include <stdlib.h>
#include <unistd.h>

#include "perf/rma_test.h"

enum { MANY = 64, FEW = 16, LARGE = 1 << 20 };

typedef enum op { PUT, GET, ACC, GACC, PUT_MANY, GET_MANY, FOP, CAS, OPS } op_t;
static const char *const op_names[OPS] = {"put",    "get",    "acc", "gacc",
                                          "puts64", "gets64", "fop", "cas"};
static const rma_op_t rma_ops[OPS] = {RMA_PUT, RMA_GET, RMA_ACC,     RMA_GACC,
                                      RMA_PUT, RMA_GET, RMA_FOP_LAT, RMA_CAS_LAT};

typedef struct options {
    bench_list_t windows, ops, sizes, syncs;
    int milliseconds;
    const char *json;
} options_t;

static const char usage[] =
    "usage: mpirun -n 2 cells [options]\n"
    "  -o LIST   operations before each synchronisation: put, get, acc, gacc, fop, cas: one;\n"
    "            puts64, gets64: 64, or 16 from 1M on (all)\n"
    "  -m LIST   bytes of an operation, multiples of 8; fop and cas have 8 only (8,1K,64K,1M)\n"
    "  -s LIST   synchronisation: fence, pscw, lock (and unlock), flush (all)\n"
    "  -w LIST   windows: create, allocate, dynamic, shared (create,dynamic,allocate)\n"
    "  -t MS     time for each measurement (10)\n"
    "  -j FILE   write the results as JSON\n";

/* ---- One cell -------------------------------------------------------------------------------- */

static int burst_of(op_t op, size_t size)
{
    return op != PUT_MANY && op != GET_MANY ? 1 : size >= LARGE ? FEW : MANY;
}

static bool exists(op_t op, size_t size)
{
    return !rma_op_is_latency(rma_ops[op]) || size == sizeof(int64_t);
}

static void report(const rma_test_t *t, op_t op, size_t size, double seconds, double line_ns,
                   bool ok, bench_json_t *json)
{
    char text[24];
    const char *window = bench_window_names[t->window->kind], *sync = rma_sync_names[t->sync];
    printf("%-8s %6s %-6s %-9s %11.3f %8.0f  %s\n", op_names[op], bench_size_text(size, text), sync,
           window, 1e6 * seconds, line_ns, ok ? "ok" : "WRONG");
    fflush(stdout);
    bench_json_begin(json);
    bench_json_str(json, "window", window);
    bench_json_str(json, "op", op_names[op]);
    bench_json_str(json, "sync", sync);
    bench_json_num(json, "size", (double)size);
    bench_json_num(json, "burst", t->burst);
    bench_json_num(json, "seconds", seconds);
    bench_json_num(json, "line_ns", line_ns);
    bench_json_bool(json, "data_ok", ok);
    bench_json_end(json);
}

static void run_cell(rma_test_t *t, op_t op, size_t size, bench_run_t *run)
{
    t->op = rma_ops[op];
    t->burst = burst_of(op, size);
    t->origin.shape = t->target.shape = (bench_shape_t){size, size, 1};
    double line_before = bench_line_ns(run->line);
    rma_epoch_open(t);
    rma_test_begin(t);
    rma_time_t time = rma_measure(t, false);
    double line_ns = 0.5 * (line_before + bench_line_ns(run->line));
    bool ok = rma_check(t) == 0;
    rma_test_end(t);
    rma_epoch_close(t);
    run->measured++;
    run->wrong += !ok;
    if (t->rank == 0)
        report(t, op, size, time.median, line_ns, ok, run->json);
}

/* ---- The table ------------------------------------------------------------------------------- */

static void run_window(rma_test_t *t, const options_t *o, bench_run_t *run)
{
    for (int i = 0; i < o->ops.n; i++) {
        op_t op = (op_t)o->ops.v[i];
        for (int m = 0; m < o->sizes.n; m++) {
            for (int s = 0; s < o->syncs.n && exists(op, o->sizes.v[m]); s++) {
                t->sync = (rma_sync_t)o->syncs.v[s];
                run_cell(t, op, o->sizes.v[m], run);
            }
        }
    }
}

/** Bytes of the largest burst and of the other buffers of an atomic operation. */
static size_t most_bytes(const options_t *o)
{
    size_t most = (MANY + 2) * sizeof(int64_t);
    for (int i = 0; i < o->ops.n; i++) {
        for (int m = 0; m < o->sizes.n; m++) {
            size_t bytes = o->sizes.v[m] * (size_t)burst_of((op_t)o->ops.v[i], o->sizes.v[m]);
            most = bytes > most ? bytes : most;
        }
    }
    return most;
}

static int run_all(const options_t *o, MPI_Comm comm, int rank)
{
    bench_run_t run;
    size_t bytes = most_bytes(o);
    if (bench_run_open(&run, comm, o->json, "cells") != 0)
        return BENCH_EXIT_USAGE;
    rma_test_t t = {.comm = comm,
                    .rank = rank,
                    .budget = 1e-3 * o->milliseconds,
                    .local = bench_alloc(bytes),
                    .results = bench_alloc(bytes)};
    if (rank == 0) {
        printf("%-8s %6s %-6s %-9s %11s %8s  %s\n", "# op", "size", "sync", "window", "us",
               "line ns", "data");
    }
    for (int w = 0; w < o->windows.n; w++) {
        bench_window_t window;
        if (bench_window_open((bench_window_kind_t)o->windows.v[w], bytes, comm, &window) == 0) {
            t.window = &window;
            run_window(&t, o, &run);
            bench_window_close(&window);
        }
    }
    free(t.local);
    free(t.results);
    return bench_run_close(&run);
}

/* ---- Main ------------------------------------------------------------------------------------ */

static int parse_option(int c, const char *text, options_t *o)
{
    switch (c) {
    case 'o':
        return bench_parse_names(text, op_names, OPS, &o->ops);
    case 'm':
        return bench_parse_sizes(text, NULL, &o->sizes);
    case 's':
        return bench_parse_names(text, rma_sync_names, RMA_SYNCS, &o->syncs);
    case 'w':
        return bench_parse_names(text, bench_window_names, BENCH_WIN_KINDS, &o->windows);
    case 't':
        return bench_parse_int("-t", text, 1, 60000, &o->milliseconds);
    case 'j':
        o->json = text;
        return 0;
    default:
        return -1;
    }
}

static int parse_options(int argc, char **argv, options_t *o)
{
    *o = (options_t){.windows = {{BENCH_WIN_CREATE, BENCH_WIN_DYNAMIC, BENCH_WIN_ALLOCATE}, 3},
                     .ops = {{PUT, GET, ACC, GACC, PUT_MANY, GET_MANY, FOP, CAS}, OPS},
                     .sizes = {{8, 1024, 65536, 1048576}, 4},
                     .syncs = {{RMA_SYNC_FENCE, RMA_SYNC_PSCW, RMA_SYNC_LOCK, RMA_SYNC_FLUSH}, 4},
                     .milliseconds = 10};
    for (int c; (c = getopt(argc, argv, "o:m:s:w:t:j:h")) != -1;)
        if (parse_option(c, optarg, o) != 0)
            return -1;
    for (int i = 0; i < o->sizes.n; i++) {
        if (o->sizes.v[i] % sizeof(double) != 0 || o->sizes.v[i] > 1 << 30) {
            fprintf(stderr, "-m: %zu is not a multiple of 8 up to 1G\n", o->sizes.v[i]);
            return -1;
        }
    }
    return optind == argc ? 0 : -1;
}

int main(int argc, char **argv)
{
    options_t options;
    MPI_Comm comm;
    int rank, ranks, rc = BENCH_EXIT_USAGE;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    opterr = rank == 0;
    if (parse_options(argc, argv, &options) == 0 && ranks == 2) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
        rc = run_all(&options, comm, rank);
        MPI_Comm_free(&comm);
    } else {
        fputs(rank == 0 ? usage : "", stderr);
    }
    MPI_Finalize();
    return rc;
}
