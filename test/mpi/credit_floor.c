/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2 3 */
/* windows: create */
/* methods: auto pack */
/**
 * @file
 * Operations go on though messages of the same process have used up what they can of its credit,
 * and are received only when the operations are seen: short and long accumulates, and fetches.
 */
#include "test/mpi/testlib.h"

#include <stdlib.h>

enum { MESSAGES = 4000, BYTES = 512, LONGS = 20000, ROUNDS = 3, TAG = 5 };

static char data[BYTES];
static MPI_Request request[MESSAGES];

/** Rank 0 looks at its own memory until all others have been there. */
static void await(const tl_window_t *w, int64_t sum)
{
    const double end = MPI_Wtime() + TL_PATIENCE;
    int64_t seen = 0;

    while (seen != sum && MPI_Wtime() < end) {
        TL_MPI(MPI_Get_accumulate(NULL, 0, MPI_INT64_T, &seen, 1, MPI_INT64_T, 0, tl_disp(w, 0, 0),
                                  1, MPI_INT64_T, MPI_NO_OP, w->win));
        TL_MPI(MPI_Win_flush(0, w->win));
    }
    TL_CHECK(seen == sum, "%lld, not %lld", (long long)seen, (long long)sum);
}

static void operate(const tl_window_t *w, const int64_t *ones, int64_t *got, int64_t before)
{
    int64_t old = -1;

    TL_MPI(MPI_Accumulate(ones, LONGS, MPI_INT64_T, 0, tl_disp(w, 0, 8), LONGS, MPI_INT64_T,
                          MPI_SUM, w->win));
    TL_MPI(MPI_Get(got, LONGS, MPI_INT64_T, 0, tl_disp(w, 0, 8 * (LONGS + 1)), LONGS, MPI_INT64_T,
                   w->win));
    TL_MPI(MPI_Win_flush(0, w->win));
    TL_MPI(MPI_Fetch_and_op(ones, &old, MPI_INT64_T, 0, tl_disp(w, 0, 0), MPI_SUM, w->win));
    TL_MPI(MPI_Win_flush(0, w->win));
    TL_CHECK(old >= before && old < before + w->size - 1, "%lld fetched", (long long)old);
    for (int i = 0; i < LONGS; i++)
        TL_CHECK(got[i] == i, "%lld got, not %d", (long long)got[i], i);
}

int main(int argc, char **argv)
{
    int64_t *ones = tl_alloc(LONGS * sizeof(*ones)), *got = tl_alloc(LONGS * sizeof(*got));
    tl_window_t w;

    setenv("OMPI_MCA_osc_nicstride_memory", "1", 1);
    setenv("OMPI_MCA_pml_superpipe_memory", "1", 1);
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    tl_need_ranks(2, 16);
    w = tl_win_make(TL_CREATE, (2 * LONGS + 1) * (MPI_Aint)sizeof(int64_t), 1, MPI_COMM_WORLD,
                    MPI_INFO_NULL);
    for (int i = 0; i < 2 * LONGS + 1; i++)
        ((int64_t *)(void *)w.base)[i] = i > LONGS ? i - LONGS - 1 : 0;
    for (int i = 0; i < LONGS; i++)
        ones[i] = 1;
    TL_MPI(MPI_Win_lock_all(0, w.win));
    TL_MPI(MPI_Barrier(w.comm));
    for (int round = 0; round < ROUNDS; round++) {
        if (w.rank == 0) {
            await(&w, (int64_t)(round + 1) * (w.size - 1));
            for (int i = 0; i < MESSAGES * (w.size - 1); i++)
                TL_MPI(MPI_Recv(data, BYTES, MPI_CHAR, MPI_ANY_SOURCE, TAG, w.comm,
                                MPI_STATUS_IGNORE));
        } else {
            for (int i = 0; i < MESSAGES; i++)
                TL_MPI(MPI_Isend(data, BYTES, MPI_CHAR, 0, TAG, w.comm, &request[i]));
            operate(&w, ones, got, (int64_t)round * (w.size - 1));
            TL_MPI(MPI_Waitall(MESSAGES, request, MPI_STATUSES_IGNORE));
        }
        TL_MPI(MPI_Barrier(w.comm));
    }
    TL_MPI(MPI_Win_unlock_all(w.win));
    tl_win_free(&w);
    free(ones);
    free(got);
    return tl_finish();
}
