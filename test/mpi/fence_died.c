/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 4-6 */
/* methods: auto */
/* mpirun: --enable-recovery --mca orte_allowed_exit_without_sync 1 */
/* leaks: expected */
/**
 * @file
 * Two processes die while all are in fences of windows over several nodes: on one host each process
 * is a node of its own. Errors are returned: the others' fences end with one, now and later, and so
 * does MPI_Win_start to the dead with whom nothing was ever exchanged; MPI_Win_free comes to an
 * end.
 */
#include "test/mpi/meet.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

/** Over two hosts with two ranks each the second of one and the first of the other. */
enum { SECOND = 1, THIRD = 2 };
/** How the windows are used. */
enum { EMPTY, PUTS, LATE, START, FREE, KINDS };
/** Microseconds for which all goes on after the first fences, at most. */
enum { LIFE = 300000 };
/** Seconds after which a process that hangs is ended. */
enum { PATIENCE = TL_PATIENCE };

static bool dies(int rank)
{
    return rank == SECOND || rank == THIRD;
}

static void die(int sig)
{
    (void)sig;
    raise(SIGKILL);
}

static void die_soon(int usec)
{
    const struct itimerval time = {.it_value.tv_usec = usec};

    signal(SIGALRM, die);
    setitimer(ITIMER_REAL, &time, NULL);
}

static MPI_Win make_window(void)
{
    static long memory[KINDS][64];
    static int n;
    MPI_Win win;

    TL_MPI(MPI_Win_create(memory[n++], sizeof(memory[0]), sizeof(long), MPI_INFO_NULL,
                          MPI_COMM_WORLD, &win));
    TL_MPI(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    return win;
}

static int fence(MPI_Win win, int kind)
{
    const long value = 5;

    for (int i = 0; i < tl_size() && kind == PUTS; i++)
        if (MPI_Put(&value, 1, MPI_LONG, i, tl_rank(), 1, MPI_LONG, win) != MPI_SUCCESS)
            return MPI_ERR_OTHER;
    return MPI_Win_fence(0, win);
}

/** Fences until there is an error, which those who die do not see. */
static void until_lost(MPI_Win *win)
{
    long n = 0;

    /* On a busy machine the first fences may take longer than that life. */
    while (fence(win[EMPTY], EMPTY) == MPI_SUCCESS && fence(win[PUTS], PUTS) == MPI_SUCCESS)
        if (n++ == 0 && dies(tl_rank()))
            die_soon(tl_rank() == SECOND ? LIFE : LIFE / 2);
    TL_CHECK(n > 0, "there was an error before anybody died");
    for (int i = 0; i < 2; i++) {
        TL_CHECK(fence(win[EMPTY], EMPTY) != MPI_SUCCESS, "no error of a later fence");
        TL_CHECK(fence(win[PUTS], PUTS) != MPI_SUCCESS, "no error of a later fence after puts");
        TL_CHECK(fence(win[LATE], LATE) != MPI_SUCCESS, "no error of another window's fence");
    }
}

static void start(MPI_Win win)
{
    MPI_Group dead = tl_group_of(MPI_COMM_WORLD, THIRD);

    TL_CHECK(MPI_Win_start(dead, 0, win) != MPI_SUCCESS, "no error of a start");
    MPI_Group_free(&dead);
}

int main(int argc, char **argv)
{
    MPI_Win win[KINDS];
    MPI_Comm living;
    long failed;

    if (tl_launched_here())
        setenv("OMPI_MCA_osc_nicstride_node", "0", 1);
    meet_begin_as_child();
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    TL_MPI(MPI_Comm_split(MPI_COMM_WORLD, dies(tl_rank()) ? MPI_UNDEFINED : 0, 0, &living));
    for (int k = 0; k < KINDS; k++)
        win[k] = make_window();
    TL_MPI(MPI_Win_fence(MPI_MODE_NOPRECEDE, win[PUTS]));
    TL_MPI(MPI_Win_fence(MPI_MODE_NOPRECEDE, win[EMPTY]));
    if (!dies(tl_rank()))
        alarm(PATIENCE);
    until_lost(win);
    while (dies(tl_rank()))
        pause();
    start(win[START]);
    TL_MPI(MPI_Win_free(&win[FREE]));
    failed = tl_failed();
    TL_MPI(MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_LONG, MPI_SUM, living));
    if (tl_launched_here())
        MPI_Finalize();
    /* Over hosts MPI itself would wait there for the dead. */
    _exit(failed == 0 ? TL_EXIT_OK : TL_EXIT_FAILED);
}
