/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-4 */
/* p2p: */
/* arguments: alone */
/* arguments: threads */
/* mpirun: --mca coll_adapt_priority 100 --mca pml_superpipe_memory 1 */
/**
 * @file
 * Requests that call back when they are over, and send from there: coll/adapt's broadcasts, of
 * many segments.
 *
 *  alone    one thread
 *  threads  MPI_THREAD_MULTIPLE: the one that begins many sends or receives in a row has a mutex
 *           meanwhile that the callbacks take, so what is over before all of them have begun may
 *           not call back from there. The root has sent the others more than they have room for,
 *           so that it looks for credit at each send.
 */
#include "test/mpi/testlib.h"

#include <stdlib.h>

enum { ROUNDS = 40, MOST = 51200, FLOOD = 1200, BYTES = 1024, TAG = 5 };

static char bytes[BYTES];

static void begin_flood(MPI_Request *requests)
{
    for (int i = 0; i < FLOOD * (tl_size() - 1); i++)
        TL_MPI(MPI_Isend(bytes, BYTES, MPI_BYTE, 1 + i / FLOOD, TAG, MPI_COMM_WORLD, &requests[i]));
}

static void receive_flood(void)
{
    for (int i = 0; i < FLOOD; i++)
        TL_MPI(MPI_Recv(bytes, BYTES, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}

static void broadcast(int *values, int n, int root, int round)
{
    for (int i = 0; i < n; i++)
        values[i] = tl_rank() == root ? round * MOST + i : -1;
    TL_MPI(MPI_Bcast(values, n, MPI_INT, root, MPI_COMM_WORLD));
    for (int i = 0; i < n; i++)
        TL_CHECK(values[i] == round * MOST + i, "round %d: number %d is %d", round, i, values[i]);
}

static void test_flooded(int *values)
{
    MPI_Request *requests = tl_alloc((size_t)FLOOD * (size_t)tl_size() * sizeof(*requests));

    if (tl_rank() == 0)
        begin_flood(requests);
    for (int round = 0; round < ROUNDS / 2; round++)
        broadcast(values, MOST, 0, round);
    if (tl_rank() == 0)
        TL_MPI(MPI_Waitall(FLOOD * (tl_size() - 1), requests, MPI_STATUSES_IGNORE));
    else
        receive_flood();
    free(requests);
}

int main(int argc, char **argv)
{
    const bool threads = tl_asked_for("threads", argc, argv);

    setenv("OMPI_MCA_coll_adapt_bcast_segment_size", "1024", 0);
    if (threads) {
        setenv("OMPI_MCA_coll_adapt_bcast_algorithm", "6", 0);
        setenv("OMPI_MCA_coll_adapt_bcast_max_send_requests", "200", 0);
        setenv("OMPI_MCA_coll_adapt_bcast_max_recv_requests", "200", 0);
    }
    tl_init(&argc, &argv, threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE);
    int *values = tl_alloc(MOST * sizeof(int));
    for (int round = 0; round < ROUNDS && !threads; round++)
        broadcast(values, round % 4 == 0 ? MOST : 1 << (round % 12), round % tl_size(), round);
    if (threads)
        test_flooded(values);
    free(values);
    return tl_finish();
}
