/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-3 */
/* windows: create */
/* methods: auto */
/* retry: start spawn */
/**
 * @file
 * Windows are made while processes leave that have shared a window with these: that those are lost
 * is noticed at any moment, in the midst of making a window, too.
 *
 * The program starts itself with the argument -child.
 */
#include "test/mpi/phase.h"
#include "test/mpi/testlib.h"

#include <string.h>
#include <unistd.h>

enum { CHILDREN = 3, ROUNDS = 3, WINDOWS = 150 };
#define CHILD_OPTION "-child"

/** A window over all: each adds 1 to a counter of each. */
static void count(MPI_Comm all)
{
    int size;
    long counter = 0, one = 1;
    MPI_Win win;

    MPI_Comm_size(all, &size);
    if (!TL_MPI(MPI_Win_create(&counter, sizeof(counter), 1, MPI_INFO_NULL, all, &win)))
        return;
    TL_MPI(MPI_Win_fence(0, win));
    for (int i = 0; i < size; i++)
        TL_MPI(MPI_Accumulate(&one, 1, MPI_LONG, i, 0, 1, MPI_LONG, MPI_SUM, win));
    TL_MPI(MPI_Win_fence(0, win));
    TL_CHECK(counter == size, "%ld of %d", counter, size);
    TL_MPI(MPI_Win_free(&win));
}

static void meet(MPI_Comm inter, int high)
{
    MPI_Comm all;

    TL_MPI(MPI_Intercomm_merge(inter, high, &all));
    count(all);
    TL_MPI(MPI_Comm_free(&all));
    TL_MPI(MPI_Comm_disconnect(&inter));
}

/** Children leave one after another. */
static int child(void)
{
    MPI_Comm parent;

    MPI_Comm_get_parent(&parent);
    MPI_Comm_set_errhandler(parent, MPI_ERRORS_RETURN);
    meet(parent, 1);
    usleep(20000 * (useconds_t)tl_rank());
    return tl_finish();
}

int main(int argc, char **argv)
{
    char option[] = CHILD_OPTION, *child_argv[] = {option, NULL};
    MPI_Comm inter;

    phase("start");
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    phase("windows");
    if (argc > 1 && strcmp(argv[1], CHILD_OPTION) == 0)
        return child();
    /* Over several hosts Open MPI 4.1 fails or hangs in MPI_Comm_spawn. */
    for (int round = 0; round < ROUNDS && tl_one_host(); round++) {
        phase("spawn");
        if (!TL_MPI(MPI_Comm_spawn(argv[0], child_argv, CHILDREN, MPI_INFO_NULL, 0, MPI_COMM_WORLD,
                                   &inter, MPI_ERRCODES_IGNORE)))
            break;
        phase("windows");
        MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
        meet(inter, 0);
        for (int i = 0; i < WINDOWS; i++)
            count(MPI_COMM_WORLD);
    }
    return tl_finish();
}
