/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Barriers: how long they take (median and 99th percentile), how far apart the ranks leave them,
 * and how much of a nonblocking one is hidden behind computing.
 *
 * Plain MPI: mpirun's command line decides which component does the barriers. If all ranks read the
 * same clock (one machine, even with several network namespaces), the program also checks that
 * nobody left before all had entered.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "perf/bench.h"

enum { BATCH = 32, WARM_UP = 300, MIN_CALLS = 200, MAX_CALLS = 200000 };

typedef enum op { OP_BARRIER, OP_IBARRIER, OP_OVERLAP, OP_LOOK, OP_FIRST, OP_FRESH, OPS } op_t;
static const char *const op_names[OPS] = {"barrier", "ibarrier", "overlap",
                                          "look",    "first",    "fresh"};

typedef struct options {
    bench_list_t ops;
    int msec;    /**< time of a measurement */
    int compute; /**< overlap, look: microseconds between MPI_Ibarrier and MPI_Wait */
    bool asleep; /**< the same: sleep meanwhile */
    const char *json;
} options_t;

static const char usage[] =
    "usage: mpirun -n RANKS barrier [options]\n"
    "  -o LIST   barrier: MPI_Barrier; ibarrier: MPI_Ibarrier and MPI_Wait; overlap: with\n"
    "            computing in between, of which only the time beyond it counts; look: the same, "
    "and\n"
    "            one MPI_Test before MPI_Wait: how often it is complete then; first: the first\n"
    "            barrier of a communicator made for it, by itself; fresh: all of MPI_Comm_dup, "
    "that\n"
    "            barrier and MPI_Comm_free (barrier,ibarrier)\n"
    "  -t MS     milliseconds of one measurement (30)\n"
    "  -c USEC   overlap, look: microseconds of computing (200)\n"
    "  -z        overlap, look: sleep instead, as if an accelerator computed; shows what is hidden "
    "where\n"
    "            there are more ranks than processors\n"
    "  -j FILE   write the results as JSON\n";

typedef struct bench {
    int rank, ranks;
    op_t op;
    double compute;
    bool asleep;
    bool one_clock;
    double complete; /**< look: number of barriers complete at MPI_Test */
} bench_t;

typedef struct result {
    double median, p99, skew, line_ns;
    double cpu;      /**< processor time of all ranks for a call, without computing */
    double hidden;   /**< overlap: the share of a nonblocking barrier hidden by computing, 0 .. 1 */
    double complete; /**< look: the share of barriers completed during computing, 0 .. 1 */
    bool ok;
} result_t;

/* ---- calls ----------------------------------------------------------------------------------- */

/** Returns the seconds that count as computing. Sleep is measured, since no sleep is exact. */
static double compute(const bench_t *b)
{
    if (b->compute <= 0)
        return 0;
    if (!b->asleep) {
        bench_compute(b->compute);
        return b->compute;
    }
    double start = bench_now();
    struct timespec time = {0, (long)(1e9 * b->compute)};
    nanosleep(&time, NULL);
    return bench_now() - start;
}

/** Processor time of this process. */
static double cpu_seconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/** Does a nonblocking barrier. Returns the seconds that count as computing. */
static double nonblocking(bench_t *b)
{
    MPI_Request request;
    int flag = 0;
    double before = bench_now(), together;
    /* Otherwise each rank might find the other a whole turn behind, and look just before it enters.
     */
    if (b->op == OP_LOOK)
        MPI_Barrier(MPI_COMM_WORLD);
    together = bench_now() - before;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    double computed = compute(b);
    if (b->op == OP_LOOK)
        MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    b->complete += flag;
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    return computed + together;
}

/** Does the first barrier of a communicator. Returns the seconds that do not belong to the barrier:
 *  for making the communicator on all ranks, and for freeing it. */
static double first(void)
{
    MPI_Comm comm;
    double start = bench_now();
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Barrier(MPI_COMM_WORLD);
    double entered = bench_now();
    MPI_Barrier(comm);
    double left = bench_now();
    MPI_Comm_free(&comm);
    return bench_now() - left + entered - start;
}

static double fresh(void)
{
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Barrier(comm);
    MPI_Comm_free(&comm);
    return 0;
}

/** Does one call. Returns the seconds in it that do not count. */
static double call(bench_t *b)
{
    switch (b->op) {
    case OP_BARRIER:
        MPI_Barrier(MPI_COMM_WORLD);
        return 0;
    case OP_FIRST:
        return first();
    case OP_FRESH:
        return fresh();
    default:
        return nonblocking(b);
    }
}

