/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-4 */
/* windows: create allocate */
/* methods: auto direct pack */
/**
 * @file
 * Open MPI was told not to look at parameters, as some do for speed: MPI_NO_OP where nothing is
 * fetched is refused all the same. Once the target did not know what to make of it, and the next
 * flush waited for ever.
 */
#include "test/mpi/testlib.h"

#include <stdlib.h>

int main(int argc, char **argv)
{
    setenv("OMPI_MCA_mpi_param_check", "0", 1);
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    tl_window_t w = tl_win_make(tl_first_kind(), 64, 1, MPI_COMM_WORLD, MPI_INFO_NULL);
    int target = (w.rank + 1) % w.size, one = 1, old = -1;
    MPI_Aint disp = tl_disp(&w, target, 0);
    MPI_Request request = MPI_REQUEST_NULL;

    TL_MPI(MPI_Win_set_errhandler(w.win, MPI_ERRORS_RETURN));
    TL_MPI(MPI_Win_lock_all(0, w.win));
    TL_MPI_ERROR(MPI_Accumulate(&one, 1, MPI_INT, target, disp, 1, MPI_INT, MPI_NO_OP, w.win),
                 MPI_ERR_OP);
    TL_MPI_ERROR(
        MPI_Raccumulate(&one, 1, MPI_INT, target, disp, 1, MPI_INT, MPI_NO_OP, w.win, &request),
        MPI_ERR_OP);
    TL_MPI(MPI_Get_accumulate(NULL, 0, MPI_INT, &old, 1, MPI_INT, target, disp, 1, MPI_INT,
                              MPI_NO_OP, w.win));
    TL_MPI(MPI_Win_flush_all(w.win));
    TL_CHECK(old == 0, "%d was fetched", old);
    TL_MPI(MPI_Win_unlock_all(w.win));
    tl_win_free(&w);
    return tl_finish();
}
