/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Strided one-sided communication between two ranks, beside an in-process copy of the same shape.
 *
 * A plain MPI program: mpirun's command line decides which component moves the data. Each
 * measurement is short, so that runs with different components can alternate; perf/compare does
 * that.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "perf/rma_test.h"

typedef enum layout { LAYOUT_BOTH, LAYOUT_ORIGIN, LAYOUT_TARGET, LAYOUTS } layout_t;
static const char *const layout_names[LAYOUTS] = {"both", "origin", "target"};

static const char contiguous_name[] = "contig";

typedef struct options {
    bench_list_t sizes, blocks, windows, ops;
    rma_sync_t sync;
    layout_t layout;
    int stride_factor;
    int milliseconds;
    int slice_us;
    int burst;
    bool reads;
    bool target_computes;
    const char *json;
    size_t extent;       /* bytes that the largest operation spans on a side */
    size_t burst_extent; /* bytes that the largest burst spans */
} options_t;

typedef struct report {
    const options_t *opt;
    bench_json_t *json; /* rank 0 only */
    bench_line_t *line;
    int measured;
    int wrong;
} report_t;

static const char usage[] =
    "usage: mpirun -n 2 strided_rma [options]\n"
    "  -m LIST   bytes of data in each operation (64K,1M)\n"
    "  -b LIST   bytes of a block, multiples of 4, or contig (8,64,512,4096,contig)\n"
    "  -S N      stride in blocks (2)\n"
    "  -L SIDE   which side is strided: both, origin, target (both)\n"
    "  -w LIST   windows: create, allocate, dynamic, shared (allocate)\n"
    "  -o LIST   operations: put, get, acc, gacc, put_typeloop, get_typeloop,\n"
    "            acc_typeloop, put_lat, get_lat, acc_lat, fop_lat, cas_lat (put,get)\n"
    "  -s SYNC   flush (in lock_all), fence, pscw, or lock (and unlock), for each operation or -N\n"
    "            of them (flush)\n"
    "  -N N      operations between two synchronisations, each in a place of its own (1)\n"
    "  -t MS     time for each measurement (30)\n"
    "  -r        measure also with the receiving side reading what arrived (flush or fence)\n"
    "  -c        the target computes instead of waiting in MPI (flush only, not with -r)\n"
    "  -C USEC   time the target computes between two calls into MPI (1000)\n"
    "  -j FILE   write the results as JSON\n";

/* ---- Options --------------------------------------------------------------------------------- */

static int parse_one(const char *text, const char *const *names, int n, int *index_p)
{
    bench_list_t list;
    if (bench_parse_names(text, names, n, &list) != 0 || list.n != 1)
        return -1;
    *index_p = (int)list.v[0];
    return 0;
}

static int parse_option(int c, const char *text, options_t *o)
{
    int index = 0, rc = 0;
    switch (c) {
    case 'm':
        return bench_parse_sizes(text, NULL, &o->sizes);
    case 'b':
        return bench_parse_sizes(text, contiguous_name, &o->blocks);
    case 'w':
        return bench_parse_names(text, bench_window_names, BENCH_WIN_KINDS, &o->windows);
    case 'o':
        return bench_parse_names(text, rma_op_names, RMA_OPS, &o->ops);
    case 's':
        rc = parse_one(text, rma_sync_names, RMA_SYNCS, &index);
        o->sync = (rma_sync_t)index;
        return rc;
    case 'L':
        rc = parse_one(text, layout_names, LAYOUTS, &index);
        o->layout = (layout_t)index;
        return rc;
    case 'S':
        return bench_parse_int("-S", text, 1, 1 << 20, &o->stride_factor);
    case 't':
        return bench_parse_int("-t", text, 1, 60000, &o->milliseconds);
    case 'N':
        return bench_parse_int("-N", text, 1, 1000000, &o->burst);
    case 'C':
        return bench_parse_int("-C", text, 1, 10000000, &o->slice_us);
    case 'r':
        o->reads = true;
        return 0;
    case 'c':
        o->target_computes = true;
        return 0;
    case 'j':
        o->json = text;
        return 0;
    default:
        return -1;
    }
}

