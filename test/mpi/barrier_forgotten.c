/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-4 */
/* engines: auto put2 datagram lossy */
/* leaks: expected */
/**
 * @file
 * Communicators that are never freed, and a nonblocking barrier that is never waited for and may
 * not be complete: MPI_Finalize ends all the same, and leaves no name in shared memory.
 */
#include "test/mpi/meet.h"

#include <unistd.h>

int main(int argc, char **argv)
{
    MPI_Comm comms[4];
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    meet_begin();
    for (int i = 0; i < 4; i++) {
        TL_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]));
        meet_t m = meet_new(comms[i]);
        for (int k = 0; k < 20; k++)
            meet_barrier(&m, "never freed");
        meet_free(&m);
    }
    meet_check_engine(4 * 12);
    MPI_Request forgotten;
    for (int k = 0; k < 8; k++)
        TL_MPI(MPI_Barrier(MPI_COMM_WORLD));
    TL_MPI(MPI_Ibarrier(MPI_COMM_WORLD, &forgotten));
    /* One leaves late. */
    if (tl_rank() == 0)
        usleep(200000);
    return meet_finish();
}
