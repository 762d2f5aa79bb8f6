/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file How fast the pipeline is between two processes, printed for who tunes it; nothing is
 * checked.
 */
#include "test/mpi/pipeline_traffic.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/pipeline/shm/carrier_shm.h"
#include "test/mpi/testlib.h"

enum { ROUNDS = 101 };

/** Seconds. */
typedef struct times {
    double first, best, median; /**< the latter two of the second half */
} times_t;

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/** Starts them all and waits for them. */
static void run_round(move_t *m, int n)
{
    for (int i = 0; i < n; i++)
        while (!move_start(&m[i]))
            onic_transport_progress();
    for (int i = 0; i < n; i++)
        while (!move_is_done(&m[i]))
            onic_transport_progress();
}

/** Rounds of `at_once` transfers before a wait. */
static times_t time_moves(move_kind_t kind, shape_t shape, uint64_t len, int at_once)
{
    static move_t m[64];
    double t[ROUNDS];

    for (int i = 0; i < at_once; i++) {
        m[i] = (move_t){.kind = kind, .target = 1, .mine = shape, .theirs = shape, .len = len};
        move_prepare(&m[i]);
    }
    move_make(&m[0]);
    while (!move_is_done(&m[0]))
        onic_transport_progress();
    for (int round = 0; round < ROUNDS; round++) {
        const double begin = MPI_Wtime();
        run_round(m, at_once);
        t[round] = MPI_Wtime() - begin;
    }
    m[0].verify = true;
    if (kind == GET)
        memory_clear(&m[0].memory);
    run_round(m, 1);
    for (int i = 0; i < at_once; i++) {
        m[i].verify = i == 0;
        move_finish(&m[i]);
    }
    qsort(&t[ROUNDS / 2], ROUNDS - ROUNDS / 2, sizeof(t[0]), compare);
    return (times_t){t[0], t[ROUNDS / 2], t[ROUNDS / 2 + ROUNDS / 4]};
}

static void print_speed(move_kind_t kind, const char *what, uint64_t len, int at_once)
{
    static const char *const names[] = {"contiguous", "8 B", "64 B", "1 KiB"};

    for (shape_t shape = CONTIG; shape <= BLOCKS_1024; shape++) {
        const times_t t = time_moves(kind, shape, len, at_once);
        const double gb = (double)len * at_once / 1e9;
        printf("%s %2d x %8llu, %-10s  first %6.2f  median %6.2f  best %6.2f GB/s\n", what, at_once,
               (unsigned long long)len, names[shape], gb / t.first, gb / t.median, gb / t.best);
    }
}

void moves_measure(size_t rx_pool, size_t buffer)
{
    moves.checks = false;
    moves_open(rx_pool, buffer);
    if (tl_rank() == 0) {
        printf("receive pool %zu, buffers of %u\n", onic_pipeline_rx_bytes(),
               onic_node_state.rx_pool.buffer_bytes);
        for (int i = 0; i < 2; i++) {
            print_speed(i ? GET : PUT, i ? "get" : "put", (UINT64_C(1) << 20), 1);
            print_speed(i ? GET : PUT, i ? "get" : "put", 64 << 10, 1);
            print_speed(i ? GET : PUT, i ? "get" : "put", (UINT64_C(1) << 20), 16);
        }
    }
    moves_meet();
    TL_CHECK(atomic_load(&moves.wrong) == 0, "%ld transfers were wrong at their target",
             atomic_load(&moves.wrong));
    moves_close();
    moves_free_targets();
}
