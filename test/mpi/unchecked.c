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
 * flush waited for ever. So are types that a call does not take, and types that are made of one
 * that the operation does not know.
 */
#include "test/mpi/testlib.h"

#include <stdlib.h>

static void try_types(const tl_window_t *w, int target)
{
    const MPI_Aint at = tl_disp(w, target, 0);
    const MPI_Aint places[] = {0, 4};
    const MPI_Datatype both[] = {MPI_INT, MPI_FLOAT};
    const int ones[] = {1, 1};
    int new[4] = {1, 1, 1, 1}, compared[4] = {0}, result[4] = {7, 7, 7, 7};
    MPI_Datatype floats, ints, mixed;

    MPI_Type_contiguous(2, MPI_FLOAT, &floats);
    MPI_Type_contiguous(2, MPI_INT, &ints);
    MPI_Type_create_struct(2, ones, places, both, &mixed);
    MPI_Type_commit(&floats);
    MPI_Type_commit(&ints);
    MPI_Type_commit(&mixed);
    TL_MPI_ERROR(MPI_Compare_and_swap(new, compared, result, MPI_FLOAT, target, at, w->win),
                 MPI_ERR_TYPE);
    TL_MPI_ERROR(MPI_Compare_and_swap(new, compared, result, MPI_DATATYPE_NULL, target, at, w->win),
                 MPI_ERR_TYPE);
    TL_MPI_ERROR(MPI_Fetch_and_op(new, result, MPI_DATATYPE_NULL, target, at, MPI_REPLACE, w->win),
                 MPI_ERR_TYPE);
    TL_MPI_ERROR(MPI_Fetch_and_op(new, result, ints, target, at, MPI_SUM, w->win), MPI_ERR_TYPE);
    TL_MPI_ERROR(MPI_Fetch_and_op(new, result, MPI_INT, target, at, MPI_OP_NULL, w->win),
                 MPI_ERR_OP);
    TL_MPI_ERROR(MPI_Accumulate(new, 1, floats, target, at, 1, floats, MPI_BAND, w->win),
                 MPI_ERR_OP);
    TL_MPI_ERROR(MPI_Accumulate(new, 1, MPI_INT, target, at, 1, MPI_INT, MPI_MAXLOC, w->win),
                 MPI_ERR_OP);
    TL_MPI_ERROR(MPI_Accumulate(new, 1, mixed, target, at, 1, mixed, MPI_SUM, w->win),
                 MPI_ERR_TYPE);
    TL_MPI_ERROR(MPI_Get_accumulate(new, 1, floats, result, 1, floats, target, at, 1, floats,
                                    MPI_LAND, w->win),
                 MPI_ERR_OP);
    TL_MPI_ERROR(
        MPI_Get_accumulate(new, 1, mixed, result, 1, mixed, target, at, 1, mixed, MPI_SUM, w->win),
        MPI_ERR_TYPE);
    TL_MPI(MPI_Win_flush(target, w->win));
    TL_CHECK(result[0] == 7 && result[1] == 7, "a refused call fetched");
    MPI_Type_free(&floats);
    MPI_Type_free(&ints);
    MPI_Type_free(&mixed);
}

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
    try_types(&w, target);
    TL_MPI(MPI_Get_accumulate(NULL, 0, MPI_INT, &old, 1, MPI_INT, target, disp, 1, MPI_INT,
                              MPI_NO_OP, w.win));
    TL_MPI(MPI_Win_flush_all(w.win));
    TL_CHECK(old == 0, "%d was fetched", old);
    TL_MPI(MPI_Win_unlock_all(w.win));
    tl_win_free(&w);
    return tl_finish();
}
