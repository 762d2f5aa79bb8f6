/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Collective operations in sequence, as in long programs. They show the layer that sends their
 * messages, if the module that does them sends any.
 *
 * Each call stores its number in one double of the data sent, so that data of another call is
 * detected. The root of a broadcast changes each time: otherwise it would run ahead of the others.
 * Plain MPI.
 */
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "perf/steps.h"

/** The longest message. */
enum { MOST_BYTES = 1 << 28 };

/** Bits of the parts of a double: few enough that sums over a thousand ranks are exact. */
enum { STEP_BITS = 16, PLACE_BITS = 10, RANK_BITS = 8 };

typedef enum op { OP_ALLREDUCE, OP_ALLTOALL, OP_BCAST, OPS } op_t;
static const char *const op_names[OPS] = {"allreduce", "alltoall", "bcast"};

typedef struct options {
    bench_list_t ops, sizes;
    int milliseconds;
    const char *json;
} options_t;

typedef struct calls {
    MPI_Comm comm;
    int rank, ranks;
    op_t op;
    int n;     /* doubles of a message */
    int steps; /* calls done so far */
    double *out, *in;
} calls_t;

static const char usage[] =
    "usage: mpirun -n RANKS collectives [options]\n"
    "  -o LIST   allreduce (sum), alltoall, bcast (from each rank in turn) (all)\n"
    "  -m LIST   bytes of a message; of alltoall to each rank (8,1K,64K,1M)\n"
    "  -t MS     time for the steady state of each case (30)\n"
    "  -j FILE   write the results as JSON\n";

/* ---- Contents -------------------------------------------------------------------------------- */

static uint64_t low(int value, unsigned bits)
{
    return (uint64_t)value & ((UINT64_C(1) << bits) - 1);
}

/** The number that a rank sends to another in a place, stored in that step; step 0 is the initial
 *  value. */
static double number(int from, int to, int place, int step)
{
    uint64_t v = low(from + 1, RANK_BITS);
    v = v << RANK_BITS | low(to, RANK_BITS);
    v = v << PLACE_BITS | low(place, PLACE_BITS);
    return (double)(v << STEP_BITS | low(step, STEP_BITS));
}

/** The number of ranks to which each sends different data. */
static int parts(const calls_t *c)
{
    return c->op == OP_ALLTOALL ? c->ranks : 1;
}

static size_t bytes(const calls_t *c)
{
    return (size_t)parts(c) * (size_t)c->n * sizeof(double);
}

static int root(const calls_t *c, int step)
{
    return step % c->ranks;
}

static void store(const calls_t *c, int place, int step)
{
    int from = c->op == OP_BCAST ? root(c, step) : c->rank;
    for (int to = 0; to < parts(c); to++)
        c->out[(size_t)to * (size_t)c->n + (size_t)place] = number(from, to, place, step);
}

/** The expected number in a place of the part from a rank. */
static double expected(const calls_t *c, int from, int place)
{
    int step = steps_last_at(c->steps, place, c->n);
    double sum = 0;
    switch (c->op) {
    case OP_ALLTOALL:
        return number(from, c->rank, place, step);
    case OP_BCAST:
        return number(root(c, step), 0, place, step);
    default:
        for (int i = 0; i < c->ranks; i++)
            sum += number(i, 0, place, step);
        return sum;
    }
}

/** Counts wrong numbers. Then spoils what the next call must overwrite, so that omissions are
 *  detected. */
static long wrong_numbers(void *arg)
{
    const calls_t *c = arg;
    double *came = c->op == OP_BCAST ? c->out : c->in;
    long wrong = 0;
    for (int from = 0; from < parts(c); from++) {
        for (int place = 0; place < c->n; place++) {
            double right = expected(c, from, place);
            wrong += memcmp(came++, &right, sizeof(right)) != 0;
        }
    }
    if (c->op != OP_BCAST)
        memset(c->in, UCHAR_MAX, bytes(c));
    else if (c->rank != root(c, c->steps + 1))
        memset(c->out, UCHAR_MAX, bytes(c));
    return wrong;
}

/* ---- Calls ----------------------------------------------------------------------------------- */

static void step(void *arg)
{
    calls_t *c = arg;
    c->steps++;
    if (c->op != OP_BCAST || c->rank == root(c, c->steps))
        store(c, c->steps % c->n, c->steps);
    switch (c->op) {
    case OP_ALLREDUCE:
        MPI_Allreduce(c->out, c->in, c->n, MPI_DOUBLE, MPI_SUM, c->comm);
        break;
    case OP_ALLTOALL:
        MPI_Alltoall(c->out, c->n, MPI_DOUBLE, c->in, c->n, MPI_DOUBLE, c->comm);
        break;
    default:
        MPI_Bcast(c->out, c->n, MPI_DOUBLE, root(c, c->steps), c->comm);
        break;
    }
}