/** False if no memory is that large. Sizes matter only for operations that have one. */
static bool find_extents(options_t *o)
{
    bool sized = false;
    o->extent = 4 * sizeof(int64_t);
    for (int i = 0; i < o->ops.n; i++)
        sized = sized || !rma_op_is_latency((rma_op_t)o->ops.v[i]);
    for (int m = 0; sized && m < o->sizes.n; m++) {
        size_t extent;
        if (__builtin_mul_overflow(o->sizes.v[m], (size_t)o->stride_factor, &extent))
            return false;
        o->extent = extent > o->extent ? extent : o->extent;
    }
    return !__builtin_mul_overflow(o->extent, (size_t)o->burst, &o->burst_extent) &&
           o->burst_extent <= PTRDIFF_MAX;
}

static int parse_options(int argc, char **argv, options_t *o)
{
    *o = (options_t){.sizes = {{65536, 1048576}, 2},
                     .blocks = {{8, 64, 512, 4096, 0}, 5},
                     .windows = {{BENCH_WIN_ALLOCATE}, 1},
                     .ops = {{RMA_PUT, RMA_GET}, 2},
                     .stride_factor = 2,
                     .milliseconds = 30,
                     .slice_us = 1000,
                     .burst = 1};
    for (int c; (c = getopt(argc, argv, "m:b:S:L:w:o:s:N:t:rcC:j:h")) != -1;)
        if (parse_option(c, optarg, o) != 0)
            return -1;
    if (o->target_computes && (o->reads || o->sync != RMA_SYNC_FLUSH)) {
        fprintf(stderr, "-c goes with neither -r nor another -s than flush\n");
        return -1;
    }
    if (o->reads && o->sync != RMA_SYNC_FLUSH && o->sync != RMA_SYNC_FENCE) {
        fprintf(stderr, "-r goes with -s flush and -s fence only\n");
        return -1;
    }
    for (int i = 0; i < o->blocks.n; i++) {
        if (o->blocks.v[i] % sizeof(float) != 0) {
            fprintf(stderr, "blocks must be multiples of %zu bytes\n", sizeof(float));
            return -1;
        }
    }
    if (!find_extents(o)) {
        fprintf(stderr, "-m times -S times -N is more than any memory\n");
        return -1;
    }
    return optind == argc ? 0 : -1;
}

/* ---- Cases ----------------------------------------------------------------------------------- */

static bench_shape_t make_shape(size_t size, size_t block, bool strided, int factor)
{
    return (bench_shape_t){block, strided ? block * (size_t)factor : block, size / block};
}

/** Sets both sides; false if the size cannot be divided into such blocks. */
static bool set_shapes(const options_t *o, size_t size, size_t block, rma_test_t *t)
{
    block = block == 0 ? size : block;
    if (size % block != 0 || size % sizeof(float) != 0 || size / sizeof(float) > INT32_MAX)
        return false;
    bool strided = size != block;
    t->origin.shape =
        make_shape(size, block, strided && o->layout != LAYOUT_TARGET, o->stride_factor);
    t->target.shape =
        make_shape(size, block, strided && o->layout != LAYOUT_ORIGIN, o->stride_factor);
    return true;
}

/* ---- Output ---------------------------------------------------------------------------------- */

typedef struct result {
    rma_time_t time, read_time, copy, read_copy;
    double line_ns;
    long errors;
} result_t;

static double mbps(size_t bytes, double seconds)
{
    return seconds > 0 ? 1e-6 * (double)bytes / seconds : NAN;
}

static void print_header(const options_t *o, const char *window)
{
    printf("# ompi-nic strided RMA: window %s, sync %s, %s side(s) strided, stride %d blocks\n",
           window, rma_sync_names[o->sync], layout_names[o->layout], o->stride_factor);
    printf("# target %s; buffers touched before timing; MB = 10^6 bytes\n",
           o->target_computes ? "computes" : "waits in MPI");
    printf("# 'copy' is a plain loop in the origin's own memory; 'line' is one cache line, one "
           "way\n");
    printf("%-13s %6s %7s %10s %10s %7s", "# op", "size", "block", "MB/s", "copy MB/s", "ratio");
    if (o->reads)
        printf(" %10s %10s %7s", "read MB/s", "copy+read", "ratio");
    printf(" %11s %8s  %s\n", "us", "line ns", "data");
}

