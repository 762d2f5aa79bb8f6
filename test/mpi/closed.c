/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-4 */
/* engines: shm */
/**
 * @file
 * Processes that must not look into each other share memory all the same: windows and barriers
 * that are made while it is so, either of them first.
 */
#include "test/mpi/meet.h"

static void window(void)
{
    int next = (tl_rank() + 1) % tl_size(), before = (tl_rank() + tl_size() - 1) % tl_size();
    int *base, word = 100 + tl_rank();
    MPI_Win win;

    TL_MPI(MPI_Win_allocate_shared(4096, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    TL_MPI(MPI_Win_fence(0, win));
    TL_MPI(MPI_Put(&word, 1, MPI_INT, next, 8, 1, MPI_INT, win));
    TL_MPI(MPI_Win_fence(0, win));
    TL_CHECK(base[2] == 100 + before, "%d", base[2]);
    TL_MPI(MPI_Win_free(&win));
}

static void barriers(void)
{
    meet_t m = meet_new(MPI_COMM_WORLD);

    for (int i = 0; i < 100; i++)
        meet_barrier(&m, "closed");
    meet_free(&m);
}

int main(int argc, char **argv)
{
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    meet_begin();
    if (tl_next_kind(TL_DYNAMIC) != TL_SHARED || meet_engine() == NULL)
        tl_skip("another component does the windows or the barriers");
    /* UCX 1.18 ends a process in whose connections another finds, on the way, other transports than
     * it did: pml ucx has them before, and all are closed before anybody goes on. */
    for (int peer = 0; peer < tl_size(); peer++) {
        int mine = tl_rank(), theirs;
        TL_MPI(MPI_Sendrecv(&mine, 1, MPI_INT, peer, 0, &theirs, 1, MPI_INT, peer, 0,
                            MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    }
    TL_MPI(MPI_Barrier(MPI_COMM_WORLD));
    tl_closed(true);
    TL_MPI(MPI_Barrier(MPI_COMM_WORLD));
    if (tl_size() % 2) {
        barriers();
        window();
    } else {
        window();
        barriers();
    }
    tl_closed(false);
    meet_check_engine(50);
    return meet_finish();
}
