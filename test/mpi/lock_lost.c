/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 4 */
/* windows: create dynamic */
/* methods: auto */
/* leaks: expected */
/* apart: transport */
/**
 * @file
 * A connection breaks while both processes live: who held the target's lock, or waited for it, is
 * forgotten there, and the others get it. Once they waited for ever. What was to be done under a
 * lock that never came is not done.
 */
#include "test/mpi/testlib.h"

#include <signal.h>
#include <sys/time.h>

#include "test/mpi/shutdown.h"

/** CPU time after which who waits for the lock breaks its connections. */
#define WAITED_USEC 300000

/** After the flush the lock is held for sure. */
static void take(const tl_window_t *w)
{
    static long got;

    TL_MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, w->win));
    TL_MPI(MPI_Get(&got, 1, MPI_LONG, 0, tl_disp(w, 0, 0), 1, MPI_LONG, w->win));
    TL_MPI(MPI_Win_flush(0, w->win));
}

static void say(const tl_window_t *w, int to)
{
    TL_MPI(MPI_Send(NULL, 0, MPI_BYTE, to, 0, w->comm));
}

static void hear(const tl_window_t *w, int from)
{
    TL_MPI(MPI_Recv(NULL, 0, MPI_BYTE, from, 0, w->comm, MPI_STATUS_IGNORE));
}

/** Rank 1 breaks its connections as the holder. */
static void holder(const tl_window_t *w)
{
    take(w);
    say(w, 3);
    hear(w, 3);
    TL_CHECK(shutdown_connections() > 0, "there is no connection to break");
}

static void break_off(int signal)
{
    (void)signal;
    (void)shutdown_connections();
}

/** Rank 2 does while it waits. */
static void waiter(const tl_window_t *w)
{
    const struct itimerval time = {.it_value = {.tv_usec = WAITED_USEC}};
    static const long value = 5;
    int errors = 0;

    signal(SIGPROF, break_off);
    hear(w, 3);
    setitimer(ITIMER_PROF, &time, NULL);
    errors += MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, w->win) != MPI_SUCCESS;
    errors += MPI_Put(&value, 1, MPI_LONG, 0, tl_disp(w, 0, 0), 1, MPI_LONG, w->win) != MPI_SUCCESS;
    errors += MPI_Win_unlock(0, w->win) != MPI_SUCCESS;
    TL_CHECK(errors > 0, "no error of the waiter");
    say(w, 3);
}

/** Rank 3 waits for the first, and is waited for by the second. */
static void third(const tl_window_t *w)
{
    hear(w, 1);
    say(w, 1);
    take(w);
    say(w, 2);
    hear(w, 2);
    TL_MPI(MPI_Win_unlock(0, w->win));
    say(w, 0);
}

int main(int argc, char **argv)
{
    shutdown_set_up();
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    shutdown_begin(4);
    /* One window: what is broken stays so. */
    tl_window_t w = tl_win_make(tl_first_kind(), 64, 1, MPI_COMM_WORLD, MPI_INFO_NULL);
    TL_MPI(MPI_Win_set_errhandler(w.win, MPI_ERRORS_RETURN));
    if (w.rank == 1) {
        holder(&w);
    } else if (w.rank == 2) {
        waiter(&w);
    } else if (w.rank == 3) {
        third(&w);
    } else {
        hear(&w, 3);
        take(&w);
        TL_MPI(MPI_Win_unlock(0, w.win));
        TL_CHECK(*(const long *)w.base == 0, "the waiter has put something");
        /* Who was lost does not stay in the window's lock either: that is got. Its end may tell of
         * the connection that was lost. */
        TL_MPI(MPI_Win_lock_all(0, w.win));
        (void)MPI_Win_unlock_all(w.win);
    }
    MPI_Barrier(w.comm);
    return tl_finish();
}
