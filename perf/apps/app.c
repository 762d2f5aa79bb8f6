/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "perf/apps/app.h"
#include "perf/steps.h"

/* LONG_BATCHES: enough if a step takes longer than a batch may. */
enum { BATCHES = 5, LONG_BATCHES = 3, MOST_STEPS = 4096 };

typedef enum phase { WHOLE, COMPUTE, COMMUNICATE, PHASES } phase_t;

typedef struct options {
    bench_list_t sizes, syncs, windows;
    int milliseconds;
    const char *json;
} options_t;

typedef struct result {
    double seconds[PHASES];
    double line_ns, bytes;
    long wrong;
    char moved[APP_MOVED_TEXT];
} result_t;

/* ---- One case -------------------------------------------------------------------------------- */

static long nothing_to_compare(void *state)
{
    (void)state;
    return 0;
}

/** A phase whose steps are timed. */
static steps_t steps_of(const app_t *app, phase_t phase, void *state, MPI_Comm comm)
{
    void (*const step[PHASES])(void *) = {app->whole, app->compute, app->communicate};
    return (steps_t){.comm = comm,
                     .step = step[phase],
                     .wrong = phase == WHOLE ? app->wrong : nothing_to_compare,
                     .arg = state};
}

static void measure(const app_t *app, void *state, MPI_Comm comm, double budget, result_t *r)
{
    steps_t steps[PHASES];
    int batch[PHASES], batches = BATCHES;
    double seconds[PHASES][BATCHES];
    for (int p = 0; p < PHASES; p++) {
        steps[p] = steps_of(app, (phase_t)p, state, comm);
        steps_run(&steps[p], 1);
        double once = steps_run(&steps[p], 1);
        double fit = budget / BATCHES / (once > 0 ? once : budget);
        batch[p] = fit < 1 ? 1 : fit > MOST_STEPS ? MOST_STEPS : (int)fit;
        batches = fit < 1 ? LONG_BATCHES : batches;
    }
    for (int i = 0; i < batches; i++)
        for (int p = 0; p < PHASES; p++)
            seconds[p][i] = steps_run(&steps[p], batch[p]);
    for (int p = 0; p < PHASES; p++)
        r->seconds[p] = bench_median(seconds[p], batches);
    MPI_Allreduce(&steps[WHOLE].errors, &r->wrong, 1, MPI_LONG, MPI_SUM, comm);
}

static void report(const app_t *app, const app_case_t *c, bench_json_t *json, const result_t *r)
{
    const char *window = bench_window_names[c->window], *sync = app->syncs[c->sync];
    printf("%8d %-9s %-6s %6d %10.1f %12.1f %12.1f %12.1f %8.0f  %-5s  %s\n", c->n, window, sync,
           c->ranks, r->bytes / 1024, 1e6 * r->seconds[WHOLE], 1e6 * r->seconds[COMPUTE],
           1e6 * r->seconds[COMMUNICATE], r->line_ns, r->wrong ? "WRONG" : "ok", r->moved);
    fflush(stdout);
    bench_json_begin(json);
    bench_json_num(json, "n", c->n);
    bench_json_str(json, "window", window);
    bench_json_str(json, "sync", sync);
    bench_json_num(json, "ranks", c->ranks);
    bench_json_num(json, "bytes", r->bytes);
    bench_json_num(json, "seconds", r->seconds[WHOLE]);
    bench_json_num(json, "compute_seconds", r->seconds[COMPUTE]);
    bench_json_num(json, "comm_seconds", r->seconds[COMMUNICATE]);
    bench_json_str(json, "moved", r->moved);
    bench_json_num(json, "line_ns", r->line_ns);
    bench_json_bool(json, "data_ok", r->wrong == 0);
    bench_json_end(json);
}

static void run_case(const app_t *app, const app_case_t *c, const options_t *o, bench_run_t *run)
{
    size_t bytes;
    result_t r;
    void *state = app->open(c, &bytes);
    if (state == NULL)
        return;
    app_moved_t *moved = app_moved_open();
    r.line_ns = bench_line_ns(run->line);
    measure(app, state, c->comm, 1e-3 * o->milliseconds, &r);
    r.line_ns = 0.5 * (r.line_ns + bench_line_ns(run->line));
    app_moved_text(moved, c->comm, r.moved);
    app_moved_close(moved);
    app->close(state);
    r.bytes = (double)bytes;
    MPI_Allreduce(MPI_IN_PLACE, &r.bytes, 1, MPI_DOUBLE, MPI_MAX, c->comm);
    if (c->rank == 0)
        report(app, c, run->json, &r);
    run->measured++;
    run->wrong += r.wrong != 0;
}

