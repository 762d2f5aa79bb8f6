/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Puts and flushes to a target that computes and calls MPI now and then: how much the target delays
 * the puts, and how much the puts delay the target.
 *
 * Each put is timed separately, and the origin computes for a random time between two puts:
 * otherwise all would begin right after the target's last call. A component that needs the target's
 * help shows it in the median; one that needs it rarely, in the 95th percentile. With puts in
 * immediate succession (-p none) the result is how much longer the target's work takes than while
 * the origin only computes: processor time of a helper or the kernel, its own MPI calls, caches,
 * and memory.
 */
#include <stdlib.h>
#include <unistd.h>

#include "perf/rma_test.h"

enum { WARM_UP = 5 };

typedef enum slice { SLICE_100US, SLICE_500US, SLICE_2MS, SLICES } slice_t;
static const char *const slice_names[SLICES] = {"100us", "500us", "2ms"};
static const double slice_seconds[SLICES] = {100e-6, 500e-6, 2e-3};
typedef enum rest { REST_NONE, REST_RANDOM, RESTS } rest_t;
static const char *const rest_names[RESTS] = {"none", "random"};

typedef struct options {
    bench_list_t slices, sizes, blocks, windows, rest;
    int puts;
    int milliseconds;
    const char *json;
} options_t;

static const char usage[] =
    "usage: mpirun -n 2 away [options]\n"
    "  -C LIST   what the target computes between two calls: 100us, 500us, 2ms (all)\n"
    "  -m LIST   bytes of a put (8,512,4K,32K)\n"
    "  -b LIST   bytes of a block, every other one of both sides, or contig (8)\n"
    "  -w LIST   windows: create, allocate, dynamic, shared (create)\n"
    "  -p REST   between two puts the origin computes: none; random, half a slice on average\n"
    "            (random)\n"
    "  -i N      puts that are timed (200)\n"
    "  -t MS     begin no other one of a case after so long (1000)\n"
    "  -j FILE   write the results as JSON\n";

static void report(const rma_test_t *t, slice_t slice, const bench_run_t *run, double *seconds,
                   int puts, double burden, double line_ns, bool ok)
{
    const char *window = bench_window_names[t->window->kind];
    const size_t size = bench_shape_size(&t->target.shape), block = t->target.shape.block;
    char text[2][24];
    double p95 = bench_percentile(seconds, puts, 0.95);
    double median = bench_median(seconds, puts);

    printf("%-8s %8s %8s %-9s %11.2f %11.2f %8.2f %8.0f  %s\n", slice_names[slice],
           bench_size_text(size, text[0]),
           block < size ? bench_size_text(block, text[1]) : "contig", window, 1e6 * median,
           1e6 * p95, burden, line_ns, ok ? "ok" : "WRONG");
    fflush(stdout);
    bench_json_begin(run->json);
    bench_json_str(run->json, "slice", slice_names[slice]);
    bench_json_num(run->json, "size", (double)size);
    bench_json_num(run->json, "block", block < size ? (double)block : 0);
    bench_json_str(run->json, "window", window);
    bench_json_num(run->json, "puts", puts);
    bench_json_num(run->json, "seconds", median);
    bench_json_num(run->json, "p95_seconds", p95);
    /* The time that a millisecond of the target's work takes. */
    bench_json_num(run->json, "target_seconds", 1e-3 * burden);
    bench_json_num(run->json, "line_ns", line_ns);
    bench_json_bool(run->json, "data_ok", ok);
    bench_json_end(run->json);
}

static void run_case(rma_test_t *t, const options_t *o, slice_t slice, double *seconds,
                     bench_run_t *run)
{
    const double rest = o->rest.v[0] == REST_NONE ? 0 : slice_seconds[slice] / 2;
    const double limit = 1e-3 * o->milliseconds, line_before = bench_line_ns(run->line);

    t->slice = slice_seconds[slice];
    rma_test_begin(t);
    rma_sample(t, rest, limit / 10, seconds, WARM_UP);
    rma_rest(t, limit / 2);
    double unit = t->unit;
    const int puts = rma_sample(t, rest, limit, seconds, o->puts);
    const double with_puts = t->unit;
    rma_rest(t, limit / 2);
    unit = 0.5 * (unit + t->unit);
    const double line_ns = 0.5 * (line_before + bench_line_ns(run->line));
    const bool ok = rma_check(t) == 0;
    rma_test_end(t);
    run->measured++;
    run->wrong += !ok;
    if (t->rank == 0)
        report(t, slice, run, seconds, puts, with_puts / unit, line_ns, ok);
}

