/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * All ranks update memory of rank 0 at the same time, either the same elements or each its own.
 * Measures the time of one operation and its flush while the others do the same.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "perf/bench.h"

typedef enum op { ACC, ACC_INTEGER, GACC, FETCH, FOP, CAS, OPS } op_t;
static const char *const op_names[OPS] = {"acc", "acc_int", "gacc", "fetch", "fop", "cas"};
typedef enum where { SAME, APART, WHERES } where_t;
static const char *const where_names[WHERES] = {"same", "apart"};

typedef struct options {
    bench_list_t windows, ops, sizes, blocks, wheres;
    int milliseconds;
    const char *json;
} options_t;

/** A case, as seen by this rank. */
typedef struct update {
    op_t op;
    size_t size, block; /**< block 0: contiguous */
    where_t where;
    MPI_Datatype element, target;
    MPI_Aint disp;
    char *local, *result;
    bench_window_t *window;
} update_t;

static const char usage[] =
    "usage: mpirun -n N updates [options]\n"
    "  -o LIST   operations: acc (sum of doubles), acc_int (of 8-byte integers), gacc, fetch\n"
    "            (MPI_NO_OP), fop, cas (all)\n"
    "  -m LIST   bytes of an operation, multiples of 8; fop and cas have 8 only (8,16K)\n"
    "  -b LIST   bytes of a block at the target, every other one, or contig (512,contig)\n"
    "  -W LIST   same: all ranks the same elements; apart: each its own (same,apart)\n"
    "  -w LIST   windows: create, allocate, dynamic, shared (allocate)\n"
    "  -t MS     time for each measurement (50)\n"
    "  -j FILE   write the results as JSON\n";

static void run_op(const update_t *u, int64_t n)
{
    const int count = (int)(u->size / 8);
    const int64_t next = n + 1;

    switch (u->op) {
    case ACC:
    case ACC_INTEGER:
        MPI_Accumulate(u->local, count, u->element, 0, u->disp, 1, u->target, MPI_SUM,
                       u->window->win);
        break;
    case GACC:
    case FETCH:
        MPI_Get_accumulate(u->local, count, u->element, u->result, count, u->element, 0, u->disp, 1,
                           u->target, u->op == GACC ? MPI_SUM : MPI_NO_OP, u->window->win);
        break;
    case FOP:
        MPI_Fetch_and_op(u->local, u->result, u->element, 0, u->disp, MPI_SUM, u->window->win);
        break;
    default:
        MPI_Compare_and_swap(&next, &n, u->result, u->element, 0, u->disp, u->window->win);
    }
    MPI_Win_flush(0, u->window->win);
}

/** Runs operations for the given time; returns how many. */
static int64_t run_for(const update_t *u, double seconds)
{
    const double end = bench_now() + seconds;
    int64_t n = 0;

    do
        for (int i = 0; i < 16; i++)
            run_op(u, n++);
    while (bench_now() < end);
    return n;
}

/** True if the sums of all elements are right: each operation adds one to each of its elements. */
static bool is_right(const update_t *u, MPI_Comm comm, int64_t n)
{
    const size_t words = u->window->bytes / 8;
    double sum = 0, all = 0, mine = (double)n * (double)(u->size / 8);
    int rank, ok = 1;

    MPI_Comm_rank(comm, &rank);
    MPI_Reduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, 0, comm);
    for (size_t i = 0; i < words && rank == 0; i++) {
        int64_t integer;
        double floating;

        memcpy(&integer, u->window->base + 8 * i, 8);
        memcpy(&floating, u->window->base + 8 * i, 8);
        sum += u->element == MPI_DOUBLE ? floating : (double)integer;
    }
    if (rank == 0 && u->op != FETCH && u->op != CAS)
        ok = sum == all;
    MPI_Bcast(&ok, 1, MPI_INT, 0, comm);
    return ok != 0;
}

static void report(const update_t *u, const bench_run_t *run, double seconds, bool ok)
{
    char size[24], block[24];
    const char *shape = u->block == 0 ? "contig" : bench_size_text(u->block, block);
    const char *window = bench_window_names[u->window->kind];

    printf("%-8s %6s %7s %-6s %-9s %11.3f  %s\n", op_names[u->op], bench_size_text(u->size, size),
           shape, where_names[u->where], window, 1e6 * seconds, ok ? "ok" : "WRONG");
    fflush(stdout);
    bench_json_begin(run->json);
    bench_json_str(run->json, "op", op_names[u->op]);
    bench_json_num(run->json, "size", (double)u->size);
    bench_json_num(run->json, "block", (double)u->block);
    bench_json_str(run->json, "where", where_names[u->where]);
    bench_json_str(run->json, "window", window);
    bench_json_num(run->json, "seconds", seconds);
    bench_json_bool(run->json, "data_ok", ok);
    bench_json_end(run->json);
}

