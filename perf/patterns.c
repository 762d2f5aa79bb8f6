/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The halo by columns as textbooks have it, and as whole programs run it.
 *
 * Each rank has a grid of N x N doubles. In each step it puts a column to each of its two
 * neighbours, periodically, and synchronises. Nothing else lines the ranks up between steps, and
 * they may compute for different times. Two times count: that of a step in the steady state, and
 * that of the first steps on a fresh window, which pay for page faults and connections.
 *
 * Each step stores its number in one row of the columns that it sends. What arrived is compared
 * after each batch of steps, before anything else is synchronised: data that comes too late is
 * found.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "perf/bench.h"

enum {
    FIRST_STEPS = 20,
    BATCHES = 7,
    FEWEST_STEPS = 5,
    MOST_STEPS = 1 << 20,
    CHECKED_STEPS = 2,
    MOST_CHECKS = 64,
    TAG = 7
};

/** Left and right: neighbours, columns, and messages. */
enum { LEFT, RIGHT, SIDES };

typedef enum sync { SYNC_FENCE, SYNC_PSCW, SYNC_LOCK_ALL, SYNC_LOCK, SYNCS } sync_t;
static const char *const sync_names[SYNCS] = {"fence", "pscw", "lock_all", "lock"};

typedef enum compute { COMPUTE_NONE, COMPUTE_ALL, COMPUTE_ONE, COMPUTES } compute_t;
static const char *const compute_names[COMPUTES] = {"none", "20us", "200us"};

/** What the time of a step is made of. */
typedef enum part { PART_COMPUTE, PART_PUT, PART_SYNC, PARTS } part_t;
static const char *const part_keys[PARTS] = {"compute_seconds", "put_seconds", "sync_seconds"};

typedef struct options {
    bench_list_t sizes, syncs, windows, computes;
    int milliseconds;
    int steps; /* in each batch; 0: as many as the time allows */
    const char *json;
} options_t;

typedef struct pattern {
    MPI_Comm comm;
    int rank, ranks;
    int neighbour[SIDES];
    MPI_Group neighbours; /* each once */
    int n;
    sync_t sync;
    double compute; /* seconds in each step of this rank */
    bench_window_t window;
    uint64_t *grid; /* the bits of n x n doubles */
    MPI_Datatype column;
    int steps; /* done so far */
} pattern_t;

/** Laps of a step. */
typedef struct watch {
    double last, seconds[PARTS];
} watch_t;

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

/** The column that goes to a side, and the one that the neighbour on that side writes. */
static int sent_column(const pattern_t *p, int side)
{
    return side == LEFT ? 1 : p->n - 2;
}

static int ghost_column(const pattern_t *p, int side)
{
    return side == LEFT ? 0 : p->n - 1;
}

static uint64_t *cell(const pattern_t *p, int row, int column)
{
    return &p->grid[(size_t)row * (size_t)p->n + (size_t)column];
}

/** What a rank sends to a side in a row, stored by the step; step 0 is what stood there at first.
 */
static uint64_t word(int rank, int side, int row, int step)
{
    return (uint64_t)(rank + 1) << 48 | (uint64_t)side << 47 | (uint64_t)row << 32 | (uint32_t)step;
}

/** The last of `steps` steps that stored something in the row; they begin with number 1. */
static int last_step_in(const pattern_t *p, int row)
{
    int back = (p->steps - row) % p->n;
    int step = p->steps - (back < 0 ? back + p->n : back);
    return step > 0 ? step : 0;
}

static void fill(pattern_t *p)
{
    memset(p->grid, 0, (size_t)p->n * (size_t)p->n * sizeof(*p->grid));
    for (int row = 0; row < p->n; row++) {
        for (int side = 0; side < SIDES; side++) {
            *cell(p, row, sent_column(p, side)) = word(p->rank, side, row, 0);
        }
    }
}

/** Words of the ghost columns that are not those of the step done last. */
static long wrong_ghosts(const pattern_t *p)
{
    long wrong = 0;
    for (int side = 0; side < SIDES; side++) {
        for (int row = 0; row < p->n; row++) {
            uint64_t sent = word(p->neighbour[side], !side, row, last_step_in(p, row));
            wrong += memcmp(cell(p, row, ghost_column(p, side)), &sent, sizeof(sent)) != 0;
        }
    }
    return wrong;
}

