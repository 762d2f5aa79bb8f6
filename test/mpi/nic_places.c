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

#include "test/mpi/counter.h"
#include "test/mpi/nic_device.h"
#include "test/mpi/testlib.h"

enum { PUTS = 500, BYTES = 64, CONNECTIONS = 2 };

/** Puts to the target until one goes by the adapter. */
static bool comes_to(int target, MPI_Win win)
{
    counter_t *c = counter_begin("osc_nicstride_ops_nic");
    const unsigned char bytes[BYTES] = {1};
    bool by_nic = false;

    for (int i = 0; i < PUTS && !by_nic; i++) {
        TL_MPI(MPI_Put(bytes, BYTES, MPI_BYTE, target, 0, BYTES, MPI_BYTE, win));
        TL_MPI(MPI_Win_flush(target, win));
        by_nic = counter_read(c) > 0;
    }
    counter_end(c);
    return by_nic;
}

static void test(int rank)
{
    unsigned char *base;
    MPI_Win win;

    TL_MPI(MPI_Win_allocate(BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    memset(base, 0, BYTES);
    MPI_Barrier(MPI_COMM_WORLD);
    TL_MPI(MPI_Win_lock_all(MPI_MODE_NOCHECK, win));
    for (int target = 1; target < 4 && rank == 0; target++)
        TL_CHECK(comes_to(target, win) == (target <= CONNECTIONS), "rank %d", target);
    TL_MPI(MPI_Win_unlock_all(win));
    MPI_Barrier(MPI_COMM_WORLD);
    TL_CHECK(base[0] == (rank > 0), "a byte is %d", base[0]);
    TL_MPI(MPI_Win_free(&win));
}

int main(int argc, char **argv)
{
    int provided, rank;

    setenv("OMPI_MCA_osc_nicstride_node", "0", 1);
    setenv("OMPI_MCA_osc_nicstride_cma", "0", 1);
    setenv("OMPI_MCA_osc_nicstride_nic_connections", "2", 1);
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    tl_need_ranks(4, 4);
    nic_need_device();
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    if (!counter_loaded("osc_nicstride_messages"))
        tl_skip("osc/nicstride is not loaded");
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    test(rank);
    MPI_T_finalize();
    return tl_finish();
}
