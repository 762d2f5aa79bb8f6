/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The halo by columns as in textbooks, run as in whole programs.
 *
 * In each step columns are put, followed by a synchronisation. Nothing else aligns the ranks
 * between steps, and they may compute for different times. Two times are measured: a step in the
 * steady state, and the first steps on a fresh window, which include page faults and connecting.
 */
#include <unistd.h>

#include "perf/columns.h"
#include "perf/steps.h"

enum { TAG = 7 };

typedef enum sync { SYNC_FENCE, SYNC_PSCW, SYNC_LOCK_ALL, SYNC_LOCK, SYNCS } sync_t;
static const char *const sync_names[SYNCS] = {"fence", "pscw", "lock_all", "lock"};

/** The parts of a step's time. */
typedef enum part { PART_COMPUTE, PART_PUT, PART_SYNC, PARTS } part_t;
static const char *const part_keys[PARTS] = {"compute_seconds", "put_seconds", "sync_seconds"};

typedef struct options {
    bench_list_t sizes, syncs, windows, computes;
    int milliseconds;
    int steps; /* steps of a batch; 0: as many as the time allows */
    const char *json;
} options_t;

/** Laps of a step. */
typedef struct watch {
    double last, seconds[PARTS];
} watch_t;

typedef struct pattern {
    columns_t grid;
    MPI_Group neighbours; /* each once */
    sync_t sync;
    bench_window_t window;
    watch_t *watch; /* or NULL */
} pattern_t;

typedef struct result {
    double make, first, step; /* seconds, of the slowest rank */
    double parts[PARTS];      /* of rank 0 */
    double line_ns;
    long wrong; /* words of all ranks */
} result_t;

static const char usage[] =
    "usage: mpirun -n RANKS patterns [options]\n"
    "  -n LIST   rows and columns of a rank's grid, at least 4 (64,256,512,1024)\n"
    "  -s LIST   synchronisation: fence (one closes each step), pscw, lock_all (flush and empty\n"
    "            messages), lock (lock and unlock for each put, empty messages) (fence)\n"
    "  -c LIST   computing in each step: none, 20us (each rank), 200us (rank 0 alone) (none)\n"
    "  -w LIST   windows: create, allocate, dynamic, shared (create)\n"
    "  -t MS     time for the steady state of each case (30)\n"
    "  -i N      steps of a batch, instead of -t\n"
    "  -j FILE   write the results as JSON\n";

/* ---- Contents -------------------------------------------------------------------------------- */

/** Checks the grid between steps. Outside of an epoch the window's memory is read under a lock. */
static long check(const pattern_t *p, long (*count)(const columns_t *))
{
    if (p->sync == SYNC_LOCK)
        MPI_Win_lock(MPI_LOCK_SHARED, p->grid.rank, 0, p->window.win);
    long wrong = count(&p->grid);
    if (p->sync == SYNC_LOCK)
        MPI_Win_unlock(p->grid.rank, p->window.win);
    return wrong;
}

static long wrong_ghosts(void *arg)
{
    return check(arg, columns_wrong_ghosts);
}

/* ---- Steps ----------------------------------------------------------------------------------- */

static void lap(watch_t *w, part_t part)
{
    if (w != NULL) {
        double now = bench_now();
        w->seconds[part] += now - w->last;
        w->last = now;
    }
}

/** Waiting for the others before the first step is not timed. */
static void start_watch(watch_t *w)
{
    if (w != NULL && w->last == 0)
        w->last = bench_now();
}

static void open_epoch(const pattern_t *p)
{
    if (p->sync == SYNC_FENCE)
        MPI_Win_fence(MPI_MODE_NOPRECEDE, p->window.win);
    else if (p->sync == SYNC_LOCK_ALL)
        MPI_Win_lock_all(0, p->window.win);
}

static void close_epoch(const pattern_t *p)
{
    if (p->sync == SYNC_FENCE)
        MPI_Win_fence(MPI_MODE_NOSUCCEED, p->window.win);
    else if (p->sync == SYNC_LOCK_ALL)
        MPI_Win_unlock_all(p->window.win);
}

static void begin_step(const pattern_t *p)
{
    if (p->sync == SYNC_PSCW) {
        MPI_Win_post(p->neighbours, 0, p->window.win);
        MPI_Win_start(p->neighbours, 0, p->window.win);
    }
}