/** Words between the ghost columns that have changed though nobody put there. */
static long wrong_inside(const pattern_t *p)
{
    long wrong = 0;
    for (int row = 0; row < p->n; row++) {
        for (int column = 1; column < p->n - 1; column++) {
            uint64_t there = 0;
            for (int side = 0; side < SIDES; side++) {
                if (column == sent_column(p, side)) {
                    there = word(p->rank, side, row, last_step_in(p, row));
                }
            }
            wrong += memcmp(cell(p, row, column), &there, sizeof(there)) != 0;
        }
    }
    return wrong;
}

/** Called between steps. Without an epoch the window's memory is read under a lock. */
static long check(const pattern_t *p, long (*count)(const pattern_t *))
{
    if (p->sync == SYNC_LOCK) {
        MPI_Win_lock(MPI_LOCK_SHARED, p->rank, 0, p->window.win);
    }
    long wrong = count(p);
    if (p->sync == SYNC_LOCK) {
        MPI_Win_unlock(p->rank, p->window.win);
    }
    return wrong;
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

static void open_epoch(const pattern_t *p)
{
    if (p->sync == SYNC_FENCE) {
        MPI_Win_fence(MPI_MODE_NOPRECEDE, p->window.win);
    } else if (p->sync == SYNC_LOCK_ALL) {
        MPI_Win_lock_all(0, p->window.win);
    }
}

static void close_epoch(const pattern_t *p)
{
    if (p->sync == SYNC_FENCE) {
        MPI_Win_fence(MPI_MODE_NOSUCCEED, p->window.win);
    } else if (p->sync == SYNC_LOCK_ALL) {
        MPI_Win_unlock_all(p->window.win);
    }
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
    int to = p->neighbour[side];
    size_t ghost = (size_t)ghost_column(p, !side) * sizeof(*p->grid);
    MPI_Put(cell(p, 0, sent_column(p, side)), 1, p->column, to,
            p->window.disp[to] + (MPI_Aint)ghost, 1, p->column, p->window.win);
}

static void put_columns(const pattern_t *p, watch_t *w)
{
    for (int side = 0; side < SIDES; side++) {
        if (p->sync == SYNC_LOCK) {
            MPI_Win_lock(MPI_LOCK_SHARED, p->neighbour[side], 0, p->window.win);
            lap(w, PART_SYNC);
        }
        put_column(p, side);
        lap(w, PART_PUT);
        if (p->sync == SYNC_LOCK) {
            MPI_Win_unlock(p->neighbour[side], p->window.win);
            lap(w, PART_SYNC);
        }
    }
}

/** Tells both neighbours that their ghost columns are complete, and hears it from them. */
static void exchange_messages(const pattern_t *p)
{
    for (int side = 0; side < SIDES; side++) {
        MPI_Sendrecv(NULL, 0, MPI_BYTE, p->neighbour[side], TAG + side, NULL, 0, MPI_BYTE,
                     p->neighbour[!side], TAG + side, p->comm, MPI_STATUS_IGNORE);
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
        exchange_messages(p);
        MPI_Win_sync(p->window.win);
        break;
    default:
        exchange_messages(p);
        break;
    }
}

static void step(pattern_t *p, watch_t *w)
{
    if (p->compute > 0) {
        bench_compute(p->compute);
    }
    p->steps++;
    for (int side = 0; side < SIDES; side++) {
        int row = p->steps % p->n;
        *cell(p, row, sent_column(p, side)) = word(p->rank, side, row, p->steps);
    }
    lap(w, PART_COMPUTE);
    begin_step(p);
    lap(w, PART_SYNC);
    put_columns(p, w);
    end_step(p);
    lap(w, PART_SYNC);
}

/** Seconds for each of `n` steps on the slowest rank, known to all ranks. */
static double batch(pattern_t *p, int n, watch_t *w, result_t *r)
{
    MPI_Barrier(p->comm);
    double start = bench_now();
    if (w != NULL) {
        *w = (watch_t){.last = start};
    }
    for (int i = 0; i < n; i++) {
        step(p, w);
    }
    double seconds = (bench_now() - start) / n;
    r->wrong += check(p, wrong_ghosts);
    MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, p->comm);
    return seconds;
}

/* ---- Measuring ------------------------------------------------------------------------------- */

/** How many steps make a batch. They are done here, too, and warm up. */
static int calibrate(pattern_t *p, const options_t *o, result_t *r)
{
    double budget = 1e-3 * o->milliseconds, seconds;
    if (o->steps > 0) {
        batch(p, o->steps, NULL, r);
        return o->steps;
    }
    int n = FEWEST_STEPS;
    while ((seconds = n * batch(p, n, NULL, r)) < budget / 10 && n < MOST_STEPS) {
        n *= seconds < budget / 100 ? 8 : 2;
    }
    double steps = budget / BATCHES * n / seconds;
    return steps < FEWEST_STEPS ? FEWEST_STEPS : steps > MOST_STEPS ? MOST_STEPS : (int)steps;
}

