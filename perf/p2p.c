/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Point-to-point messages between ranks 0 and 1: the time of one, with the same buffer each time,
 * with new buffers each time, into untouched memory, and in bursts.
 *
 * Plain MPI: mpirun's command line decides which layer sends the messages.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "perf/bench.h"

enum { WINDOW = 64, TAG = 7, MIN_ROUNDS = 8, MAX_ROUNDS = 20000, WARM_UP = 3 };

typedef enum op { OP_PINGPONG, OP_FRESH, OP_UNTOUCHED, OP_RATE, OP_EXCHANGE, OPS } op_t;
static const char *const op_names[OPS] = {"pingpong", "fresh", "untouched", "rate", "exchange"};

typedef struct options {
    bench_list_t ops;
    bench_list_t sizes;
    bench_list_t blocks;
    int msec; /**< milliseconds of a measurement */
    const char *json;
} options_t;

static const char usage[] =
    "usage: mpirun -n 2 p2p [options]\n"
    "  -o LIST   pingpong: there and back, the same buffers; fresh: with new buffers for each\n"
    "            message, touched before; untouched: where it is received to nobody has touched;\n"
    "            rate: 64 messages, then an answer; exchange: both ways at once (pingpong)\n"
    "  -m LIST   bytes of a message (8,64K,1M)\n"
    "  -b LIST   bytes of a block, as far from the next one; contig (contig)\n"
    "  -t MS     milliseconds of one measurement (30)\n"
    "  -j FILE   write the results as JSON\n";

typedef struct bench {
    int rank;
    op_t op;
    size_t size, block; /**< block 0: contiguous */
    size_t extent;      /**< bytes from the first to the last */
    int count;
    MPI_Datatype type;
} bench_t;

typedef struct result {
    double median, first, line_ns; /**< seconds of a message, of the first one; nanoseconds */
    bool ok;
} result_t;

/* ---- buffers --------------------------------------------------------------------------------- */

static char byte_at(size_t i)
{
    return (char)(i * 31 + 7);
}

static size_t place(const bench_t *b, size_t i)
{
    return b->block == 0 ? i : i / b->block * 2 * b->block + i % b->block;
}

static void fill(const bench_t *b, char *p)
{
    memset(p, 0, b->extent);
    for (size_t i = 0; i < b->size; i++)
        p[place(b, i)] = byte_at(i);
}

static bool is_filled(const bench_t *b, const char *p)
{
    for (size_t i = 0; i < b->size; i++)
        if (p[place(b, i)] != byte_at(i))
            return false;
    return true;
}

/* ---- messages -------------------------------------------------------------------------------- */

