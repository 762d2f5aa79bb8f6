/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 8 */
/* windows: create */
/* methods: pack */
/**
 * @file
 * Fetches whose last message is short: messages are as long as the part that a process has of its
 * target's memory, so that the last one leaves when all before it are acknowledged, as one alone
 * would. What it brings belongs behind the rest.
 */
#include <stdlib.h>

#include "osc_nicstride/protocol/message.h"
#include "test/mpi/testlib.h"

/** The most integers of the last message, and of all. */
enum { TAIL = 10, LONGS = 1 << 16 };

/** Integers of a message of that length, of 1 MiB divided among so many processes. */
static int whole(int processes)
{
    const size_t part = (size_t)(1 << 20) / (size_t)processes;

    return (int)((part - NICSTRIDE_KEPT_USE - sizeof(nicstride_msg_t)) / sizeof(int64_t));
}

static int64_t old_value(int round, int i)
{
    return (int64_t)(round + 1) * i;
}

/** Adds `i` to integer `i` of the next rank, and looks at what was there. */
static void fetch(const tl_window_t *w, int64_t *add, int64_t *got, int round, int n)
{
    const int t = (w->rank + 1) % w->size;
    int wrong = 0;

    for (int i = 0; i < n; i++)
        got[i] = -1;
    TL_MPI(MPI_Get_accumulate(add, n, MPI_INT64_T, got, n, MPI_INT64_T, t, tl_disp(w, t, 0), n,
                              MPI_INT64_T, MPI_SUM, w->win));
    TL_MPI(MPI_Win_flush(t, w->win));
    for (int i = 0; i < n; i++)
        wrong += got[i] != old_value(round, i);
    TL_CHECK(wrong == 0, "%d of %d integers fetched in round %d are wrong", wrong, n, round);
}

int main(int argc, char **argv)
{
    int64_t *add = tl_alloc(LONGS * sizeof(*add)), *got = tl_alloc(LONGS * sizeof(*got));
    tl_window_t w;

    setenv("OMPI_MCA_osc_nicstride_memory", "1", 1);
    setenv("OMPI_MCA_pml_superpipe_memory", "1", 1);
    setenv("OMPI_MCA_osc_nicstride_queues", "0", 1);
    setenv("UCX_TLS", "tcp", 1);
    setenv("UCX_TCP_TX_SEG_SIZE", "1m", 1);
    setenv("UCX_TCP_RX_SEG_SIZE", "1m", 1);
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    tl_need_ranks(6, 64);
    w = tl_win_make(TL_CREATE, LONGS * (MPI_Aint)sizeof(int64_t), 1, MPI_COMM_WORLD, MPI_INFO_NULL);
    for (int i = 0; i < LONGS; i++)
        ((int64_t *)(void *)w.base)[i] = add[i] = i;
    MPI_Barrier(w.comm);
    TL_MPI(MPI_Win_lock_all(0, w.win));
    /* The longest first: all of the next were there in each round before. */
    for (int round = 0; round < TAIL; round++)
        fetch(&w, add, got, round, 2 * whole(w.size) + TAIL - round);
    MPI_Barrier(w.comm);
    TL_MPI(MPI_Win_unlock_all(w.win));
    tl_win_free(&w);
    free(add);
    free(got);
    return tl_finish();
}