static void put_column(const pattern_t *p, int side)
{
    const columns_t *g = &p->grid;
    int to = g->neighbour[side];
    size_t ghost = columns_ghost(g, !side) * sizeof(*g->grid);
    MPI_Put(columns_sent(g, side), 1, g->column, to, p->window.disp[to] + (MPI_Aint)ghost, 1,
            g->column, p->window.win);
}

static void put_columns(const pattern_t *p)
{
    for (int side = 0; side < SIDES; side++) {
        int to = p->grid.neighbour[side];
        if (p->sync == SYNC_LOCK) {
            MPI_Win_lock(MPI_LOCK_SHARED, to, 0, p->window.win);
            lap(p->watch, PART_SYNC);
        }
        put_column(p, side);
        lap(p->watch, PART_PUT);
        if (p->sync == SYNC_LOCK) {
            MPI_Win_unlock(to, p->window.win);
            lap(p->watch, PART_SYNC);
        }
    }
}

/** Tells both neighbours that their ghost columns are complete, and waits for the same from them.
 */
static void exchange_messages(const columns_t *g)
{
    for (int side = 0; side < SIDES; side++) {
        MPI_Sendrecv(NULL, 0, MPI_BYTE, g->neighbour[side], TAG + side, NULL, 0, MPI_BYTE,
                     g->neighbour[!side], TAG + side, g->comm, MPI_STATUS_IGNORE);
    }
}

static void end_step(const pattern_t *p)
{
    switch (p->sync) {
    case SYNC_FENCE:
        MPI_Win_fence(0, p->window.win);
        break;
    case SYNC_PSCW:
        MPI_Win_complete(p->window.win);
        MPI_Win_wait(p->window.win);
        break;
    case SYNC_LOCK_ALL:
        MPI_Win_flush_all(p->window.win);
        exchange_messages(&p->grid);
        MPI_Win_sync(p->window.win);
        break;
    default:
        exchange_messages(&p->grid);
        break;
    }
}

static void step(void *arg)
{
    pattern_t *p = arg;
    start_watch(p->watch);
    columns_compute(&p->grid);
    lap(p->watch, PART_COMPUTE);
    begin_step(p);
    lap(p->watch, PART_SYNC);
    put_columns(p);
    end_step(p);
    lap(p->watch, PART_SYNC);
}

/* ---- Measuring ------------------------------------------------------------------------------- */

/** Uses separate steps, because reading the clock costs time. */
static void measure_parts(pattern_t *p, steps_t *s, result_t *r)
{
    watch_t watch = {.last = 0};
    p->watch = &watch;
    steps_run(s, s->batch);
    p->watch = NULL;
    for (int i = 0; i < PARTS; i++)
        r->parts[i] = watch.seconds[i] / s->batch;
}

static void measure_steps(pattern_t *p, const options_t *o, result_t *r)
{
    steps_t s = {.comm = p->grid.comm,
                 .step = step,
                 .wrong = wrong_ghosts,
                 .arg = p,
                 .milliseconds = o->milliseconds,
                 .batch = o->steps};
    open_epoch(p);
    steps_measure(&s);
    measure_parts(p, &s, r);
    steps_check_often(&s);
    close_epoch(p);
    r->first = s.first;
    r->step = s.steady;
    r->wrong = s.errors + check(p, columns_wrong_inside);
}

static void report(const pattern_t *p, compute_t compute, bench_json_t *json, const result_t *r)
{
    const char *window = bench_window_names[p->window.kind], *sync = sync_names[p->sync];
    printf("%5d %-9s %-9s %-8s %10.2f %10.2f %10.1f %9.2f %9.2f %9.2f %8.0f  %s\n", p->grid.n, sync,
           compute_names[compute], window, 1e6 * r->step, 1e6 * r->first, 1e6 * r->make,
           1e6 * r->parts[PART_COMPUTE], 1e6 * r->parts[PART_PUT], 1e6 * r->parts[PART_SYNC],
           r->line_ns, r->wrong ? "WRONG" : "ok");
    fflush(stdout);
    bench_json_begin(json);
    bench_json_num(json, "n", p->grid.n);
    bench_json_str(json, "sync", sync);
    bench_json_str(json, "compute", compute_names[compute]);
    bench_json_str(json, "window", window);
    bench_json_num(json, "ranks", p->grid.ranks);
    bench_json_num(json, "seconds", r->step);
    bench_json_num(json, "first_seconds", r->first);
    bench_json_num(json, "make_seconds", r->make);
    for (int i = 0; i < PARTS; i++)
        bench_json_num(json, part_keys[i], r->parts[i]);
    bench_json_num(json, "line_ns", r->line_ns);
    bench_json_bool(json, "data_ok", r->wrong == 0);
    bench_json_end(json);
}