/** Data that comes too late does so now and then: many more looks, for half of the time. */
static void check_often(pattern_t *p, const options_t *o, result_t *r)
{
    double spent = 0;
    for (int i = 0; i < MOST_CHECKS && spent < 0.5e-3 * o->milliseconds; i++) {
        spent += CHECKED_STEPS * batch(p, CHECKED_STEPS, NULL, r);
    }
}

static void measure_steps(pattern_t *p, const options_t *o, result_t *r)
{
    double seconds[BATCHES];
    watch_t watch;
    open_epoch(p);
    r->first = batch(p, FIRST_STEPS, NULL, r);
    int n = calibrate(p, o, r);
    for (int i = 0; i < BATCHES; i++) {
        seconds[i] = batch(p, n, NULL, r);
    }
    r->step = bench_median(seconds, BATCHES);
    batch(p, n, &watch, r);
    for (int i = 0; i < PARTS; i++) {
        r->parts[i] = watch.seconds[i] / n;
    }
    check_often(p, o, r);
    close_epoch(p);
    r->wrong += check(p, wrong_inside);
}

static void report(const pattern_t *p, compute_t compute, bench_json_t *json, const result_t *r)
{
    const char *window = bench_window_names[p->window.kind], *sync = sync_names[p->sync];
    printf("%5d %-9s %-9s %-8s %10.2f %10.2f %10.1f %9.2f %9.2f %9.2f %8.0f  %s\n", p->n, sync,
           compute_names[compute], window, 1e6 * r->step, 1e6 * r->first, 1e6 * r->make,
           1e6 * r->parts[PART_COMPUTE], 1e6 * r->parts[PART_PUT], 1e6 * r->parts[PART_SYNC],
           r->line_ns, r->wrong ? "WRONG" : "ok");
    fflush(stdout);
    bench_json_begin(json);
    bench_json_num(json, "n", p->n);
    bench_json_str(json, "sync", sync);
    bench_json_str(json, "compute", compute_names[compute]);
    bench_json_str(json, "window", window);
    bench_json_num(json, "ranks", p->ranks);
    bench_json_num(json, "seconds", r->step);
    bench_json_num(json, "first_seconds", r->first);
    bench_json_num(json, "make_seconds", r->make);
    for (int i = 0; i < PARTS; i++) {
        bench_json_num(json, part_keys[i], r->parts[i]);
    }
    bench_json_num(json, "line_ns", r->line_ns);
    bench_json_bool(json, "data_ok", r->wrong == 0);
    bench_json_end(json);
}

typedef struct run {
    const options_t *opt;
    bench_json_t *json; /* rank 0 only */
    bench_line_t *line;
    int measured, wrong;
} run_t;

/** On a window of its own. */
static void run_case(pattern_t *p, bench_window_kind_t kind, compute_t compute, run_t *run)
{
    size_t bytes = (size_t)p->n * (size_t)p->n * sizeof(*p->grid);
    result_t r = {.line_ns = bench_line_ns(run->line)};
    if (bench_window_open(kind, bytes, p->comm, &p->window) != 0) {
        return;
    }
    p->grid = (uint64_t *)(void *)p->window.base;
    p->compute = compute == COMPUTE_ALL ? 20e-6 : compute == COMPUTE_ONE && !p->rank ? 200e-6 : 0;
    p->steps = 0;
    fill(p);
    measure_steps(p, run->opt, &r);
    MPI_Allreduce(&p->window.make_seconds, &r.make, 1, MPI_DOUBLE, MPI_MAX, p->comm);
    MPI_Allreduce(MPI_IN_PLACE, &r.wrong, 1, MPI_LONG, MPI_SUM, p->comm);
    r.line_ns = 0.5 * (r.line_ns + bench_line_ns(run->line));
    if (p->rank == 0) {
        report(p, compute, run->json, &r);
    }
    run->measured++;
    run->wrong += r.wrong != 0;
    bench_window_close(&p->window);
}

