/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-4 */
/* p2p: */
/* threads: multiple */
/* mpirun: --mca coll_adapt_priority 100 --mca pml_superpipe_memory 1 */
/**
 * @file
 * Requests that call back, with MPI_THREAD_MULTIPLE: the one that begins many sends or receives in
 * a row has a mutex meanwhile that the callbacks take, as coll/adapt's broadcast does. So what is
 * over before all of them have begun may not call back from there. The root has sent the others
 * more than they have room for, so that it looks for credit at each send.
 */
#include "test/mpi/testlib.h"

#include <stdlib.h>

enum { ROUNDS = 20, COUNT = 51200, FLOOD = 1200, BYTES = 1024, TAG = 5 };

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

static void broadcast(int *values, int round)
{
    for (int i = 0; i < COUNT; i++)
        values[i] = tl_rank() == 0 ? round * COUNT + i : -1;
    TL_MPI(MPI_Bcast(values, COUNT, MPI_INT, 0, MPI_COMM_WORLD));
    for (int i = 0; i < COUNT; i++)
        TL_CHECK(values[i] == round * COUNT + i, "round %d: number %d is %d", round, i, values[i]);
}

int main(int argc, char **argv)
{
    setenv("OMPI_MCA_coll_adapt_bcast_algorithm", "6", 0);
    setenv("OMPI_MCA_coll_adapt_bcast_segment_size", "1024", 0);
    setenv("OMPI_MCA_coll_adapt_bcast_max_send_requests", "200", 0);
    setenv("OMPI_MCA_coll_adapt_bcast_max_recv_requests", "200", 0);
    tl_init(&argc, &argv, MPI_THREAD_MULTIPLE);
    MPI_Request *requests = tl_alloc((size_t)FLOOD * (size_t)tl_size() * sizeof(*requests));
    int *values = tl_alloc(COUNT * sizeof(int));

    if (tl_rank() == 0)
        begin_flood(requests);
    for (int round = 0; round < ROUNDS; round++)
        broadcast(values, round);
    if (tl_rank() == 0)
        TL_MPI(MPI_Waitall(FLOOD * (tl_size() - 1), requests, MPI_STATUSES_IGNORE));
    else
        receive_flood();
    free(values);
    free(requests);
    return tl_finish();
}
