/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-4 */
/* p2p: */
/* mpirun: --mca coll_adapt_priority 100 */
/**
 * @file
 * Requests that call back when they are over, and send from there: coll/adapt's broadcasts, of
 * many segments.
 */
#include "test/mpi/testlib.h"

#include <stdlib.h>

enum { ROUNDS = 40, MOST = 40000 };

static void broadcast(int *values, int n, int root, int round)
{
    for (int i = 0; i < n; i++)
        values[i] = tl_rank() == root ? round * MOST + i : -1;
    TL_MPI(MPI_Bcast(values, n, MPI_INT, root, MPI_COMM_WORLD));
    for (int i = 0; i < n; i++)
        TL_CHECK(values[i] == round * MOST + i, "round %d: number %d is %d", round, i, values[i]);
}

int main(int argc, char **argv)
{
    setenv("OMPI_MCA_coll_adapt_bcast_segment_size", "1024", 0);
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    int *values = tl_alloc(MOST * sizeof(int));
    for (int round = 0; round < ROUNDS; round++)
        broadcast(values, round % 4 == 0 ? MOST : 1 << (round % 12), round % tl_size(), round);
    free(values);
    return tl_finish();
}