/** Seconds per call beyond computing: the median of batches of `n` calls. */
static double by_batches(bench_t *b, int n)
{
    int batches = (n + BATCH - 1) / BATCH;
    double *seconds = bench_alloc((size_t)batches * sizeof(*seconds));
    for (int i = 0; i < batches; i++) {
        double start = bench_now();
        double computed = 0;
        for (int k = 0; k < BATCH; k++)
            computed += call(b);
        seconds[i] = (bench_now() - start - computed) / BATCH;
    }
    double median = bench_median(seconds, batches);
    free(seconds);
    return median;
}

/** How many calls take about `seconds`; the same on all ranks. */
static int calibrate(bench_t *b, double seconds)
{
    for (int i = 0; i < WARM_UP; i++)
        call(b);
    double start = bench_now();
    by_batches(b, MIN_CALLS);
    double n = seconds * MIN_CALLS / (bench_now() - start);
    int calls = n < MIN_CALLS ? MIN_CALLS : n > MAX_CALLS ? MAX_CALLS : (int)n;
    MPI_Bcast(&calls, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return calls;
}

/* ---- one by one: 99th percentile, skew, check --------------------------------------------------
 */

static void reduce_to_0(const bench_t *b, double *v, int n, MPI_Op op)
{
    MPI_Reduce(b->rank == 0 ? MPI_IN_PLACE : v, v, n, MPI_DOUBLE, op, 0, MPI_COMM_WORLD);
}

/** Evaluates the times at which each rank entered and left; on rank 0. */
static void compare_ranks(const bench_t *b, double *entered, double *left, int n, result_t *r)
{
    double *last_left = bench_alloc((size_t)n * sizeof(*last_left));
    memcpy(last_left, left, (size_t)n * sizeof(*left));
    reduce_to_0(b, last_left, n, MPI_MAX);
    reduce_to_0(b, left, n, MPI_MIN);
    reduce_to_0(b, entered, n, MPI_MAX);
    for (int i = 0; b->rank == 0 && i < n; i++) {
        r->ok = r->ok && (!b->one_clock || left[i] >= entered[i]);
        last_left[i] -= left[i];
    }
    r->skew = b->one_clock ? bench_median(last_left, n) : NAN;
    free(last_left);
}

static void one_by_one(bench_t *b, int n, result_t *r)
{
    double *entered = bench_alloc((size_t)n * sizeof(*entered));
    double *left = bench_alloc((size_t)n * sizeof(*left));
    double *seconds = bench_alloc((size_t)n * sizeof(*seconds));
    const double before = cpu_seconds();
    b->complete = 0;
    for (int i = 0; i < n; i++) {
        entered[i] = bench_now();
        double computed = call(b);
        left[i] = bench_now();
        seconds[i] = left[i] - entered[i] - computed;
    }
    r->cpu = (cpu_seconds() - before) / n - (b->asleep ? 0 : b->compute);
    r->complete = b->op == OP_LOOK ? b->complete / n / b->ranks : NAN;
    reduce_to_0(b, &r->complete, 1, MPI_SUM);
    reduce_to_0(b, &r->cpu, 1, MPI_SUM);
    reduce_to_0(b, seconds, n, MPI_MAX);
    r->p99 = bench_percentile(seconds, n, 0.99);
    r->ok = true;
    compare_ranks(b, entered, left, n, r);
    free(entered);
    free(left);
    free(seconds);
}

/* ---- measurements ------------------------------------------------------------------------------
 */

static void measure(bench_t *b, const options_t *o, bench_line_t *line, result_t *r)
{
    double alone = NAN;
    if (b->op == OP_OVERLAP) {
        b->compute = 0;
        alone = by_batches(b, calibrate(b, 0.25e-3 * o->msec));
    }
    b->compute = b->op == OP_OVERLAP || b->op == OP_LOOK ? 1e-6 * o->compute : 0;
    r->line_ns = bench_line_ns(line);
    int n = calibrate(b, 0.5e-3 * o->msec);
    r->median = by_batches(b, n);
    one_by_one(b, n, r);
    r->line_ns = 0.5 * (r->line_ns + bench_line_ns(line));
    r->hidden = b->op == OP_OVERLAP ? fmin(1, fmax(0, 1 - r->median / alone)) : NAN;
    b->compute = 0;
}

static void report(const bench_t *b, bench_json_t *json, const result_t *r)
{
    printf("%-9s %6d %11.3f %11.3f %11.3f %11.3f %8.0f", op_names[b->op], b->ranks, 1e6 * r->median,
           1e6 * r->p99, 1e6 * r->skew, 1e6 * r->cpu, r->line_ns);
    if (b->op == OP_OVERLAP)
        printf("  %.0f %% hidden", 100 * r->hidden);
    if (b->op == OP_LOOK)
        printf("  %.1f %% complete", 100 * r->complete);
    printf("  %s\n", r->ok ? "ok" : "WRONG");
    fflush(stdout);
    bench_json_begin(json);
    bench_json_str(json, "op", op_names[b->op]);
    bench_json_num(json, "ranks", b->ranks);
    bench_json_num(json, "seconds", r->median);
    bench_json_num(json, "p99_seconds", r->p99);
    bench_json_num(json, "skew_seconds", r->skew);
    bench_json_num(json, "cpu_seconds", r->cpu);
    bench_json_num(json, "hidden", r->hidden);
    bench_json_num(json, "complete", r->complete);
    bench_json_num(json, "line_ns", r->line_ns);
    bench_json_bool(json, "data_ok", r->ok);
    bench_json_end(json);
}

/** True if all ranks read the same clock, by the kernel's boot identifier. */
static bool one_clock(void)
{
    char id[64] = "", first[64];
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "r");
    if (f != NULL) {
        if (fgets(id, sizeof(id), f) == NULL)
            id[0] = '\0';
        fclose(f);
    }
    memcpy(first, id, sizeof(id));
    MPI_Bcast(first, sizeof(first), MPI_CHAR, 0, MPI_COMM_WORLD);
    int same = id[0] != '\0' && memcmp(first, id, sizeof(id)) == 0, all;
    MPI_Allreduce(&same, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    return all != 0;
}

/* ---- program -----------------------------------------------------------------------------------
 */

static int parse_options(int argc, char **argv, options_t *o)
{
    int c, bad = 0;
    *o = (options_t){.ops = {{OP_BARRIER, OP_IBARRIER}, 2}, .msec = 30, .compute = 200};
    while ((c = getopt(argc, argv, "o:t:c:zj:h")) != -1) {
        switch (c) {
        case 'z':
            o->asleep = true;
            break;
        case 'o':
            bad |= bench_parse_names(optarg, op_names, OPS, &o->ops);
            break;
        case 't':
            bad |= bench_parse_int("-t", optarg, 1, 100000, &o->msec);
            break;
        case 'c':
            bad |= bench_parse_int("-c", optarg, 1, 100000, &o->compute);
            break;
        case 'j':
            o->json = optarg;
            break;
        default:
            bad = 1;
        }
    }
    return bad || optind < argc ? -1 : 0;
}

static int run(const options_t *o)
{
    bench_t b = {.asleep = o->asleep, .one_clock = one_clock()};
    bench_json_t *json = NULL;
    int wrong = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &b.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &b.ranks);
    int opened = b.rank == 0 ? bench_json_open(o->json, "barrier", &json) : 0;
    MPI_Bcast(&opened, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (opened != 0)
        return BENCH_EXIT_USAGE;
    if (b.rank == 0) {
        printf("%-9s %6s %11s %11s %11s %11s %8s\n", "op", "ranks", "median us", "99 % us",
               "skew us", "processor", "line ns");
    }
    bench_line_t *line = bench_line_open(MPI_COMM_WORLD);
    for (int i = 0; i < o->ops.n; i++) {
        result_t r;
        b.op = (op_t)o->ops.v[i];
        measure(&b, o, line, &r);
        if (b.rank == 0) {
            report(&b, json, &r);
            wrong |= !r.ok;
        }
    }
    bench_line_close(line);
    int written = bench_json_close(json);
    int rc = wrong ? BENCH_EXIT_WRONG_DATA : written != 0 ? BENCH_EXIT_USAGE : BENCH_EXIT_OK;
    MPI_Bcast(&rc, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return rc;
}

int main(int argc, char **argv)
{
    options_t o;
    int rank, code = BENCH_EXIT_USAGE;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    opterr = 0;
    if (parse_options(argc, argv, &o) == 0)
        code = run(&o);
    else if (rank == 0)
        fputs(usage, stderr);
    MPI_Finalize();
    return code;
}
