/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2 */
/* windows: create */
/**
 * @file
 * An operation that waits for credit leaves when the process waits for its request, though all that
 * holds the credit up is done and nobody flushes it: accumulates to one target in many windows,
 * which are answered where only their origin looks (osc_nicstride/protocol/credit.h). Nor does its
 * own answer come there.
 */
#include "test/mpi/testlib.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Together such accumulates take more than the least memory for messages gives each of two
 * processes. */
enum { WINDOWS = 112, LONGS = 800 };

static long values[LONGS], got[LONGS];

static void add(const tl_window_t *w)
{
    TL_MPI(
        MPI_Accumulate(values, LONGS, MPI_LONG, 1 - w->rank, 0, LONGS, MPI_LONG, MPI_SUM, w->win));
}

/** A get that waits until two puts are acknowledged, and is alone then. */
static void get_behind_puts(const tl_window_t *w)
{
    long old = -1;
    MPI_Request r;

    for (int k = 0; k < 2; k++)
        TL_MPI(MPI_Put(&values[1], 1, MPI_LONG, 1, 0, 1, MPI_LONG, w->win));
    TL_MPI(MPI_Rget(&old, 1, MPI_LONG, 1, 1, 1, MPI_LONG, w->win, &r));
    TL_MPI(MPI_Wait(&r, MPI_STATUS_IGNORE));
    TL_CHECK(old == 0, "%ld, not 0", old);
}

int main(int argc, char **argv)
{
    static tl_window_t w[WINDOWS];
    MPI_Request r;

    setenv("OMPI_MCA_osc_nicstride_memory", "1", 1);
    setenv("OMPI_MCA_osc_nicstride_window", "2", 1);
    setenv("OMPI_MCA_osc_nicstride_method", "pack", 1);
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    tl_need_ranks(2, 2);
    values[0] = LONGS;
    for (int i = 0; i < WINDOWS; i++) {
        w[i] = tl_win_make(TL_CREATE, sizeof(values), sizeof(long), MPI_COMM_WORLD, MPI_INFO_NULL);
        memset(w[i].base, 0, sizeof(values));
        MPI_Barrier(w[i].comm);
        TL_MPI(MPI_Win_lock_all(0, w[i].win));
        /* The first answer of all does not go there yet. */
        for (int k = 0; k < 2; k++) {
            add(&w[i]);
            TL_MPI(MPI_Win_flush(1 - w[i].rank, w[i].win));
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    /* The target is away meanwhile, so that the last one finds no credit. */
    if (w->rank == 1)
        usleep(100000);
    for (int i = 0; i < WINDOWS && w->rank == 0; i++) {
        if (i == WINDOWS - 1) {
            TL_MPI(MPI_Rget_accumulate(values, LONGS, MPI_LONG, got, LONGS, MPI_LONG, 1 - w[i].rank,
                                       0, LONGS, MPI_LONG, MPI_SUM, w[i].win, &r));
            TL_MPI(MPI_Wait(&r, MPI_STATUS_IGNORE));
            TL_CHECK(got[0] == 2 * LONGS, "%ld, not %d", got[0], 2 * LONGS);
        } else {
            add(&w[i]);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (w->rank == 1)
        usleep(100000);
    else
        get_behind_puts(&w[WINDOWS - 1]);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < WINDOWS; i++) {
        TL_MPI(MPI_Win_unlock_all(w[i].win));
        tl_win_free(&w[i]);
    }
    return tl_finish();
}
