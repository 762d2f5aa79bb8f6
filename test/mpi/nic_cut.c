/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2 */
/* methods: nic */
/* needs: rdma */
/**
 * @file
 * Method nic over a wire that is cut with requests outstanding: those that have not come end with
 * errors. When the wire is whole again the window goes on, by message. On the wire between the two
 * devices that test/fabric/roce makes.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test/mpi/adapter.h"
#include "test/mpi/testlib.h"

enum { BYTES = 1 << 20, BLOCK = 128, STRIDE = 512, REQUESTS = 8 };

static const unsigned char mark = 77;
static unsigned char memory[BYTES], mine[BYTES];

/** Loses all packets, or none any more. */
static bool cut(bool whole)
{
    return whole
               ? system(
                     "for i in 0 1; do tc qdisc replace dev wire$i root netem loss 100%; done") == 0
               : system("for i in 0 1; do tc qdisc del dev wire$i root; done") == 0;
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
    TL_CHECK(cut(false), "the wire cannot be mended");
    (void)MPI_Win_flush(1, win);
    TL_MPI(MPI_Put(&mark, 1, MPI_BYTE, 1, BYTES - 1, 1, MPI_BYTE, win));
    TL_MPI(MPI_Win_flush(1, win));
}

int main(int argc, char **argv)
{
    MPI_Datatype type;
    MPI_Win win;

    setenv("OMPI_MCA_osc_nicstride_node", "0", 1);
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    tl_need_ranks(2, 2);
    if (access("/run/roce", F_OK) != 0)
        tl_skip("there is no wire that can be cut");
    adapter_need();
    TL_MPI(MPI_Type_create_hvector(BYTES / STRIDE, BLOCK, STRIDE, MPI_BYTE, &type));
    TL_MPI(MPI_Type_commit(&type));
    TL_MPI(MPI_Win_create(memory, BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    TL_MPI(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    TL_MPI(MPI_Win_lock_all(MPI_MODE_NOCHECK, win));
    if (tl_rank() == 0) {
        TL_CHECK(adapter_await(win, 1, 0, mine, type), "no key");
        cut_under_way(win, type);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    TL_CHECK(tl_rank() == 0 || memory[BYTES - 1] == mark, "nothing has come by message");
    TL_MPI(MPI_Win_unlock_all(win));
    TL_MPI(MPI_Win_free(&win));
    MPI_Type_free(&type);
    MPI_T_finalize();
    return tl_finish();
}
