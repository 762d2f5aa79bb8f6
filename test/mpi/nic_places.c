/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 4 */
/* methods: nic */
/**
 * @file
 * Method nic with fewer connections than targets: the last one is reached by message.
 */
#include <stdlib.h>
#include <string.h>

#include "test/mpi/adapter.h"
#include "test/mpi/testlib.h"

enum { BYTES = 64, CONNECTIONS = 2 };

static void test(int rank)
{
    const unsigned char bytes[BYTES] = {1};
    unsigned char *base;
    MPI_Datatype block;
    MPI_Win win;

    TL_MPI(MPI_Type_contiguous(BYTES, MPI_BYTE, &block));
    TL_MPI(MPI_Type_commit(&block));
    TL_MPI(MPI_Win_allocate(BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    memset(base, 0, BYTES);
    MPI_Barrier(MPI_COMM_WORLD);
    TL_MPI(MPI_Win_lock_all(MPI_MODE_NOCHECK, win));
    for (int target = 1; target < 4 && rank == 0; target++)
        TL_CHECK(adapter_await(win, target, 0, bytes, block) == (target <= CONNECTIONS), "rank %d",
                 target);
    TL_MPI(MPI_Win_unlock_all(win));
    MPI_Barrier(MPI_COMM_WORLD);
    TL_CHECK(base[0] == (rank > 0), "a byte is %d", base[0]);
    TL_MPI(MPI_Win_free(&win));
    TL_MPI(MPI_Type_free(&block));
}

int main(int argc, char **argv)
{
    int rank;

    setenv("OMPI_MCA_osc_nicstride_node", "0", 1);
    setenv("OMPI_MCA_osc_nicstride_cma", "0", 1);
    setenv("OMPI_MCA_osc_nicstride_nic_connections", "2", 1);
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    tl_need_ranks(4, 4);
    adapter_need();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    test(rank);
    MPI_T_finalize();
    return tl_finish();
}