static void report(const calls_t *c, size_t size, const steps_t *s, double line_ns,
                   bench_json_t *json)
{
    char text[24];
    printf("%-10s %8s %10.2f %10.2f %8.0f  %s\n", op_names[c->op], bench_size_text(size, text),
           1e6 * s->steady, 1e6 * s->first, line_ns, s->errors ? "WRONG" : "ok");
    fflush(stdout);
    bench_json_begin(json);
    bench_json_str(json, "op", op_names[c->op]);
    bench_json_num(json, "size", (double)size);
    bench_json_num(json, "ranks", c->ranks);
    bench_json_num(json, "seconds", s->steady);
    bench_json_num(json, "first_seconds", s->first);
    bench_json_num(json, "line_ns", line_ns);
    bench_json_bool(json, "data_ok", s->errors == 0);
    bench_json_end(json);
}

static void measure(calls_t *c, size_t size, const options_t *o, bench_run_t *run)
{
    steps_t s = {.comm = c->comm,
                 .step = step,
                 .wrong = wrong_numbers,
                 .arg = c,
                 .milliseconds = o->milliseconds};
    double line_ns = bench_line_ns(run->line);
    steps_measure(&s);
    steps_check_often(&s);
    MPI_Allreduce(MPI_IN_PLACE, &s.errors, 1, MPI_LONG, MPI_SUM, c->comm);
    line_ns = 0.5 * (line_ns + bench_line_ns(run->line));
    if (c->rank == 0)
        report(c, size, &s, line_ns, run->json);
    run->measured++;
    run->wrong += s.errors != 0;
}

/** Runs a case with its own buffers. */
static void run_case(calls_t *c, size_t size, const options_t *o, bench_run_t *run)
{
    c->n = (int)(size / sizeof(double));
    c->steps = 0;
    c->out = bench_map(bytes(c));
    c->in = bench_map(bytes(c));
    for (int place = 0; place < c->n; place++)
        store(c, place, 0);
    memset(c->in, UCHAR_MAX, bytes(c));
    measure(c, size, o, run);
    munmap(c->out, bytes(c));
    munmap(c->in, bytes(c));
}

static int run_all(const options_t *o)
{
    calls_t c = {.comm = MPI_COMM_WORLD};
    bench_run_t run;
    MPI_Comm_rank(c.comm, &c.rank);
    MPI_Comm_size(c.comm, &c.ranks);
    if (bench_run_open(&run, c.comm, o->json, "collectives") != 0)
        return BENCH_EXIT_USAGE;
    if (c.rank == 0) {
        printf("# us of the slowest rank; 'first' is the mean of %d calls\n", STEPS_FIRST);
        printf("%-10s %8s %10s %10s %8s  %s\n", "# op", "size", "call", "first", "line ns", "data");
    }
    for (int i = 0; i < o->ops.n; i++) {
        for (int m = 0; m < o->sizes.n; m++) {
            c.op = (op_t)o->ops.v[i];
            run_case(&c, o->sizes.v[m], o, &run);
        }
    }
    return bench_run_close(&run);
}

/* ---- Main ------------------------------------------------------------------------------------ */

static int parse_bytes(const char *text, bench_list_t *list_p)
{
    if (bench_parse_sizes(text, NULL, list_p) != 0)
        return -1;
    for (int i = 0; i < list_p->n; i++) {
        if (list_p->v[i] % sizeof(double) != 0 || list_p->v[i] > MOST_BYTES) {
            fprintf(stderr, "-m: %zu is no multiple of %zu up to %d\n", list_p->v[i],
                    sizeof(double), MOST_BYTES);
            return -1;
        }
    }
    return 0;
}

static int parse_option(int c, const char *text, options_t *o)
{
    switch (c) {
    case 'o':
        return bench_parse_names(text, op_names, OPS, &o->ops);
    case 'm':
        return parse_bytes(text, &o->sizes);
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
    *o = (options_t){.ops = {{OP_ALLREDUCE, OP_ALLTOALL, OP_BCAST}, OPS},
                     .sizes = {{8, 1024, 65536, 1048576}, 4},
                     .milliseconds = 30};
    for (int c; (c = getopt(argc, argv, "o:m:t:j:h")) != -1;)
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