static void there(const bench_t *b, char *p, bool sends)
{
    if (sends)
        MPI_Send(p, b->count, b->type, 1 - b->rank, TAG, MPI_COMM_WORLD);
    else
        MPI_Recv(p, b->count, b->type, 1 - b->rank, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/** A round trip with these buffers. */
static void round_trip(const bench_t *b, char *out, char *in)
{
    there(b, b->rank == 0 ? out : in, b->rank == 0);
    there(b, b->rank == 0 ? in : out, b->rank != 0);
}

static void exchange(const bench_t *b, char *out, char *in)
{
    MPI_Sendrecv(out, b->count, b->type, 1 - b->rank, TAG, in, b->count, b->type, 1 - b->rank, TAG,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void burst(const bench_t *b, char *p)
{
    MPI_Request request[WINDOW];
    for (int i = 0; i < WINDOW; i++)
        if (b->rank == 0)
            MPI_Isend(p, b->count, b->type, 1, TAG, MPI_COMM_WORLD, &request[i]);
        else
            MPI_Irecv(p, b->count, b->type, 0, TAG, MPI_COMM_WORLD, &request[i]);
    MPI_Waitall(WINDOW, request, MPI_STATUSES_IGNORE);
    const bench_t answer = {.rank = b->rank, .count = 0, .type = MPI_BYTE};
    there(&answer, p, b->rank == 1);
}

/** Seconds of one message with new buffers. */
static double with_new(const bench_t *b, bool touched, bool *ok)
{
    char *out = bench_map(b->extent), *in = bench_map(b->extent);
    fill(b, out);
    if (touched)
        memset(in, 1, b->extent);
    MPI_Barrier(MPI_COMM_WORLD);
    double start = bench_now();
    round_trip(b, out, in);
    double seconds = bench_now() - start;
    *ok = *ok && is_filled(b, in);
    munmap(out, b->extent);
    munmap(in, b->extent);
    return 0.5 * seconds;
}

/* ---- measurements ---------------------------------------------------------------------------- */

/** Seconds of one message in a sequence. */
static double once(const bench_t *b, char *out, char *in, int trips, bool *ok)
{
    double start = bench_now();
    switch (b->op) {
    case OP_PINGPONG:
        for (int i = 0; i < trips; i++)
            round_trip(b, out, in);
        return (bench_now() - start) / (2 * trips);
    case OP_RATE:
        for (int i = 0; i < trips; i++)
            burst(b, b->rank == 0 ? out : in);
        return (bench_now() - start) / (WINDOW * trips);
    case OP_EXCHANGE:
        for (int i = 0; i < trips; i++)
            exchange(b, out, in);
        return (bench_now() - start) / trips;
    default:
        return with_new(b, b->op == OP_FRESH, ok);
    }
}

/** Finds how many rounds take about `seconds`, and how many trips make a round of some 20 us; the
 *  same on both ranks. */
static void calibrate(const bench_t *b, char *out, char *in, double seconds, int n[2])
{
    bool ok = true;
    for (int i = 0; i < WARM_UP; i++)
        once(b, out, in, 1, &ok);
    double start = bench_now();
    once(b, out, in, 1, &ok);
    const double taken = bench_now() - start;
    n[1] = taken < 20e-6 ? (int)(20e-6 / taken) + 1 : 1;
    const double rounds = seconds / (taken * n[1]);
    n[0] = rounds < MIN_ROUNDS ? MIN_ROUNDS : rounds > MAX_ROUNDS ? MAX_ROUNDS : (int)rounds;
    MPI_Bcast(n, 2, MPI_INT, 0, MPI_COMM_WORLD);
}

/** Measured outside of MPI, after all messages are over at both ranks. A layer may still have to
 *  send the end of one, as pml/ob1 does when a queue is full. */
static double line_ns(bench_line_t *line)
{
    MPI_Barrier(MPI_COMM_WORLD);
    return bench_line_ns(line);
}

static void measure(const bench_t *b, int msec, bench_line_t *line, result_t *r)
{
    char *out = bench_map(b->extent), *in = bench_map(b->extent);
    int n[2];
    *r = (result_t){.ok = true};
    fill(b, out);
    memset(in, 1, b->extent);
    MPI_Barrier(MPI_COMM_WORLD);
    r->first = once(b, out, in, 1, &r->ok);
    r->line_ns = line_ns(line);
    calibrate(b, out, in, 1e-3 * msec, n);
    double *seconds = bench_alloc((size_t)n[0] * sizeof(*seconds));
    for (int i = 0; i < n[0]; i++)
        seconds[i] = once(b, out, in, n[1], &r->ok);
    r->median = bench_median(seconds, n[0]);
    r->line_ns = 0.5 * (r->line_ns + line_ns(line));
    const bool used =
        b->op == OP_PINGPONG || b->op == OP_EXCHANGE || (b->op == OP_RATE && b->rank == 1);
    int ok = r->ok && (!used || is_filled(b, in));
    MPI_Allreduce(MPI_IN_PLACE, &ok, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    r->ok = ok != 0;
    free(seconds);
    munmap(out, b->extent);
    munmap(in, b->extent);
}

static void report(const bench_t *b, bench_json_t *json, const result_t *r)
{
    char size[24], block[24];
    printf("%-10s %8s %8s %11.3f %11.3f %8.0f  %s\n", op_names[b->op],
           bench_size_text(b->size, size), b->block ? bench_size_text(b->block, block) : "contig",
           1e6 * r->median, 1e6 * r->first, r->line_ns, r->ok ? "ok" : "WRONG");
    fflush(stdout);
    bench_json_begin(json);
    bench_json_str(json, "op", op_names[b->op]);
    bench_json_num(json, "ranks", 2);
    bench_json_num(json, "size", (double)b->size);
    bench_json_num(json, "block", (double)b->block);
    bench_json_num(json, "seconds", r->median);
    bench_json_num(json, "first_seconds", r->first);
    bench_json_num(json, "line_ns", r->line_ns);
    bench_json_bool(json, "data_ok", r->ok);
    bench_json_end(json);
}

/** False if the size is not a multiple of the block. */
static bool describe(bench_t *b, size_t size, size_t block)
{
    b->size = size;
    b->block = block;
    b->extent = block == 0 ? size : 2 * size;
    b->count = block == 0 ? (int)size : 1;
    if (block == 0)
        return MPI_Type_dup(MPI_BYTE, &b->type) == MPI_SUCCESS;
    if (size % block != 0 || size == block)
        return false;
    MPI_Type_vector((int)(size / block), (int)block, (int)(2 * block), MPI_BYTE, &b->type);
    MPI_Type_commit(&b->type);
    return true;
}

/* ---- program --------------------------------------------------------------------------------- */

static int parse_options(int argc, char **argv, options_t *o)
{
    int c, bad = 0;
    *o = (options_t){.ops = {{OP_PINGPONG}, 1},
                     .sizes = {{8, 65536, 1048576}, 3},
                     .blocks = {{0}, 1},
                     .msec = 30};
    while ((c = getopt(argc, argv, "o:m:b:t:j:h")) != -1) {
        switch (c) {
        case 'o':
            bad |= bench_parse_names(optarg, op_names, OPS, &o->ops);
            break;
        case 'm':
            bad |= bench_parse_sizes(optarg, NULL, &o->sizes);
            break;
        case 'b':
            bad |= bench_parse_sizes(optarg, "contig", &o->blocks);
            break;
        case 't':
            bad |= bench_parse_int("-t", optarg, 1, 100000, &o->msec);
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

static bool run_case(const options_t *o, const int i[3], int rank, bench_line_t *line,
                     bench_json_t *json)
{
    bench_t b = {.rank = rank, .op = (op_t)o->ops.v[i[0]]};
    result_t r;
    if (!describe(&b, o->sizes.v[i[1]], o->blocks.v[i[2]]))
        return true;
    measure(&b, o->msec, line, &r);
    if (rank == 0)
        report(&b, json, &r);
    MPI_Type_free(&b.type);
    return r.ok;
}

static int run(const options_t *o)
{
    bench_json_t *json = NULL;
    bool ok = true;
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int opened = rank == 0 ? bench_json_open(o->json, "p2p", &json) : 0;
    MPI_Bcast(&opened, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (opened != 0)
        return BENCH_EXIT_USAGE;
    if (rank == 0) {
        printf("%-10s %8s %8s %11s %11s %8s\n", "op", "size", "block", "median us", "first us",
               "line ns");
    }
    bench_line_t *line = bench_line_open(MPI_COMM_WORLD);
    for (int a = 0; a < o->ops.n; a++) {
        for (int s = 0; s < o->sizes.n; s++)
            for (int t = 0; t < o->blocks.n; t++)
                ok = run_case(o, (const int[]){a, s, t}, rank, line, json) && ok;
    }
    bench_line_close(line);
    int written = bench_json_close(json);
    int rc = !ok ? BENCH_EXIT_WRONG_DATA : written != 0 ? BENCH_EXIT_USAGE : BENCH_EXIT_OK;
    MPI_Bcast(&rc, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return rc;
}

int main(int argc, char **argv)
{
    options_t o;
    int rank, size, rc = BENCH_EXIT_USAGE;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (parse_options(argc, argv, &o) == 0 && size == 2)
        rc = run(&o);
    else if (rank == 0)
        fputs(usage, stderr);
    MPI_Finalize();
    return rc;
}
