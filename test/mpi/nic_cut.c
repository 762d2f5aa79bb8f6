/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2 */
/* methods: nic */
/* needs: rdma */
/**
 * @file
 * Method nic over a wire that is cut with requests outstanding: they end with errors, as does the
 * flush, and the window can be freed. On the wire between the two devices that test/fabric/roce
 * makes.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test/mpi/counter.h"
#include "test/mpi/testlib.h"

enum { BYTES = 1 << 20, BLOCK = 128, STRIDE = 512, REQUESTS = 8, TRIES = 2000 };

static unsigned char memory[BYTES], mine[BYTES];

/** Loses all packets, or none any more. */
static bool cut(bool whole)
{
    return whole
               ? system(
                     "for i in 0 1; do tc qdisc replace dev wire$i root netem loss 100%; done") == 0
               : system("for i in 0 1; do tc qdisc del dev wire$i root; done") == 0;
}

static void await_key(MPI_Win win, MPI_Datatype type)
{
    counter_t *ops = counter_begin("osc_nicstride_ops_nic");

    for (int i = 0; i < TRIES && counter_read(ops) == 0; i++) {
        TL_MPI(MPI_Put(mine, 1, type, 1, 0, 1, type, win));
        TL_MPI(MPI_Win_flush(1, win));
    }
    TL_CHECK(counter_read(ops) > 0, "no key");
    counter_end(ops);
}

static void cut_under_way(MPI_Win win, MPI_Datatype type)
{
    MPI_Request request[REQUESTS];
    MPI_Status status[REQUESTS];

    for (int i = 0; i < REQUESTS; i++)
        TL_MPI(i % 4 == 3 ? MPI_Rget(memory, 1, type, 1, 0, 1, type, win, &request[i])
                          : MPI_Rput(mine, 1, type, 1, 0, 1, type, win, &request[i]));
    TL_CHECK(cut(true), "the wire cannot be cut");
    TL_CHECK(MPI_Waitall(REQUESTS, request, status) != MPI_SUCCESS, "no error of any request");
    (void)MPI_Put(mine, 8, MPI_BYTE, 1, 0, 8, MPI_BYTE, win);
    TL_CHECK(MPI_Win_flush(1, win) != MPI_SUCCESS, "no error of a flush");
}

int main(int argc, char **argv)
{
    MPI_Datatype type;
    int provided;
    MPI_Win win;

    setenv("OMPI_MCA_osc_nicstride_node", "0", 1);
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    tl_need_ranks(2, 2);
    if (access("/run/roce", F_OK) != 0)
        tl_skip("there is no wire that can be cut");
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    TL_MPI(MPI_Type_create_hvector(BYTES / STRIDE, BLOCK, STRIDE, MPI_BYTE, &type));
    TL_MPI(MPI_Type_commit(&type));
    TL_MPI(MPI_Win_create(memory, BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    TL_MPI(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    TL_MPI(MPI_Win_lock_all(MPI_MODE_NOCHECK, win));
    if (tl_rank() == 0) {
        await_key(win, type);
        cut_under_way(win, type);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    (void)MPI_Win_unlock_all(win);
    (void)MPI_Win_free(&win);
    MPI_Type_free(&type);
    MPI_T_finalize();
    return tl_finish();
}
