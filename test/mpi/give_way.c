/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-4 */
/* windows: create dynamic */
/* methods: auto */
/**
 * @file
 * A long accumulate to a rank's own private memory gives way to those of others meanwhile: they
 * take effect while that one call runs. Without the server thread nobody else could have them done.
 */
#include <stdlib.h>

#include "test/mpi/testlib.h"

/** Integers of the long one: 32 MiB. */
#define OWN (tl_slow() ? 1 << 19 : 1 << 22)
/** Seconds for which rank 0 tries to see it. */
#define PATIENCE TL_PATIENCE

/** Of rank 0: how much the others have added, shall they end, and its own part. */
#define ADDED_AT  0
#define END_AT    8
#define OWN_AT(i) (64 + (MPI_Aint)(i) * (MPI_Aint)sizeof(int64_t))

static const int64_t one = 1;

static int64_t read_end(const tl_window_t *w)
{
    int64_t end = 0;

    TL_MPI(MPI_Fetch_and_op(NULL, &end, MPI_INT64_T, 0, tl_disp(w, 0, END_AT), MPI_NO_OP, w->win));
    TL_MPI(MPI_Win_flush(0, w->win));
    return end;
}

static void add(const tl_window_t *w)
{
    TL_MPI(MPI_Accumulate(&one, 1, MPI_INT64_T, 0, tl_disp(w, 0, ADDED_AT), 1, MPI_INT64_T, MPI_SUM,
                          w->win));
    TL_MPI(MPI_Win_flush(0, w->win));
}

/** No call of MPI, which would let others in. */
static int64_t added(const tl_window_t *w)
{
    return *(volatile int64_t *)(void *)(w->base + ADDED_AT);
}

/** Calls again until one was given way in. */
static void accumulate_long(const tl_window_t *w)
{
    const double end = MPI_Wtime() + PATIENCE;
    int64_t *ones = tl_alloc((size_t)OWN * sizeof(*ones)), before, after, times = 0;
    MPI_Aint wrong = 0;
    int flag;

    for (int i = 0; i < OWN; i++)
        ones[i] = 1;
    do {
        /* The others are at work, or soon will be. */
        TL_MPI(MPI_Iprobe(MPI_ANY_SOURCE, 0, w->comm, &flag, MPI_STATUS_IGNORE));
        before = added(w);
        TL_MPI(MPI_Accumulate(ones, OWN, MPI_INT64_T, 0, tl_disp(w, 0, OWN_AT(0)), OWN, MPI_INT64_T,
                              MPI_SUM, w->win));
        after = added(w);
        times++;
    } while (after == before && MPI_Wtime() < end);
    TL_CHECK(after > before, "nothing of others was done in %ld calls", (long)times);
    TL_MPI(MPI_Accumulate(&one, 1, MPI_INT64_T, 0, tl_disp(w, 0, END_AT), 1, MPI_INT64_T,
                          MPI_REPLACE, w->win));
    TL_MPI(MPI_Win_flush(0, w->win));
    for (MPI_Aint i = 0; i < OWN; i++)
        wrong += *(const int64_t *)(const void *)(w->base + OWN_AT(i)) != times;
    TL_CHECK(wrong == 0, "%ld of my own are not %ld", (long)wrong, (long)times);
    free(ones);
}

int main(int argc, char **argv)
{
    setenv("OMPI_MCA_osc_nicstride_server", "0", 1);
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    tl_need_ranks(2, 16);
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind)) {
        const MPI_Aint bytes = tl_rank() == 0 ? OWN_AT(OWN) : 0;
        tl_window_t w = tl_win_make(kind, bytes, 1, MPI_COMM_WORLD, MPI_INFO_NULL);
        int64_t mine = 0, sum = 0;

        tl_begin(&w, TL_LOCK_ALL);
        if (w.rank == 0)
            accumulate_long(&w);
        else
            do {
                add(&w);
                mine++;
            } while (read_end(&w) == 0);
        tl_end(&w, TL_LOCK_ALL);
        TL_MPI(MPI_Reduce(&mine, &sum, 1, MPI_INT64_T, MPI_SUM, 0, w.comm));
        TL_CHECK(w.rank != 0 || added(&w) == sum, "the others have added %ld times", (long)sum);
        tl_win_free(&w);
    }
    return tl_finish();
}
