/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2 */
/* windows: create */
/* methods: auto */
/* sanitized: pairs */
/**
 * @file
 * An operation and its flush take as long beside a thousand windows that are in use as alone. The
 * shortest of many counts: others want the processors, too.
 */
#include "test/mpi/testlib.h"

enum { WINDOWS = 1000, OPERATIONS = 3000 };

/** The last one gets an operation. */
static void use(MPI_Win win)
{
    const long one = 1;
    long before;

    TL_MPI(MPI_Fetch_and_op(&one, &before, MPI_LONG, tl_size() - 1, 0, MPI_SUM, win));
    TL_MPI(MPI_Win_flush(tl_size() - 1, win));
}

static double shortest(MPI_Win win)
{
    double least = 1;

    for (int i = 0; i < OPERATIONS; i++) {
        const double begun = MPI_Wtime();

        use(win);
        const double took = MPI_Wtime() - begun;
        least = took < least ? took : least;
    }
    return least;
}

int main(int argc, char **argv)
{
    static long memory[WINDOWS];
    static MPI_Win win[WINDOWS];
    double alone = 0;

    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    for (int i = 0; i < WINDOWS; i++) {
        TL_MPI(MPI_Win_create(&memory[i], sizeof(memory[i]), 1, MPI_INFO_NULL, MPI_COMM_WORLD,
                              &win[i]));
        TL_MPI(MPI_Win_lock_all(0, win[i]));
        if (tl_rank() == 0 && i == 0)
            alone = shortest(win[i]);
        else if (tl_rank() == 0)
            use(win[i]);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (tl_rank() == 0) {
        const double many = shortest(win[0]);

        TL_CHECK(many < 3 * alone, "%.2f us, and %.2f us beside %d other windows", alone * 1e6,
                 many * 1e6, WINDOWS - 1);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < WINDOWS; i++) {
        TL_MPI(MPI_Win_unlock_all(win[i]));
        TL_MPI(MPI_Win_free(&win[i]));
    }
    return tl_finish();
}
