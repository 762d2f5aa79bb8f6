/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Threads that wait for messages at the same time, perhaps on fewer processors than threads: each
 * alternately sends to and receives from the thread with the same number in the other rank of a
 * pair. Prints the time of one message and the processor time of all ranks for it. Plain MPI.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "perf/bench.h"

enum { THREADS_MAX = 64, ROUNDS = 5 };

typedef enum way { WAY_RECV, WAY_PROBE, WAYS } way_t;
static const char *const way_names[WAYS] = {"recv", "probe"};

typedef struct options {
    bench_list_t ways, sizes;
    int threads, milliseconds;
    const char *json;
} options_t;

typedef struct worker {
    pthread_t thread;
    int number, rank, messages;
    way_t way;
    size_t bytes;
    char *out, *in;
} worker_t;

static const char usage[] = "usage: mpirun -n RANKS p2p_threads [options]\n"
                            "  -T N      threads of each rank (4)\n"
                            "  -o LIST   recv, or probe before each (all)\n"
                            "  -m LIST   bytes of a message (8,64K,1M,16M)\n"
                            "  -t MS     time for each case (100)\n"
                            "  -j FILE   write the results as JSON\n";

static double processor_seconds(void)
{
    struct rusage u;

    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static void receive(const worker_t *w)
{
    const int from = w->rank ^ 1;

    if (w->way == WAY_PROBE)
        MPI_Probe(from, w->number, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Recv(w->in, (int)w->bytes, MPI_BYTE, from, w->number, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void *work(void *arg)
{
    const worker_t *w = arg;

    for (int i = 0; i < w->messages; i++)
        if (w->rank % 2 == i % 2)
            MPI_Send(w->out, (int)w->bytes, MPI_BYTE, w->rank ^ 1, w->number, MPI_COMM_WORLD);
        else
            receive(w);
    return NULL;
}

/** Seconds for `messages` messages of each thread. */
static double run_all(worker_t *w, int threads, int messages)
{
    MPI_Barrier(MPI_COMM_WORLD);
    const double began = bench_now();
    for (int i = 0; i < threads; i++) {
        w[i].messages = messages;
        if (pthread_create(&w[i].thread, NULL, work, &w[i]) != 0)
            MPI_Abort(MPI_COMM_WORLD, BENCH_EXIT_NO_MEMORY);
    }
    for (int i = 0; i < threads; i++)
        pthread_join(w[i].thread, NULL);
    MPI_Barrier(MPI_COMM_WORLD);
    return bench_now() - began;
}

/** The number of messages that takes the requested time, the same on all ranks. */
static int calibrate(worker_t *w, const options_t *o)
{
    double seconds = run_all(w, o->threads, 2);
    int messages = 2;

    while (seconds < 1e-3 * o->milliseconds / ROUNDS && messages < 1 << 20) {
        messages *= 2;
        seconds = run_all(w, o->threads, messages);
        MPI_Bcast(&seconds, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    }
    return messages;
}

static void measure(bench_run_t *run, worker_t *w, const options_t *o)
{
    const int messages = calibrate(w, o);
    double time[ROUNDS], work_time[ROUNDS];
    char text[24];

    for (int i = 0; i < ROUNDS; i++) {
        const double before = processor_seconds();
        time[i] = run_all(w, o->threads, messages);
        const double mine = processor_seconds() - before;
        MPI_Allreduce(&mine, &work_time[i], 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    const double each = 1e6 / ((double)messages * o->threads);
    const double us = bench_median(time, ROUNDS) * each;
    const double work_us = bench_median(work_time, ROUNDS) * each;
    if (run->json != NULL) {
        bench_json_begin(run->json);
        bench_json_str(run->json, "case", way_names[w->way]);
        bench_json_num(run->json, "bytes", (double)w->bytes);
        bench_json_num(run->json, "us", us);
        bench_json_num(run->json, "processor_us", work_us);
        bench_json_end(run->json);
    }
    if (w->rank == 0) {
        printf("%-6s %6s %10.2f us, processors %10.2f us\n", way_names[w->way],
               bench_size_text(w->bytes, text), us, work_us);
        fflush(stdout);
    }
    run->measured++;
}

static void run_case(bench_run_t *run, const options_t *o, way_t way, size_t bytes)
{
    worker_t w[THREADS_MAX];

    for (int i = 0; i < o->threads; i++) {
        w[i] = (worker_t){.number = i, .way = way, .bytes = bytes};
        MPI_Comm_rank(MPI_COMM_WORLD, &w[i].rank);
        w[i].out = bench_alloc(bytes);
        w[i].in = bench_alloc(bytes);
    }
    measure(run, w, o);
    for (int i = 0; i < o->threads; i++) {
        free(w[i].out);
        free(w[i].in);
    }
}

static int read_options(int argc, char **argv, options_t *o)
{
    int c, bad = bench_parse_sizes("8,64K,1M,16M", NULL, &o->sizes) |
                 bench_parse_names("recv,probe", way_names, WAYS, &o->ways);

    o->threads = 4;
    o->milliseconds = 100;
    while ((c = getopt(argc, argv, "T:o:m:t:j:")) != -1) {
        switch (c) {
        case 'T':
            bad |= bench_parse_int("-T", optarg, 1, THREADS_MAX, &o->threads);
            break;
        case 'o':
            bad |= bench_parse_names(optarg, way_names, WAYS, &o->ways);
            break;
        case 'm':
            bad |= bench_parse_sizes(optarg, NULL, &o->sizes);
            break;
        case 't':
            bad |= bench_parse_int("-t", optarg, 1, 100000, &o->milliseconds);
            break;
        case 'j':
            o->json = optarg;
            break;
        default:
            bad = -1;
        }
    }
    return bad == 0 && optind == argc ? 0 : -1;
}

int main(int argc, char **argv)
{
    options_t o = {.json = NULL};
    bench_run_t run;
    int provided, size, rank;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (read_options(argc, argv, &o) != 0 || size % 2 != 0 || provided < MPI_THREAD_MULTIPLE) {
        if (rank == 0)
            fputs(usage, stderr);
        MPI_Finalize();
        return BENCH_EXIT_USAGE;
    }
    if (bench_run_open(&run, MPI_COMM_WORLD, o.json, "p2p_threads") != 0) {
        MPI_Finalize();
        return BENCH_EXIT_USAGE;
    }
    for (int i = 0; i < o.ways.n; i++)
        for (int k = 0; k < o.sizes.n; k++)
            run_case(&run, &o, (way_t)o.ways.v[i], o.sizes.v[k]);
    const int code = bench_run_close(&run);
    MPI_Finalize();
    return code;
}
