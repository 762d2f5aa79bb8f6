/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2 */
/* windows: create */
/* methods: pack */
/**
 * @file
 * The user has made TCP's receive segments smaller than what the component would send at once: UCX
 * does not start with that, so what is sent is made smaller, too. Once there was no window to be
 * had.
 */
#include "test/mpi/testlib.h"

#include <stdlib.h>

enum { INTS = 300000 };

int main(int argc, char **argv)
{
    setenv("UCX_TLS", "tcp,self", 1);
    setenv("UCX_TCP_RX_SEG_SIZE", "64k", 1);
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    tl_window_t w =
        tl_win_make(tl_first_kind(), INTS * sizeof(int), 1, MPI_COMM_WORLD, MPI_INFO_NULL);
    int *numbers = tl_alloc(INTS * sizeof(int)), target = 1 - w.rank;

    for (int i = 0; i < INTS; i++)
        numbers[i] = i + w.rank;
    TL_MPI(MPI_Win_fence(0, w.win));
    TL_MPI(MPI_Put(numbers, INTS, MPI_INT, target, tl_disp(&w, target, 0), INTS, MPI_INT, w.win));
    TL_MPI(MPI_Win_fence(MPI_MODE_NOSUCCEED, w.win));
    for (int i = 0; i < INTS; i++)
        TL_CHECK(((int *)w.base)[i] == i + target, "number %d", i);
    tl_win_free(&w);
    free(numbers);
    return tl_finish();
}