static void print_row(const options_t *o, const rma_test_t *t, size_t block, const result_t *r)
{
    char size_text[24], block_text[24];
    size_t size = bench_shape_size(&t->target.shape);
    printf("%-13s %6s %7s", rma_op_names[t->op], bench_size_text(size, size_text),
           block ? bench_size_text(block, block_text) : contiguous_name);
    if (rma_op_is_latency(t->op)) {
        printf(" %10s %10s %7s", "-", "-", "-");
    } else {
        printf(" %10.1f %10.1f %7.2f", mbps(size, r->time.median), mbps(size, r->copy.median),
               r->copy.median / r->time.median);
    }
    if (o->reads && rma_op_is_latency(t->op)) {
        printf(" %10s %10s %7s", "-", "-", "-");
    } else if (o->reads) {
        printf(" %10.1f %10.1f %7.2f", mbps(size, r->read_time.median),
               mbps(size, r->read_copy.median), r->read_copy.median / r->read_time.median);
    }
    printf(" %11.3f %8.0f  %s\n", 1e6 * r->time.median, r->line_ns, r->errors ? "WRONG" : "ok");
    fflush(stdout);
}

static void write_rates(bench_json_t *j, const options_t *o, size_t size, const result_t *r)
{
    bench_json_num(j, "mbps", mbps(size, r->time.median));
    bench_json_num(j, "copy_seconds", r->copy.median);
    bench_json_num(j, "copy_mbps", mbps(size, r->copy.median));
    if (o->reads) {
        bench_json_num(j, "read_seconds", r->read_time.median);
        bench_json_num(j, "read_mbps", mbps(size, r->read_time.median));
        bench_json_num(j, "copy_read_seconds", r->read_copy.median);
        bench_json_num(j, "copy_read_mbps", mbps(size, r->read_copy.median));
    }
}

static void write_result(bench_json_t *j, const options_t *o, const rma_test_t *t, size_t block,
                         const result_t *r)
{
    size_t size = bench_shape_size(&t->target.shape);
    bench_json_begin(j);
    bench_json_str(j, "window", bench_window_names[t->window->kind]);
    bench_json_str(j, "op", rma_op_names[t->op]);
    bench_json_str(j, "sync", rma_sync_names[o->sync]);
    bench_json_str(j, "layout", layout_names[o->layout]);
    bench_json_num(j, "size", (double)size);
    bench_json_num(j, "block", (double)block); /* 0 is contiguous */
    bench_json_num(j, "stride_factor", o->stride_factor);
    bench_json_bool(j, "target_computes", o->target_computes);
    bench_json_num(j, "burst", o->burst);
    bench_json_num(j, "seconds", r->time.median);
    bench_json_num(j, "best_seconds", r->time.best);
    if (!rma_op_is_latency(t->op))
        write_rates(j, o, size, r);
    bench_json_num(j, "line_ns", r->line_ns);
    bench_json_bool(j, "data_ok", r->errors == 0);
    bench_json_end(j);
}

/* ---- The sweep ------------------------------------------------------------------------------- */

/** Copies are measured next to the operations they are compared with, because machines drift. */
static void measure_case(rma_test_t *t, report_t *rep, result_t *r)
{
    bool copies = t->rank == 0 && !rma_op_is_latency(t->op);
    double line_before = bench_line_ns(rep->line);
    if (copies)
        r->copy = rma_measure_copy(t, false);
    r->time = rma_measure(t, false);
    if (rep->opt->reads && !rma_op_is_latency(t->op)) {
        r->read_time = rma_measure(t, true);
        if (copies)
            r->read_copy = rma_measure_copy(t, true);
    }
    r->line_ns = 0.5 * (line_before + bench_line_ns(rep->line));
}

