/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2 */
/* methods: auto */
/**
 * @file
 * What parameters and scripts of before call a method by its former name finds it.
 */
#include <stdlib.h>

#include "test/mpi/counter.h"
#include "test/mpi/testlib.h"

enum { BYTES = 1 << 18 };

int main(int argc, char **argv)
{
    if (setenv("OMPI_MCA_osc_nicstride_method", "mover", 1) != 0)
        return TL_EXIT_FAILED;
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    int index, provided;

    tl_need_ranks(2, 2);
    TL_MPI(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    if (!counter_find("osc_nicstride_ops_pipeline", &index))
        tl_skip("the component is not there");
    counter_t *ops = counter_begin("osc_nicstride_ops_pipeline");
    tl_window_t w = tl_win_make(TL_CREATE, BYTES, 1, MPI_COMM_WORLD, MPI_INFO_NULL);
    char *mine = tl_alloc(BYTES);

    TL_MPI(MPI_Win_lock_all(0, w.win));
    TL_MPI(MPI_Put(mine, BYTES, MPI_BYTE, 1 - w.rank, 0, BYTES, MPI_BYTE, w.win));
    TL_MPI(MPI_Win_unlock_all(w.win));
    TL_CHECK(counter_read(ops) == 1, "%llu operations by the pipeline", counter_read(ops));
    free(mine);
    tl_win_free(&w);
    counter_end(ops);
    TL_MPI(MPI_T_finalize());
    return tl_finish();
}