/* ---- Main ------------------------------------------------------------------------------------ */

static void show_usage(const app_t *app)
{
    fprintf(stderr, "usage: mpirun -n RANKS %s [options]\n  -n LIST   %s (%s)\n", app->name,
            app->n_is, app->n_default);
    fprintf(stderr, "  -s LIST   synchronisation:");
    for (int i = 0; i < app->nsyncs; i++)
        fprintf(stderr, " %s", app->syncs[i]);
    fprintf(stderr, " (%s)\n", app->syncs[0]);
    fputs("  -w LIST   windows: create, allocate, dynamic, shared (create)\n"
          "  -t MS     time for each of the three measurements of a case (100)\n"
          "  -j FILE   write the results as JSON\n",
          stderr);
}

static int parse_option(const app_t *app, int c, const char *text, options_t *o)
{
    switch (c) {
    case 'n':
        return bench_parse_sizes(text, NULL, &o->sizes);
    case 's':
        return bench_parse_names(text, app->syncs, app->nsyncs, &o->syncs);
    case 'w':
        return bench_parse_names(text, bench_window_names, BENCH_WIN_KINDS, &o->windows);
    case 't':
        return bench_parse_int("-t", text, 1, 1000000, &o->milliseconds);
    case 'j':
        o->json = text;
        return 0;
    default:
        return -1;
    }
}

static int parse_options(const app_t *app, int argc, char **argv, options_t *o)
{
    *o = (options_t){.syncs = {{0}, 1}, .windows = {{BENCH_WIN_CREATE}, 1}, .milliseconds = 100};
    if (bench_parse_sizes(app->n_default, NULL, &o->sizes) != 0)
        return -1;
    for (int c; (c = getopt(argc, argv, "n:s:w:t:j:h")) != -1;)
        if (parse_option(app, c, optarg, o) != 0)
            return -1;
    for (int i = 0; i < o->sizes.n; i++) {
        if (o->sizes.v[i] > 1 << 24) {
            fprintf(stderr, "-n: %zu is more than %d\n", o->sizes.v[i], 1 << 24);
            return -1;
        }
    }
    return optind == argc ? 0 : -1;
}

static int run_all(const app_t *app, const options_t *o, int rank)
{
    bench_run_t run;
    app_case_t c = {.comm = MPI_COMM_WORLD, .rank = rank};
    MPI_Comm_size(c.comm, &c.ranks);
    MPI_Comm_set_errhandler(c.comm, MPI_ERRORS_RETURN);
    if (bench_run_open(&run, c.comm, o->json, app->name) != 0)
        return BENCH_EXIT_USAGE;
    if (rank == 0) {
        printf("# %s; times of a step on the slowest rank\n", app->name);
        printf("%8s %-9s %-6s %6s %10s %12s %12s %12s %8s  %-5s  %s\n", "n", "window", "sync",
               "ranks", "KiB", "us whole", "us computing", "us comm.", "line ns", "data", "moved");
    }
    for (int i = 0; i < o->sizes.n; i++) {
        for (int w = 0; w < o->windows.n; w++) {
            for (int s = 0; s < o->syncs.n; s++) {
                c.n = (int)o->sizes.v[i];
                c.window = (bench_window_kind_t)o->windows.v[w];
                c.sync = (int)o->syncs.v[s];
                run_case(app, &c, o, &run);
            }
        }
    }
    return bench_run_close(&run);
}

int app_main(const app_t *app, int argc, char **argv)
{
    options_t options;
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    opterr = rank == 0;
    int rc = parse_options(app, argc, argv, &options);
    if (rc == 0) {
        rc = run_all(app, &options, rank);
    } else {
        if (rank == 0)
            show_usage(app);
        rc = BENCH_EXIT_USAGE;
    }
    MPI_Finalize();
    return rc;
}
