/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Cache-line ping-pong between two ranks.
 *
 * On virtual machines two CPUs are sometimes near each other and sometimes far apart, and all
 * communication between them then differs by a factor of several. The latency of one line tells in
 * which state a figure was measured, so it is measured with each.
 */
#include <fcntl.h>
#include <math.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "perf/bench.h"

enum { SAMPLES = 9, ROUND_TRIPS = 64, WARM_UP = 16, SPINS_BEFORE_YIELD = 20000, PAGE = 4096 };

/* More than a line takes anywhere: then both ranks run on one processor, because the kernel puts a
 * woken process beside the one that woke it, until it spreads them. */
#define ONE_PROCESSOR_NS 1000.0
#define SPREAD_SECONDS   0.05

typedef struct shared_word {
    _Alignas(128) _Atomic uint64_t turn;
    bool again; /* rank 0 writes it before an odd turn */
} shared_word_t;

struct bench_line {
    shared_word_t *shared; /* NULL if there is no shared memory */
    uint64_t turn;         /* the last value this rank knows; continues from call to call */
    int rank;
};

static void *map_page(const char *name, bool create)
{
    int fd = shm_open(name, create ? O_CREAT | O_EXCL | O_RDWR : O_RDWR, 0600);
    if (fd < 0)
        return NULL;
    void *p = MAP_FAILED;
    if (!create || ftruncate(fd, PAGE) == 0)
        p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    return p == MAP_FAILED ? NULL : p;
}

bench_line_t *bench_line_open(MPI_Comm comm)
{
    bench_line_t *line = bench_alloc(sizeof(*line));
    char name[64] = "";
    int ranks;
    MPI_Comm_rank(comm, &line->rank);
    MPI_Comm_size(comm, &ranks);
    if (line->rank == 0) {
        snprintf(name, sizeof(name), "/ompi-nic-line-%ld-%.0f", (long)getpid(), 1e9 * bench_now());
        line->shared = map_page(name, true);
    }
    MPI_Bcast(name, sizeof(name), MPI_CHAR, 0, comm);
    if (line->rank == 1)
        line->shared = map_page(name, false);
    int ok = ranks > 1 && (line->rank > 1 || line->shared != NULL);
    MPI_Allreduce(MPI_IN_PLACE, &ok, 1, MPI_INT, MPI_MIN, comm);
    if (line->rank == 0)
        shm_unlink(name);
    if (!ok && line->shared != NULL) {
        munmap(line->shared, PAGE);
        line->shared = NULL;
    }
    return line;
}

static void wait_for(shared_word_t *shared, uint64_t turn)
{
    for (unsigned spins = 0; atomic_load_explicit(&shared->turn, memory_order_acquire) != turn;) {
        /* With fewer cores than ranks the other side runs only when this one yields. */
        if (++spins % SPINS_BEFORE_YIELD == 0)
            sched_yield();
    }
}

/** Rank 0 writes the odd turns, rank 1 answers with the even ones. */
static void round_trips(bench_line_t *line, int n)
{
    for (int i = 0; i < n; i++, line->turn += 2) {
        if (line->rank == 0) {
            atomic_store_explicit(&line->shared->turn, line->turn + 1, memory_order_release);
            wait_for(line->shared, line->turn + 2);
        } else {
            wait_for(line->shared, line->turn + 1);
            atomic_store_explicit(&line->shared->turn, line->turn + 2, memory_order_release);
        }
    }
}

static double measure(bench_line_t *line)
{
    double sample[SAMPLES];
    round_trips(line, WARM_UP);
    for (int s = 0; s < SAMPLES; s++) {
        double start = bench_now();
        round_trips(line, ROUND_TRIPS);
        sample[s] = bench_now() - start;
    }
    return 1e9 * bench_median(sample, SAMPLES) / (2.0 * ROUND_TRIPS);
}

double bench_line_ns(bench_line_t *line)
{
    if (line->shared == NULL || line->rank > 1)
        return NAN;
    const double start = bench_now();
    double ns;
    do {
        ns = measure(line);
        if (line->rank == 0)
            line->shared->again = ns > ONE_PROCESSOR_NS && bench_now() - start < SPREAD_SECONDS;
        round_trips(line, 1);
    } while (line->shared->again);
    return ns;
}

void bench_line_close(bench_line_t *line)
{
    if (line->shared != NULL)
        munmap(line->shared, PAGE);
    free(line);
}