static void run_size(pattern_t *p, run_t *run)
{
    const options_t *o = run->opt;
    MPI_Type_vector(p->n, 1, p->n, MPI_DOUBLE, &p->column);
    MPI_Type_commit(&p->column);
    for (int w = 0; w < o->windows.n; w++) {
        for (int s = 0; s < o->syncs.n; s++) {
            for (int c = 0; c < o->computes.n; c++) {
                p->sync = (sync_t)o->syncs.v[s];
                run_case(p, (bench_window_kind_t)o->windows.v[w], (compute_t)o->computes.v[c], run);
            }
        }
    }
    MPI_Type_free(&p->column);
}

static void set_neighbours(pattern_t *p)
{
    MPI_Group all;
    MPI_Comm_rank(p->comm, &p->rank);
    MPI_Comm_size(p->comm, &p->ranks);
    p->neighbour[LEFT] = (p->rank + p->ranks - 1) % p->ranks;
    p->neighbour[RIGHT] = (p->rank + 1) % p->ranks;
    MPI_Comm_group(p->comm, &all);
    MPI_Group_incl(all, p->ranks > 2 ? 2 : 1, p->neighbour, &p->neighbours);
    MPI_Group_free(&all);
}

static void print_header(void)
{
    printf(
        "# halo by columns; times in us; 'step' and 'first' (%d steps) are the slowest rank's,\n"
        "# 'compute', 'put' and 'sync' are parts of rank 0's step; 'make' is making the window\n",
        FIRST_STEPS);
    printf("%-5s %-9s %-9s %-8s %10s %10s %10s %9s %9s %9s %8s  %s\n", "# n", "sync", "computing",
           "window", "step", "first", "make", "compute", "put", "sync", "line ns", "data");
}

static int run_all(const options_t *o)
{
    pattern_t p = {.steps = 0};
    run_t run = {.opt = o};
    MPI_Comm_dup(MPI_COMM_WORLD, &p.comm);
    MPI_Comm_set_errhandler(p.comm, MPI_ERRORS_RETURN);
    set_neighbours(&p);
    int opened = p.rank == 0 ? bench_json_open(o->json, "patterns", &run.json) : 0;
    MPI_Bcast(&opened, 1, MPI_INT, 0, p.comm);
    int rc = BENCH_EXIT_USAGE;
    if (opened == 0) {
        if (p.rank == 0) {
            print_header();
        }
        run.line = bench_line_open(p.comm);
        for (int i = 0; i < o->sizes.n; i++) {
            p.n = (int)o->sizes.v[i];
            run_size(&p, &run);
        }
        bench_line_close(run.line);
        rc = bench_json_close(run.json) != 0 ? BENCH_EXIT_USAGE
             : run.measured == 0             ? BENCH_EXIT_NO_CASE
             : run.wrong > 0                 ? BENCH_EXIT_WRONG_DATA
                                             : BENCH_EXIT_OK;
        MPI_Bcast(&rc, 1, MPI_INT, 0, p.comm);
    }
    MPI_Group_free(&p.neighbours);
    MPI_Comm_free(&p.comm);
    return rc;
}

/* ---- Main ------------------------------------------------------------------------------------ */

static int parse_option(int c, const char *text, options_t *o)
{
    switch (c) {
    case 'n':
        return bench_parse_sizes(text, NULL, &o->sizes);
    case 's':
        return bench_parse_names(text, sync_names, SYNCS, &o->syncs);
    case 'c':
        return bench_parse_names(text, compute_names, COMPUTES, &o->computes);
    case 'w':
        return bench_parse_names(text, bench_window_names, BENCH_WIN_KINDS, &o->windows);
    case 't':
        return bench_parse_int("-t", text, 1, 60000, &o->milliseconds);
    case 'i':
        return bench_parse_int("-i", text, 1, MOST_STEPS, &o->steps);
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
    for (int c; (c = getopt(argc, argv, "n:s:c:w:t:i:j:h")) != -1;) {
        if (parse_option(c, optarg, o) != 0) {
            return -1;
        }
    }
    for (int i = 0; i < o->sizes.n; i++) {
        if (o->sizes.v[i] < 4 || o->sizes.v[i] > 16384) {
            fprintf(stderr, "-n: %zu is not in 4..16384\n", o->sizes.v[i]);
            return -1;
        }
    }
    return optind == argc ? 0 : -1;
}

int main(int argc, char **argv)
{
    options_t options;
    int rank, rc = BENCH_EXIT_USAGE;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    opterr = rank == 0;
    if (parse_options(argc, argv, &options) == 0) {
        rc = run_all(&options);
    } else {
        fputs(rank == 0 ? usage : "", stderr);
    }
    MPI_Finalize();
    return rc;
}
