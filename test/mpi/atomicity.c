/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 1-4 */
/* windows: create allocate dynamic shared */
/**
 * @file
 * No value is fetched twice from a counter that all ranks add to, on their own memory as on that of
 * others, by every call that fetches. A word that is stored by the processor is never seen half.
 * That no update is lost: accumulate_together.
 */
#include <stdlib.h>
#include <string.h>

#include "test/mpi/testlib.h"

/** Each rank draws numbers from every rank, which rise; all that were drawn have the sum of the
 * first so many. */
static void try_numbers(tl_kind_t kind)
{
    enum { TIMES = 200 };
    tl_window_t w = tl_win_make(kind, sizeof(int64_t), 1, MPI_COMM_WORLD, MPI_INFO_NULL);
    const int64_t one = 1, n = (int64_t)TIMES * tl_factor() * w.size;

    for (int target = 0; target < w.size; target++) {
        const MPI_Aint at = tl_disp(&w, target, 0);
        int64_t got, next, last = -1, sum = 0, all = 0;

        tl_begin(&w, target % 2 ? TL_LOCK_ALL : TL_LOCK);
        for (int i = 0; i < TIMES * tl_factor(); i++) {
            switch (i % 3) {
            case 0:
                TL_MPI(MPI_Fetch_and_op(&one, &got, MPI_INT64_T, target, at, MPI_SUM, w.win));
                break;
            case 1:
                TL_MPI(MPI_Get_accumulate(&one, 1, MPI_INT64_T, &got, 1, MPI_INT64_T, target, at, 1,
                                          MPI_INT64_T, MPI_SUM, w.win));
                break;
            default:
                for (int64_t seen = last; true; seen = got) {
                    next = seen + 1;
                    TL_MPI(
                        MPI_Compare_and_swap(&next, &seen, &got, MPI_INT64_T, target, at, w.win));
                    TL_MPI(MPI_Win_flush(target, w.win));
                    if (got == seen || tl_failed() > 0)
                        break;
                }
            }
            TL_MPI(MPI_Win_flush(target, w.win));
            TL_CHECK(got > last, "fetched %ld after %ld from %d", (long)got, (long)last, target);
            last = got;
            sum += got;
        }
        tl_end(&w, target % 2 ? TL_LOCK_ALL : TL_LOCK);
        MPI_Allreduce(&sum, &all, 1, MPI_INT64_T, MPI_SUM, w.comm);
        TL_CHECK(all == n * (n - 1) / 2, "%ld numbers of rank %d have the sum %ld", (long)n, target,
                 (long)all);
    }
    tl_win_free(&w);
}

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

int main(int argc, char **argv)
{
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind)) {
        try_numbers(kind);
        try_tearing(kind);
    }
    return tl_finish();
}
