/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 1-4 */
/* windows: create allocate dynamic shared */
/**
 * @file
 * A word that is stored by the processor is never seen half; a flag that is put after a flush is
 * never seen before the data that were put before it; and a spinlock that is made of a swap, by
 * each call that can swap, keeps others out (open-mpi/ompi 14173). That no update is lost, and what
 * is fetched: accumulate_together.
 */
#include <stdlib.h>
#include <string.h>

#include "test/mpi/rma.h"
#include "test/mpi/testlib.h"

/** What rank 0 stores into a word while others get it, with half a word before it: none is torn. */
static void try_tearing(tl_kind_t kind)
{
    enum { GETS = 300, STORES = 500000 };
    tl_window_t w = tl_win_make(kind, 64, 1, MPI_COMM_WORLD, MPI_INFO_NULL);
    int at = 16 - (int)((uintptr_t)w.base % sizeof(int64_t)), ended = 0, torn = 0;
    volatile int64_t *word = (volatile int64_t *)(void *)(w.base + at);
    _Alignas(8) unsigned char got[12];

    MPI_Bcast(&at, 1, MPI_INT, 0, w.comm);
    tl_begin(&w, TL_LOCK_ALL);
    while (w.rank == 0 && ended < w.size - 1) {
        int flag;

        for (int i = 0; i < STORES; i++)
            *word = -(i % 2);
        MPI_Iprobe(MPI_ANY_SOURCE, 0, w.comm, &flag, MPI_STATUS_IGNORE);
        if (flag)
            MPI_Recv(NULL, 0, MPI_BYTE, MPI_ANY_SOURCE, 0, w.comm, MPI_STATUS_IGNORE);
        ended += flag;
    }
    for (int i = 0; w.rank > 0 && i < GETS; i++) {
        int64_t value;

        TL_MPI(MPI_Get(got, 12, MPI_BYTE, 0, tl_disp(&w, 0, at - 4), 12, MPI_BYTE, w.win));
        TL_MPI(MPI_Win_flush(0, w.win));
        memcpy(&value, got + 4, sizeof(value));
        torn += value != 0 && value != -1;
    }
    TL_CHECK(torn == 0, "%d of %d are torn", torn, GETS);
    if (w.rank > 0)
        MPI_Send(NULL, 0, MPI_BYTE, 0, 0, w.comm);
    tl_end(&w, TL_LOCK_ALL);
    tl_win_free(&w);
}

static void try_flag(tl_kind_t kind)
{
    enum { INTS = 50000 };
    tl_window_t w =
        tl_win_make(kind, (INTS + 1) * sizeof(int), sizeof(int), MPI_COMM_WORLD, MPI_INFO_NULL);
    const int next = (w.rank + 1) % w.size, before = (w.rank + w.size - 1) % w.size;
    const MPI_Aint data_at = tl_disp(&w, next, 0), flag_at = tl_disp(&w, next, INTS * sizeof(int));
    int *data = tl_alloc(INTS * sizeof(int)), probed;
    volatile int *window = (volatile int *)(void *)w.base;

    tl_begin(&w, TL_LOCK_ALL);
    for (int round = 1; round <= 10; round++) {
        int wrong = 0;

        for (int i = 0; i < INTS; i++)
            data[i] = w.rank * 1000003 + round * 7919 + i;
        TL_MPI(MPI_Put(data, INTS, MPI_INT, next, data_at, INTS, MPI_INT, w.win));
        TL_MPI(round % 2 ? MPI_Win_flush(next, w.win) : MPI_Win_flush_all(w.win));
        TL_MPI(MPI_Accumulate(&round, 1, MPI_INT, next, flag_at, 1, MPI_INT, MPI_REPLACE, w.win));
        TL_MPI(MPI_Win_flush(next, w.win));
        while (window[INTS] != round) {
            MPI_Iprobe(MPI_ANY_SOURCE, 1, w.comm, &probed, MPI_STATUS_IGNORE);
            TL_MPI(MPI_Win_sync(w.win));
        }
        for (int i = 0; i < INTS; i++)
            wrong += window[i] != before * 1000003 + round * 7919 + i;
        TL_CHECK(wrong == 0, "round %d: %d of %d ints not there", round, wrong, INTS);
        /* Nobody writes again before everybody has looked. */
        TL_MPI(MPI_Win_sync(w.win));
        MPI_Barrier(w.comm);
    }
    tl_end(&w, TL_LOCK_ALL);
    free(data);
    tl_win_free(&w);
}

static int swap(const tl_window_t *w, rma_t call, int value)
{
    int old = -1;
    rma_given_t g = rma_plain(&value, &old, 1, MPI_INT, 0, tl_disp(w, 0, 0), w->win);

    g.op = MPI_REPLACE;
    TL_MPI(rma_call_and_wait(call, &g));
    TL_MPI(MPI_Win_flush(0, w->win));
    return old;
}

static void try_spinlock(tl_kind_t kind)
{
    static const rma_t swaps[] = {RMA_FETCH_AND_OP, RMA_GET_ACCUMULATE, RMA_RGET_ACCUMULATE};
    enum { ROUNDS = 30 };
    tl_window_t w = tl_win_make(kind, 2 * sizeof(int), sizeof(int), MPI_COMM_WORLD, MPI_INFO_NULL);
    const MPI_Aint counter = tl_disp(&w, 0, sizeof(int));
    int n, old;

    tl_begin(&w, TL_LOCK_ALL);
    for (int k = 0; k < ROUNDS; k++) {
        while (swap(&w, swaps[k % 3], 1) != 0)
            continue;
        TL_MPI(MPI_Get(&n, 1, MPI_INT, 0, counter, 1, MPI_INT, w.win));
        TL_MPI(MPI_Win_flush(0, w.win));
        n++;
        TL_MPI(MPI_Put(&n, 1, MPI_INT, 0, counter, 1, MPI_INT, w.win));
        TL_MPI(MPI_Win_flush(0, w.win));
        old = swap(&w, swaps[k / 3 % 3], 0);
        TL_CHECK(old == 1, "it was not held: %d", old);
    }
    tl_end(&w, TL_LOCK_ALL);
    TL_CHECK(w.rank != 0 || ((int *)(void *)w.base)[1] == ROUNDS * w.size, "%d",
             ((int *)(void *)w.base)[1]);
    tl_win_free(&w);
}

int main(int argc, char **argv)
{
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind)) {
        try_tearing(kind);
        try_flag(kind);
        try_spinlock(kind);
    }
    return tl_finish();
}