static void run_window(rma_test_t *t, const options_t *o, double *seconds, bench_run_t *run)
{
    rma_epoch_open(t);
    for (int c = 0; c < o->slices.n; c++)
        for (int m = 0; m < o->sizes.n; m++)
            for (int b = 0; b < o->blocks.n; b++) {
                const size_t size = o->sizes.v[m], block = o->blocks.v[b];
                const bool whole = block == 0 || block >= size;

                t->origin.shape = t->target.shape =
                    whole ? (bench_shape_t){size, size, 1}
                          : (bench_shape_t){block, 2 * block, size / block};
                run_case(t, o, (slice_t)o->slices.v[c], seconds, run);
            }
    rma_epoch_close(t);
}

static int run_all(const options_t *o, MPI_Comm comm)
{
    bench_run_t run;
    size_t bytes = 0;

    if (bench_run_open(&run, comm, o->json, "away") != 0)
        return BENCH_EXIT_USAGE;
    for (int m = 0; m < o->sizes.n; m++)
        bytes = 2 * o->sizes.v[m] > bytes ? 2 * o->sizes.v[m] : bytes;
    rma_test_t t = {.comm = comm,
                    .op = RMA_PUT,
                    .sync = RMA_SYNC_FLUSH,
                    .target_computes = true,
                    .burst = 1,
                    .local = bench_alloc(bytes)};
    double *seconds = bench_alloc((size_t)(o->puts > WARM_UP ? o->puts : WARM_UP) * sizeof(double));
    MPI_Comm_rank(comm, &t.rank);
    if (t.rank == 0)
        printf(
            "# a put and a flush while the target computes, and how many times as long that takes\n"
            "%-8s %8s %8s %-9s %11s %11s %8s %8s  %s\n",
            "# away", "size", "block", "window", "median us", "95 % us", "target", "line ns",
            "data");
    for (int w = 0; w < o->windows.n; w++) {
        bench_window_t window;
        if (bench_window_open((bench_window_kind_t)o->windows.v[w], bytes, comm, &window) == 0) {
            t.window = &window;
            run_window(&t, o, seconds, &run);
            bench_window_close(&window);
        }
    }
    free(seconds);
    free(t.local);
    return bench_run_close(&run);
}

/* ---- Main ------------------------------------------------------------------------------------ */

static int parse_option(int c, const char *text, options_t *o)
{
    switch (c) {
    case 'C':
        return bench_parse_names(text, slice_names, SLICES, &o->slices);
    case 'm':
        return bench_parse_sizes(text, NULL, &o->sizes);
    case 'b':
        return bench_parse_sizes(text, "contig", &o->blocks);
    case 'w':
        return bench_parse_names(text, bench_window_names, BENCH_WIN_KINDS, &o->windows);
    case 'p':
        return bench_parse_names(text, rest_names, RESTS, &o->rest);
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
                     .sizes = {{8, 512, 4096, 32768}, 4},
                     .blocks = {{8}, 1},
                     .windows = {{BENCH_WIN_CREATE}, 1},
                     .rest = {{REST_RANDOM}, 1},
                     .puts = 200,
                     .milliseconds = 1000};
    for (int c; (c = getopt(argc, argv, "C:m:b:w:p:i:t:j:h")) != -1;)
        if (parse_option(c, optarg, o) != 0)
            return -1;
    for (int i = 0; i < o->sizes.n; i++)
        if (o->sizes.v[i] > 1 << 28 || o->sizes.v[i] % 8 != 0) {
            fprintf(stderr, "-m: %zu is no multiple of 8 up to 256M\n", o->sizes.v[i]);
            return -1;
        }
    for (int i = 0; i < o->blocks.n; i++)
        for (int m = 0; m < o->sizes.n; m++)
            if (o->blocks.v[i] % 8 != 0 || (o->blocks.v[i] > 0 && o->blocks.v[i] < o->sizes.v[m] &&
                                            o->sizes.v[m] % o->blocks.v[i] != 0)) {
                fprintf(stderr, "-b: %zu is no multiple of 8 that divides -m\n", o->blocks.v[i]);
                return -1;
            }
    return optind == argc && o->rest.n == 1 ? 0 : -1;
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
        rc = run_all(&options, comm);
        MPI_Comm_free(&comm);
    } else {
        fputs(rank == 0 ? usage : "", stderr);
    }
    MPI_Finalize();
    return rc;
}
