/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Strided puts and flushes to a target that computes and calls MPI now and then.
 *
 * Each put is timed by itself, and the origin computes for a random time between two of them: else
 * all would begin right after the target's last call. A component that needs the target's help
 * shows it in the median; one that needs it rarely, in the 95th percentile.
 */
#include <stdlib.h>
#include <unistd.h>

#include "perf/rma_test.h"

enum { BLOCK = 8, STRIDE = 16, WARM_UP = 5 };

typedef enum slice { SLICE_100US, SLICE_500US, SLICE_2MS, SLICES } slice_t;
static const char *const slice_names[SLICES] = {"100us", "500us", "2ms"};
static const double slice_seconds[SLICES] = {100e-6, 500e-6, 2e-3};

typedef struct options {
    bench_list_t slices, blocks, windows;
    int puts;
    int milliseconds;
    const char *json;
} options_t;

typedef struct run {
    const options_t *opt;
    bench_json_t *json; /* rank 0 only */
    bench_line_t *line;
    double *seconds;
    int measured, wrong;
} run_t;

static const char usage[] =
    "usage: mpirun -n 2 away [options]\n"
    "  -C LIST   what the target computes between two calls: 100us, 500us, 2ms (all)\n"
    "  -B LIST   blocks of 8 bytes in a put, every other one of both sides (1,64,512,4096)\n"
    "  -w LIST   windows: create, allocate, dynamic, shared (create)\n"
    "  -i N      puts that are timed (200)\n"
    "  -t MS     begin no other one of a case after so long (1000)\n"
    "  -j FILE   write the results as JSON\n";

static void report(const rma_test_t *t, slice_t slice, const run_t *run, int puts, double line_ns,
                   bool ok)
{
    const char *window = bench_window_names[t->window->kind];
    double blocks = (double)t->target.shape.count;
    double p95 = bench_percentile(run->seconds, puts, 0.95);
    double median = bench_median(run->seconds, puts);
    printf("%-8s %8.0f %-9s %11.2f %11.2f %8.0f  %s\n", slice_names[slice], blocks, window,
           1e6 * median, 1e6 * p95, line_ns, ok ? "ok" : "WRONG");
    fflush(stdout);
    bench_json_begin(run->json);
    bench_json_str(run->json, "slice", slice_names[slice]);
    bench_json_num(run->json, "blocks", blocks);
    bench_json_str(run->json, "window", window);
    bench_json_num(run->json, "puts", puts);
    bench_json_num(run->json, "size", blocks * BLOCK);
    bench_json_num(run->json, "seconds", median);
    bench_json_num(run->json, "p95_seconds", p95);
    bench_json_num(run->json, "line_ns", line_ns);
    bench_json_bool(run->json, "data_ok", ok);
    bench_json_end(run->json);
}

static void run_case(rma_test_t *t, slice_t slice, size_t blocks, run_t *run)
{
    t->slice = slice_seconds[slice];
    t->origin.shape = t->target.shape =
        (bench_shape_t){BLOCK, blocks == 1 ? BLOCK : STRIDE, blocks};
    double line_before = bench_line_ns(run->line);
    rma_test_begin(t);
    double limit = 1e-3 * run->opt->milliseconds;
    rma_sample(t, t->slice / 2, limit / 10, run->seconds, WARM_UP);
    int puts = rma_sample(t, t->slice / 2, limit, run->seconds, run->opt->puts);
    double line_ns = 0.5 * (line_before + bench_line_ns(run->line));
    bool ok = rma_check(t) == 0;
    rma_test_end(t);
    run->measured++;
    run->wrong += !ok;
    if (t->rank == 0)
        report(t, slice, run, puts, line_ns, ok);
}

static void run_window(rma_test_t *t, run_t *run)
{
    const options_t *o = run->opt;
    rma_epoch_open(t);
    for (int c = 0; c < o->slices.n; c++)
        for (int b = 0; b < o->blocks.n; b++)
            run_case(t, (slice_t)o->slices.v[c], o->blocks.v[b], run);
    rma_epoch_close(t);
}

static int run_all(const options_t *o, MPI_Comm comm, int rank)
{
    run_t run = {.opt = o};
    size_t bytes = 0;
    int opened = rank == 0 ? bench_json_open(o->json, "away", &run.json) : 0;
    MPI_Bcast(&opened, 1, MPI_INT, 0, comm);
    if (opened != 0)
        return BENCH_EXIT_USAGE;
    for (int b = 0; b < o->blocks.n; b++)
        bytes = o->blocks.v[b] * STRIDE > bytes ? o->blocks.v[b] * STRIDE : bytes;
    rma_test_t t = {.comm = comm,
                    .rank = rank,
                    .op = RMA_PUT,
                    .sync = RMA_SYNC_FLUSH,
                    .target_computes = true,
                    .burst = 1,
                    .local = bench_alloc(bytes)};
    run.seconds = bench_alloc((size_t)(o->puts > WARM_UP ? o->puts : WARM_UP) * sizeof(double));
    if (rank == 0) {
        printf("# the time of a put and a flush while the target computes\n");
        printf("%-8s %8s %-9s %11s %11s %8s  %s\n", "# away", "blocks", "window", "median us",
               "95 % us", "line ns", "data");
    }
    run.line = bench_line_open(comm);
    for (int w = 0; w < o->windows.n; w++) {
        bench_window_t window;
        if (bench_window_open((bench_window_kind_t)o->windows.v[w], bytes, comm, &window) == 0) {
            t.window = &window;
            run_window(&t, &run);
            bench_window_close(&window);
        }
    }
    bench_line_close(run.line);
    free(run.seconds);
    free(t.local);
    int written = bench_json_close(run.json);
    MPI_Bcast(&written, 1, MPI_INT, 0, comm);
    return run.wrong           ? BENCH_EXIT_WRONG_DATA
           : run.measured == 0 ? BENCH_EXIT_NO_CASE
           : written != 0      ? BENCH_EXIT_USAGE
                               : BENCH_EXIT_OK;
}

/* ---- Main ------------------------------------------------------------------------------------ */

static int parse_option(int c, const char *text, options_t *o)
{
    switch (c) {
    case 'C':
        return bench_parse_names(text, slice_names, SLICES, &o->slices);
    case 'B':
        return bench_parse_sizes(text, NULL, &o->blocks);
    case 'w':
        return bench_parse_names(text, bench_window_names, BENCH_WIN_KINDS, &o->windows);
    case 'i':
        return bench_parse_int("-i", text, 1, 1000000, &o->puts);
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
    *o = (options_t){.slices = {{SLICE_100US, SLICE_500US, SLICE_2MS}, 3},
                     .blocks = {{1, 64, 512, 4096}, 4},
                     .windows = {{BENCH_WIN_CREATE}, 1},
                     .puts = 200,
                     .milliseconds = 1000};
    for (int c; (c = getopt(argc, argv, "C:B:w:i:t:j:h")) != -1;)
        if (parse_option(c, optarg, o) != 0)
            return -1;
    for (int i = 0; i < o->blocks.n; i++) {
        if (o->blocks.v[i] > 1 << 26) {
            fprintf(stderr, "-B: %zu is more than %d\n", o->blocks.v[i], 1 << 26);
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