/** Runs a case on its own window. */
static void run_case(pattern_t *p, const options_t *o, const size_t at[2], bench_run_t *run)
{
    columns_t *g = &p->grid;
    compute_t compute = (compute_t)at[1];
    result_t r = {.line_ns = bench_line_ns(run->line)};
    if (bench_window_open((bench_window_kind_t)at[0], columns_bytes(g), g->comm, &p->window) != 0)
        return;
    g->grid = (uint64_t *)(void *)p->window.base;
    columns_start(g, compute);
    measure_steps(p, o, &r);
    MPI_Allreduce(&p->window.make_seconds, &r.make, 1, MPI_DOUBLE, MPI_MAX, g->comm);
    MPI_Allreduce(MPI_IN_PLACE, &r.wrong, 1, MPI_LONG, MPI_SUM, g->comm);
    r.line_ns = 0.5 * (r.line_ns + bench_line_ns(run->line));
    if (g->rank == 0)
        report(p, compute, run->json, &r);
    run->measured++;
    run->wrong += r.wrong != 0;
    bench_window_close(&p->window);
}

static void run_size(pattern_t *p, const options_t *o, bench_run_t *run)
{
    columns_make_type(&p->grid);
    for (int w = 0; w < o->windows.n; w++) {
        for (int s = 0; s < o->syncs.n; s++) {
            for (int c = 0; c < o->computes.n; c++) {
                p->sync = (sync_t)o->syncs.v[s];
                run_case(p, o, (const size_t[]){o->windows.v[w], o->computes.v[c]}, run);
            }
        }
    }
    MPI_Type_free(&p->grid.column);
}

static void set_group(pattern_t *p)
{
    MPI_Group all;
    MPI_Comm_group(p->grid.comm, &all);
    MPI_Group_incl(all, p->grid.ranks > 2 ? 2 : 1, p->grid.neighbour, &p->neighbours);
    MPI_Group_free(&all);
}

static void print_header(void)
{
    printf(
        "# halo by columns; times in us; 'step' and 'first' (%d steps) are the slowest rank's,\n"
        "# 'compute', 'put' and 'sync' are parts of rank 0's step; 'make' is making the window\n",
        STEPS_FIRST);
    printf("%-5s %-9s %-9s %-8s %10s %10s %10s %9s %9s %9s %8s  %s\n", "# n", "sync", "computing",
           "window", "step", "first", "make", "compute", "put", "sync", "line ns", "data");
}

static int run_all(const options_t *o)
{
    pattern_t p = {.watch = NULL};
    MPI_Comm comm;
    bench_run_t run;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    columns_init(&p.grid, comm);
    set_group(&p);
    int rc = BENCH_EXIT_USAGE;
    if (bench_run_open(&run, comm, o->json, "patterns") == 0) {
        if (p.grid.rank == 0)
            print_header();
        for (int i = 0; i < o->sizes.n; i++) {
            p.grid.n = (int)o->sizes.v[i];
            run_size(&p, o, &run);
        }
        rc = bench_run_close(&run);
    }
    MPI_Group_free(&p.neighbours);
    MPI_Comm_free(&comm);
    return rc;
}

/* ---- Main ------------------------------------------------------------------------------------ */

static int parse_option(int c, const char *text, options_t *o)
{
    switch (c) {
    case 'n':
        return columns_parse(text, &o->sizes);
    case 's':
        return bench_parse_names(text, sync_names, SYNCS, &o->syncs);
    case 'c':
        return bench_parse_names(text, compute_names, COMPUTES, &o->computes);
    case 'w':
        return bench_parse_names(text, bench_window_names, BENCH_WIN_KINDS, &o->windows);
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
    *o = (options_t){.sizes = {{64, 256, 512, 1024}, 4},
                     .syncs = {{SYNC_FENCE}, 1},
                     .windows = {{BENCH_WIN_CREATE}, 1},
                     .computes = {{COMPUTE_NONE}, 1},
                     .milliseconds = 30};
    for (int c; (c = getopt(argc, argv, "n:s:c:w:t:i:j:h")) != -1;)
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
