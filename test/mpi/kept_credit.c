/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2 */
/* windows: create */
/* methods: auto */
/**
 * @file
 * An operation that waits for credit leaves though all that has the credit is done in other windows
 * to the same target, and nobody flushes these: credit comes back by itself. The process waits for
 * the request of that operation, or flushes it. Nor does its own answer come where only a flush
 * looks.
 */
#include "test/mpi/testlib.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Together such accumulates take more than the least memory for messages gives each of two
 * processes. */
enum { WINDOWS = 112, LONGS = 800 };

/** What holds the credit up, and how what lacks it is waited for. */
typedef enum way {
    WAIT,  /**< what asks for its own answer; by its request */
    ASK,   /**< what does not, since it has a request; likewise */
    FLUSH, /**< as the first; by a flush of its window */
    WAYS
} way_t;

static long values[LONGS], got[LONGS];

static void add(const tl_window_t *w, MPI_Request *request)
{
    if (request != NULL) {
        TL_MPI(MPI_Raccumulate(values, LONGS, MPI_LONG, 1, 0, LONGS, MPI_LONG, MPI_SUM, w->win,
                               request));
    } else {
        TL_MPI(MPI_Accumulate(values, LONGS, MPI_LONG, 1, 0, LONGS, MPI_LONG, MPI_SUM, w->win));
    }
}

/** The target is away meanwhile, so that the last one finds no credit. */
static void use_up(const tl_window_t *w, way_t way)
{
    const tl_window_t *last = &w[WINDOWS - 1];
    MPI_Request requests[WINDOWS], *r = &requests[WINDOWS - 1];

    for (int i = 0; i < WINDOWS - 1; i++)
        add(&w[i], way == ASK ? &requests[i] : NULL);
    if (way == FLUSH) {
        add(last, NULL);
        TL_MPI(MPI_Win_flush(1, last->win));
    } else {
        TL_MPI(MPI_Rget_accumulate(values, LONGS, MPI_LONG, got, LONGS, MPI_LONG, 1, 0, LONGS,
                                   MPI_LONG, MPI_SUM, last->win, r));
        TL_MPI(MPI_Wait(r, MPI_STATUS_IGNORE));
        TL_CHECK(got[0] == way * LONGS, "%ld, not %d", got[0], (int)way * LONGS);
    }
    if (way == ASK)
        TL_MPI(MPI_Waitall(WINDOWS - 1, requests, MPI_STATUSES_IGNORE));
}

int main(int argc, char **argv)
{
    static tl_window_t w[WINDOWS];

    setenv("OMPI_MCA_osc_nicstride_memory", "1", 1);
    setenv("OMPI_MCA_pml_superpipe_memory", "1", 1);
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
        TL_MPI(MPI_Put(&values[1], 1, MPI_LONG, 1 - w->rank, 1, 1, MPI_LONG, w[i].win));
        TL_MPI(MPI_Win_flush(1 - w->rank, w[i].win));
    }
    for (int way = 0; way < WAYS; way++) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (w->rank == 1)
            usleep(100000);
        else
            use_up(w, (way_t)way);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    for (int i = 0; i < WINDOWS; i++) {
        TL_MPI(MPI_Win_unlock_all(w[i].win));
        tl_win_free(&w[i]);
    }
    return tl_finish();
}
