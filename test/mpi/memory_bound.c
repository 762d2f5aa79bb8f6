/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-4 8 16 */
/* windows: create */
/* methods: auto pipeline */
/**
 * @file
 * What a target keeps for origins that all send while it cannot apply anything is bounded by
 * osc_nicstride_memory, whatever they send: many
 * short accumulates, long ones, strided ones, such that give something back, in several windows.
 *
 * Rank 0 has its lock of accumulates meanwhile (busy_lock.h), while its server thread receives.
 */
#include <stdlib.h>
#include <time.h>

#include "test/mpi/busy_lock.h"
#include "test/mpi/counter.h"
#include "test/mpi/testlib.h"

enum { MEMORY_MIB = 1, WINDOWS = 2, SHORTS = 10, LONGS = 1 << 16, OWN = 1 << 15, HELD_MS = 200 };

/** What rank 0 may put off, in bytes. */
#define MOST ((unsigned long long)MEMORY_MIB << 20)

/** Longs that all but rank 0 update, and behind them those of rank 0 alone. */
#define WINDOW_BYTES ((MPI_Aint)(LONGS + OWN) * (MPI_Aint)sizeof(int64_t))

static counter_t *bytes, *deferred;

/** Until the others have got somewhere. Where many share few processors that is not far. */
static void await_some(bool begins)
{
    const struct timespec pause = {0, 5000000};
    const double end = MPI_Wtime() + TL_PATIENCE;

    while (begins && bytes != NULL && MPI_Wtime() < end &&
           (tl_size() > 4 ? counter_read(deferred) == 0 : counter_read(bytes) < MOST / 16))
        nanosleep(&pause, NULL);
}

/** With the lock of accumulates of rank 0 until then, and for a while. */
static void hold(const tl_window_t *w)
{
    busy_lock_hold(w, LONGS * (MPI_Aint)sizeof(int64_t), OWN, HELD_MS, await_some);
}

/** All kinds of accumulates. `got` has room for what two of them give back. The first long one
 * takes up all that there is: for odd ranks one that leaves nothing at its target but what is
 * counted for it, so that one message too many is seen. */
static void send_all(const tl_window_t *w, const int64_t *ones, int64_t *got, MPI_Datatype gaps)
{
    for (int i = 0; i < SHORTS; i++) {
        TL_MPI(MPI_Accumulate(ones, 1, MPI_INT64_T, 0, tl_disp(w, 0, 0), 1, MPI_INT64_T, MPI_SUM,
                              w->win));
    }
    for (int i = 0; i < 2; i++) {
        if (i == w->rank % 2) {
            TL_MPI(MPI_Get_accumulate(ones, LONGS, MPI_INT64_T, got, LONGS, MPI_INT64_T, 0,
                                      tl_disp(w, 0, 0), LONGS, MPI_INT64_T, MPI_SUM, w->win));
        } else {
            TL_MPI(MPI_Accumulate(ones, LONGS, MPI_INT64_T, 0, tl_disp(w, 0, 0), LONGS, MPI_INT64_T,
                                  MPI_SUM, w->win));
        }
    }
    TL_MPI(MPI_Accumulate(ones, LONGS / 2, MPI_INT64_T, 0, tl_disp(w, 0, 0), 1, gaps, MPI_SUM,
                          w->win));
    TL_MPI(MPI_Get_accumulate(ones, LONGS, MPI_INT64_T, got + LONGS, LONGS, MPI_INT64_T, 0,
                              tl_disp(w, 0, 0), LONGS, MPI_INT64_T, MPI_SUM, w->win));
}

static void send_in_all(tl_window_t *w)
{
    int64_t *ones = tl_alloc(LONGS * sizeof(*ones));
    int64_t *got = tl_alloc((size_t)WINDOWS * 2 * LONGS * sizeof(*got));
    MPI_Datatype gaps;

    for (int i = 0; i < LONGS; i++)
        ones[i] = 1;
    TL_MPI(MPI_Type_vector(LONGS / 2, 1, 2, MPI_INT64_T, &gaps));
    TL_MPI(MPI_Type_commit(&gaps));
    for (int i = 0; i < WINDOWS; i++)
        send_all(&w[i], ones, got + (size_t)i * 2 * LONGS, gaps);
    for (int i = 0; i < WINDOWS; i++)
        TL_MPI(MPI_Win_flush(0, w[i].win));
    TL_MPI(MPI_Type_free(&gaps));
    free(ones);
    free(got);
}

static void check_sums(const tl_window_t *w)
{
    const int64_t *at = (const int64_t *)w->base;
    const int others = w->size - 1;
    int wrong = 0;

    for (int i = 0; i < LONGS; i++)
        wrong += at[i] != others * (3 + (i % 2 == 0) + (i == 0 ? SHORTS : 0));
    TL_CHECK(wrong == 0, "%d of %d sums are wrong", wrong, LONGS);
}

int main(int argc, char **argv)
{
    tl_window_t w[WINDOWS];

    setenv("OMPI_MCA_osc_nicstride_memory", "1", 1);
    setenv("OMPI_MCA_pml_superpipe_memory", "1", 1);
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    tl_need_ranks(2, 64);
    bytes = counter_begin("osc_nicstride_deferred_bytes");
    deferred = counter_begin("osc_nicstride_deferred");
    for (int i = 0; i < WINDOWS; i++) {
        w[i] = tl_win_make(TL_CREATE, tl_rank() == 0 ? WINDOW_BYTES : 0, 1, MPI_COMM_WORLD,
                           MPI_INFO_NULL);
        TL_MPI(MPI_Win_lock_all(0, w[i].win));
    }
    TL_MPI(MPI_Barrier(MPI_COMM_WORLD));
    if (tl_rank() == 0) {
        hold(&w[0]);
        hold(&w[1]);
    } else {
        send_in_all(w);
    }
    TL_MPI(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < WINDOWS; i++)
        TL_MPI(MPI_Win_unlock_all(w[i].win));
    TL_MPI(MPI_Barrier(MPI_COMM_WORLD));
    if (tl_rank() == 0 && bytes != NULL) {
        TL_CHECK(counter_read(deferred) > 0, "nothing was put off");
        TL_CHECK(counter_read(bytes) <= MOST, "%llu bytes were put off, with room for %llu",
                 counter_read(bytes), MOST);
        /* Where many share few processors not all of them get that far meanwhile. */
        TL_CHECK(tl_size() > 4 || counter_read(bytes) >= MOST / 16, "only %llu bytes were put off",
                 counter_read(bytes));
    }
    for (int i = 0; i < WINDOWS; i++) {
        if (tl_rank() == 0)
            check_sums(&w[i]);
        tl_win_free(&w[i]);
    }
    counter_end(bytes);
    counter_end(deferred);
    return tl_finish();
}