static void run_case(rma_test_t *t, size_t block, report_t *rep)
{
    result_t r = {.errors = 0};
    rma_test_begin(t);
    measure_case(t, rep, &r);
    r.errors = rma_check(t);
    rma_test_end(t);
    rep->measured++;
    rep->wrong += r.errors != 0;
    if (t->rank == 0) {
        print_row(rep->opt, t, block, &r);
        write_result(rep->json, rep->opt, t, block, &r);
    }
}

static void run_latency(rma_test_t *t, report_t *rep)
{
    t->origin.shape = t->target.shape = (bench_shape_t){8, 8, 1};
    run_case(t, 8, rep);
}

static void run_bandwidth(rma_test_t *t, report_t *rep)
{
    const options_t *o = rep->opt;
    for (int m = 0; m < o->sizes.n; m++) {
        for (int b = 0; b < o->blocks.n; b++) {
            if (set_shapes(o, o->sizes.v[m], o->blocks.v[b], t)) {
                run_case(t, o->blocks.v[b], rep);
            } else if (t->rank == 0) {
                printf("# %zu bytes are not made of blocks of %zu\n", o->sizes.v[m],
                       o->blocks.v[b]);
            }
        }
    }
}

static void run_window(bench_window_kind_t kind, rma_test_t *t, report_t *rep)
{
    const options_t *o = rep->opt;
    bench_window_t window;
    if (bench_window_open(kind, o->burst_extent, t->comm, &window) != 0)
        return;
    if (t->rank == 0)
        print_header(o, bench_window_names[kind]);
    t->window = &window;
    rma_epoch_open(t);
    for (int i = 0; i < o->ops.n; i++) {
        t->op = (rma_op_t)o->ops.v[i];
        if (rma_op_is_latency(t->op))
            run_latency(t, rep);
        else
            run_bandwidth(t, rep);
    }
    rma_epoch_close(t);
    bench_window_close(&window);
}

static bool fetches(const options_t *o)
{
    for (int i = 0; i < o->ops.n; i++)
        if (o->ops.v[i] == RMA_GACC)
            return true;
    return false;
}

static int run(const options_t *o, MPI_Comm comm, int rank)
{
    report_t rep = {.opt = o};
    int opened = rank == 0 ? bench_json_open(o->json, "strided_rma", &rep.json) : 0;
    MPI_Bcast(&opened, 1, MPI_INT, 0, comm);
    if (opened != 0)
        return BENCH_EXIT_USAGE;
    rma_test_t t = {.comm = comm,
                    .rank = rank,
                    .sync = o->sync,
                    .target_computes = o->target_computes,
                    .slice = 1e-6 * o->slice_us,
                    .burst = o->burst,
                    .budget = 1e-3 * o->milliseconds,
                    .local = bench_alloc(o->burst_extent),
                    .results = fetches(o) ? bench_alloc(o->burst_extent) : NULL,
                    .scratch = bench_alloc(o->extent)};
    rep.line = bench_line_open(comm);
    for (int i = 0; i < o->windows.n; i++)
        run_window((bench_window_kind_t)o->windows.v[i], &t, &rep);
    bench_line_close(rep.line);
    free(t.local);
    free(t.results);
    free(t.scratch);
    int written = bench_json_close(rep.json);
    MPI_Bcast(&written, 1, MPI_INT, 0, comm);
    return rep.wrong           ? BENCH_EXIT_WRONG_DATA
           : rep.measured == 0 ? BENCH_EXIT_NO_CASE
           : written != 0      ? BENCH_EXIT_USAGE
                               : BENCH_EXIT_OK;
}

int main(int argc, char **argv)
{
    options_t options;
    MPI_Comm comm;
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    opterr = rank == 0;
    int rc = parse_options(argc, argv, &options);
    if (rc != 0 || ranks != 2) {
        if (rank == 0)
            fputs(usage, stderr);
        MPI_Finalize();
        return BENCH_EXIT_USAGE;
    }
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    rc = run(&options, comm, rank);
    MPI_Comm_free(&comm);
    MPI_Finalize();
    return rc;
}