static void run_case(update_t *u, bench_run_t *run, int milliseconds)
{
    const size_t block = u->block == 0 || u->block > u->size ? u->size : u->block;
    int rank;

    MPI_Comm_rank(run->comm, &rank);
    u->element = u->op == ACC || u->op == GACC || u->op == FETCH ? MPI_DOUBLE : MPI_INT64_T;
    MPI_Type_vector((int)(u->size / block), (int)(block / 8), (int)(2 * block / 8), u->element,
                    &u->target);
    MPI_Type_commit(&u->target);
    u->disp = u->window->disp[0] + (u->where == APART ? (MPI_Aint)(2 * u->size) * rank : 0);
    for (size_t i = 0; i < u->size / 8; i++)
        if (u->element == MPI_DOUBLE)
            ((double *)(void *)u->local)[i] = 1;
        else
            ((int64_t *)(void *)u->local)[i] = 1;
    MPI_Barrier(run->comm);
    memset(u->window->base, 0, u->window->bytes);
    MPI_Win_lock_all(0, u->window->win);
    MPI_Barrier(run->comm);
    int64_t n = run_for(u, 2e-3);
    MPI_Barrier(run->comm);
    const double begin = bench_now();
    const int64_t timed = run_for(u, 1e-3 * milliseconds);
    double mine = (bench_now() - begin) / (double)timed, sum = 0;
    int ranks;

    n += timed;
    MPI_Win_unlock_all(u->window->win);
    MPI_Barrier(run->comm);
    MPI_Comm_size(run->comm, &ranks);
    MPI_Reduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, run->comm);
    const bool ok = is_right(u, run->comm, n);
    run->measured++;
    run->wrong += !ok;
    if (rank == 0)
        report(u, run, sum / ranks, ok);
    MPI_Type_free(&u->target);
}

static bool exists(op_t op, size_t size, size_t block)
{
    return (op != FOP && op != CAS) || (size == 8 && block == 0);
}

static void run_window(update_t *u, const options_t *o, bench_run_t *run)
{
    for (int p = 0; p < o->ops.n; p++)
        for (int s = 0; s < o->sizes.n; s++)
            for (int b = 0; b < o->blocks.n; b++)
                for (int c = 0; c < o->wheres.n; c++) {
                    u->op = (op_t)o->ops.v[p];
                    u->size = o->sizes.v[s];
                    u->block = o->blocks.v[b];
                    u->where = (where_t)o->wheres.v[c];
                    if (exists(u->op, u->size, u->block) && u->block < u->size)
                        run_case(u, run, o->milliseconds);
                }
}

static int run_all(const options_t *o, MPI_Comm comm)
{
    bench_run_t run;
    size_t most = 0;
    int rank, ranks;
    update_t u;

    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    if (bench_run_open(&run, comm, o->json, "updates") != 0)
        return BENCH_EXIT_USAGE;
    for (int s = 0; s < o->sizes.n; s++)
        most = o->sizes.v[s] > most ? o->sizes.v[s] : most;
    u.local = bench_alloc(most);
    u.result = bench_alloc(most);
    if (rank == 0)
        printf("# %d ranks onto one\n%-8s %6s %7s %-6s %-9s %11s  %s\n", ranks, "# op", "size",
               "block", "where", "window", "us", "data");
    for (int w = 0; w < o->windows.n; w++) {
        bench_window_t window;

        if (bench_window_open((bench_window_kind_t)o->windows.v[w], 2 * most * (size_t)ranks, comm,
                              &window) == 0) {
            u.window = &window;
            run_window(&u, o, &run);
            bench_window_close(&window);
        }
    }
    free(u.local);
    free(u.result);
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
    case 'b':
        return bench_parse_sizes(text, "contig", &o->blocks);
    case 'W':
        return bench_parse_names(text, where_names, WHERES, &o->wheres);
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
    *o = (options_t){.ops = {{ACC, ACC_INTEGER, GACC, FETCH, FOP, CAS}, OPS},
                     .sizes = {{8, 16 << 10}, 2},
                     .blocks = {{512, 0}, 2},
                     .wheres = {{SAME, APART}, WHERES},
                     .windows = {{BENCH_WIN_ALLOCATE}, 1},
                     .milliseconds = 50};
    for (int c; (c = getopt(argc, argv, "o:m:b:W:w:t:j:h")) != -1;)
        if (parse_option(c, optarg, o) != 0)
            return -1;
    for (int i = 0; i < o->sizes.n; i++)
        if (o->sizes.v[i] % 8 != 0 || o->sizes.v[i] > 1 << 26)
            return -1;
    for (int i = 0; i < o->blocks.n; i++)
        if (o->blocks.v[i] % 8 != 0)
            return -1;
    return optind == argc ? 0 : -1;
}

int main(int argc, char **argv)
{
    options_t options;
    MPI_Comm comm;
    int rank, rc = BENCH_EXIT_USAGE;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    opterr = rank == 0;
    if (parse_options(argc, argv, &options) == 0) {
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
