/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The halo by columns as in programs that send messages: each rank posts receives into its two
 * ghost columns, sends a column to each neighbour, all of a vector type, and waits for the four.
 *
 * Ranks may compute for different times between two steps. Two times are measured: a step in the
 * steady state, and the first steps, with a new grid and datatype. Plain MPI: mpirun's command line
 * decides which layer sends the messages.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "perf/columns.h"
#include "perf/steps.h"

enum { TAG = 7 };

typedef struct options {
    bench_list_t sizes, computes;
    int milliseconds;
    int steps; /* steps of a batch; 0: as many as the time allows */
    const char *json;
} options_t;

static const char usage[] =
    "usage: mpirun -n RANKS p2p_patterns [options]\n"
    "  -n LIST   rows and columns of a rank's grid, at least 4 (64,256,512,1024)\n"
    "  -c LIST   computing in each step: none, 20us (each rank), 200us (rank 0 alone) (none)\n"
    "  -t MS     time for the steady state of each case (30)\n"
    "  -i N      steps of a batch, instead of -t\n"
    "  -j FILE   write the results as JSON\n";

static void step(void *arg)
{
    columns_t *g = arg;
    MPI_Request request[2 * SIDES];
    columns_compute(g);
    for (int side = 0; side < SIDES; side++) {
        /* The sender names it by the opposite side. */
        MPI_Irecv(g->grid + columns_ghost(g, side), 1, g->column, g->neighbour[side], TAG + !side,
                  g->comm, &request[side]);
    }
    for (int side = 0; side < SIDES; side++) {
        MPI_Isend(columns_sent(g, side), 1, g->column, g->neighbour[side], TAG + side, g->comm,
                  &request[SIDES + side]);
    }
    MPI_Waitall(2 * SIDES, request, MPI_STATUSES_IGNORE);
}

static long wrong_ghosts(void *arg)
{
    long wrong = columns_wrong_ghosts(arg);
    columns_spoil_ghosts(arg);
    return wrong;
}

static void report(const columns_t *g, compute_t compute, const steps_t *s, double line_ns,
                   bench_json_t *json)
{
    printf("%5d %-9s %10.2f %10.2f %8.0f  %s\n", g->n, compute_names[compute], 1e6 * s->steady,
           1e6 * s->first, line_ns, s->errors ? "WRONG" : "ok");
    fflush(stdout);
    bench_json_begin(json);
    bench_json_num(json, "n", g->n);
    bench_json_str(json, "compute", compute_names[compute]);
    bench_json_num(json, "ranks", g->ranks);
    bench_json_num(json, "seconds", s->steady);
    bench_json_num(json, "first_seconds", s->first);
    bench_json_num(json, "line_ns", line_ns);
    bench_json_bool(json, "data_ok", s->errors == 0);
    bench_json_end(json);
}

/** Runs a case with its own grid and datatype. */
static void run_case(columns_t *g, compute_t compute, const options_t *o, bench_run_t *run)
{
    steps_t s = {.comm = g->comm,
                 .step = step,
                 .wrong = wrong_ghosts,
                 .arg = g,
                 .milliseconds = o->milliseconds,
                 .batch = o->steps};
    double line_ns = bench_line_ns(run->line);
    g->grid = bench_map(columns_bytes(g));
    columns_make_type(g);
    columns_start(g, compute);
    steps_measure(&s);
    steps_check_often(&s);
    s.errors += columns_wrong_inside(g);
    MPI_Allreduce(MPI_IN_PLACE, &s.errors, 1, MPI_LONG, MPI_SUM, g->comm);
    line_ns = 0.5 * (line_ns + bench_line_ns(run->line));
    if (g->rank == 0)
        report(g, compute, &s, line_ns, run->json);
    run->measured++;
    run->wrong += s.errors != 0;
    MPI_Type_free(&g->column);
    munmap(g->grid, columns_bytes(g));
}

static void print_header(void)
{
    printf("# halo by columns, sent; us of the slowest rank; 'first' is the mean of %d steps\n",
           STEPS_FIRST);
    printf("%-5s %-9s %10s %10s %8s  %s\n", "# n", "computing", "step", "first", "line ns", "data");
}

static int run_all(const options_t *o)
{
    columns_t g;
    bench_run_t run;
    columns_init(&g, MPI_COMM_WORLD);
    if (bench_run_open(&run, g.comm, o->json, "p2p_patterns") != 0)
        return BENCH_EXIT_USAGE;
    if (g.rank == 0)
        print_header();
    for (int i = 0; i < o->sizes.n; i++) {
        for (int c = 0; c < o->computes.n; c++) {
            g.n = (int)o->sizes.v[i];
            run_case(&g, (compute_t)o->computes.v[c], o, &run);
        }
    }
    return bench_run_close(&run);
}

static int parse_option(int c, const char *text, options_t *o)
{
    switch (c) {
    case 'n':
        return columns_parse(text, &o->sizes);
    case 'c':
        return bench_parse_names(text, compute_names, COMPUTES, &o->computes);
    case 't':
        return bench_parse_int("-t", text, 1, 60000, &o->milliseconds);
    case 'i':
        return bench_parse_int("-i", text, 1, STEPS_MOST, &o->steps);
    case 'j':
        o->json = text;
        return 0;
    default:
        return -1;
    }
}

static int parse_options(int argc, char **argv, options_t *o)
{
    *o = (options_t){
        .sizes = {{64, 256, 512, 1024}, 4}, .computes = {{COMPUTE_NONE}, 1}, .milliseconds = 30};
    for (int c; (c = getopt(argc, argv, "n:c:t:i:j:h")) != -1;)
        if (parse_option(c, optarg, o) != 0)
            return -1;
    return optind == argc ? 0 : -1;
}

int main(int argc, char **argv)
{
    options_t options;
    int rank, rc = BENCH_EXIT_USAGE;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    opterr = rank == 0;
    if (parse_options(argc, argv, &options) == 0)
        rc = run_all(&options);
    else
        fputs(rank == 0 ? usage : "", stderr);
    MPI_Finalize();
    return rc;
}
