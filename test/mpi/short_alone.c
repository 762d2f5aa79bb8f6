/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2 */
/* methods: auto */
/**
 * @file
 * Gets of 512 bytes where a message costs much: one that is alone between two calls that
 * synchronise goes by single copy, but many travel together, by message.
 */
#include "test/mpi/testlib.h"

#include <stdlib.h>
#include <string.h>

#include "test/mpi/counter.h"

enum { BYTES = 512, MANY = 64, ROUNDS = 50 };

static char *memory, *data;
static MPI_Win win;

/** At each distance a message that is waited for takes a millisecond. */
#define SLOW " pack_get=1e6/0/0/0/0/0/0:0/0/0/0/0/0/0\n"

/** So many gets, each of so many bytes, then the call that synchronises. */
static void get(int n, int bytes, bool epoch)
{
    memset(data, 0, (size_t)n * (size_t)bytes);
    if (!epoch)
        TL_MPI(MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win));
    for (int i = 0; i < n; i++)
        TL_MPI(MPI_Get(data + i * bytes, bytes, MPI_BYTE, 1, i * bytes, bytes, MPI_BYTE, win));
    if (!epoch)
        TL_MPI(MPI_Win_unlock(1, win));
}

/** So many gets of rank 0 go by single copy, of `n` in each round: between locks, or fences. */
static unsigned long long copies(int rank, int n, int bytes, bool epoch)
{
    counter_t *c = counter_begin("osc_nicstride_ops_cma");
    unsigned long long done;

    for (int round = 0; round < ROUNDS; round++) {
        if (rank == 0)
            get(n, bytes, epoch);
        if (epoch)
            TL_MPI(MPI_Win_fence(0, win));
        if (rank == 0)
            TL_BYTES(data, memory, (size_t)n * (size_t)bytes, "%d gets", n);
    }
    done = c != NULL ? counter_read(c) : 0;
    counter_end(c);
    return done;
}

int main(int argc, char **argv)
{
    int provided;

    setenv("OMPI_MCA_osc_nicstride_cost", "near:" SLOW "package:" SLOW "far:" SLOW, 1);
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    const int rank = tl_rank();

    memory = tl_alloc(MANY * BYTES);
    data = tl_alloc(MANY * BYTES);
    memset(memory, 7, MANY * BYTES);
    TL_MPI(MPI_Win_create(memory, MANY * BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    /* A long one goes so where the kernel allows it. */
    const bool can = copies(rank, 1, MANY * BYTES, false) > 0;
    for (int epoch = 0; epoch < 2; epoch++) {
        if (epoch)
            TL_MPI(MPI_Win_fence(0, win));
        const unsigned long long alone = copies(rank, 1, BYTES, epoch),
                                 many = copies(rank, MANY, BYTES, epoch);

        TL_CHECK(rank != 0 || !can || alone > ROUNDS / 2, "%llu of %d alone by single copy", alone,
                 ROUNDS);
        /* Of those in locks all go so while the target is not in MPI. */
        TL_CHECK(rank != 0 || !epoch || many < MANY * ROUNDS / 4, "%llu of %d by single copy", many,
                 MANY * ROUNDS);
    }
    MPI_T_finalize();
    TL_MPI(MPI_Win_free(&win));
    return tl_finish();
}
