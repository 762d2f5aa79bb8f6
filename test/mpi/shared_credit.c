/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2 4 */
/* methods: auto */
/**
 * @file
 * Windows that share what a target grants: each process is a node of its own here and has one
 * mebibyte for all, and messages are long. A request waits for credit that another window has; a
 * put that waits with its lock has credit that a long accumulate needs; a put is longer than what
 * may wait with a lock. Rank 0 sends, rank 1 is the target.
 */
#include "test/mpi/testlib.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BYTES = 1 << 20, PUTS = 95, BLOCKED = 8192, LONG = 800000, HELD = 2000 };

static char *memory[2];
static MPI_Win win[2];
static double *values;

static void make(void)
{
    for (int i = 0; i < 2; i++) {
        memory[i] = tl_alloc(BYTES);
        memset(memory[i], 0, BYTES);
        TL_MPI(MPI_Win_create(memory[i], BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win[i]));
    }
    values = tl_alloc(BYTES);
    for (size_t i = 0; i < BYTES / sizeof(double); i++)
        values[i] = 1.5;
    MPI_Barrier(MPI_COMM_WORLD);
}

static void put8(MPI_Win w, MPI_Aint at)
{
    TL_MPI(MPI_Put(values, 8, MPI_BYTE, 1, at, 8, MPI_BYTE, w));
}

static int sum(MPI_Win w, int bytes)
{
    return MPI_Accumulate(values, bytes / 8, MPI_DOUBLE, 1, 0, bytes / 8, MPI_DOUBLE, MPI_SUM, w);
}

/** Nobody but the target's answers to the first window tells that there is credit again. */
static void request_waits(int rank)
{
    enum { PATIENCE = TL_PATIENCE };
    MPI_Request request;
    int done = 0;

    if (rank == 0) {
        const double end = MPI_Wtime() + PATIENCE;

        for (int i = 0; i < 2; i++) {
            TL_MPI(MPI_Win_lock_all(MPI_MODE_NOCHECK, win[i]));
            put8(win[i], BYTES - 8);
            TL_MPI(MPI_Win_flush(1, win[i]));
        }
        for (int i = 0; i < PUTS; i++)
            put8(win[0], 8 * i);
        TL_MPI(MPI_Raccumulate(values, BLOCKED / 8, MPI_DOUBLE, 1, 0, BLOCKED / 8, MPI_DOUBLE,
                               MPI_SUM, win[1], &request));
        while (!done && MPI_Wtime() < end)
            TL_MPI(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
        TL_CHECK(done, "the request has not ended");
        for (int i = 0; i < 2; i++)
            TL_MPI(MPI_Win_unlock_all(win[i]));
        if (!done)
            TL_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
    } else if (rank == 1) {
        usleep(300000);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/** The put is not sent before its lock is wanted. */
static void put_waits_with_lock(int rank)
{
    if (rank == 0) {
        TL_MPI(MPI_Win_lock_all(0, win[1]));
        TL_MPI(MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win[0]));
        put8(win[0], 0);
        TL_MPI(sum(win[1], LONG));
        TL_MPI(MPI_Win_flush(1, win[1]));
        TL_MPI(MPI_Win_unlock(1, win[0]));
        TL_MPI(MPI_Win_unlock_all(win[1]));
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void put_is_too_long(int rank)
{
    unsigned char got[HELD], want[HELD];

    memset(want, 7, sizeof(want));
    memset(got, 0, sizeof(got));
    if (rank == 0) {
        TL_MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win[0]));
        TL_MPI(MPI_Put(want, HELD, MPI_BYTE, 1, 0, HELD, MPI_BYTE, win[0]));
        TL_MPI(MPI_Win_unlock(1, win[0]));
        TL_MPI(MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win[0]));
        TL_MPI(MPI_Get(got, HELD, MPI_BYTE, 1, 0, HELD, MPI_BYTE, win[0]));
        TL_MPI(MPI_Win_unlock(1, win[0]));
        TL_BYTES(got, want, HELD, "put");
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    setenv("OMPI_MCA_osc_nicstride_node", "0", 1);
    setenv("OMPI_MCA_osc_nicstride_memory", "1", 1);
    setenv("OMPI_MCA_pml_superpipe_memory", "1", 1);
    setenv("UCX_TLS", "tcp", 1);
    setenv("OMPI_MCA_osc_nicstride_cost", "message=2000", 1);
    setenv("OMPI_MCA_osc_nicstride_method", "pack", 1);
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    const int rank = tl_rank();

    make();
    request_waits(rank);
    put_waits_with_lock(rank);
    put_is_too_long(rank);
    for (int i = 0; i < 2; i++) {
        TL_MPI(MPI_Win_free(&win[i]));
        free(memory[i]);
    }
    free(values);
    return tl_finish();
}
