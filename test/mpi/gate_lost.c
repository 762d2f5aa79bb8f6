/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 3 */
/* windows: create dynamic allocate */
/* methods: rdma */
/* mpirun: --mca osc_nicstride_adapter_locks on */
/* leaks: expected */
/* apart: wire */
/**
 * @file
 * A connection breaks while both processes live, and the one that is lost has the target's lock by
 * its gate. Where it has that exclusively the next one in the queue gets it, and then the target
 * itself. Where it shares it, in the second kind of window, nobody knows who has what: the window
 * has failed for both. Where it has nothing, in the third, the others go on, though who is lost is
 * noticed once more while one of them shares the lock.
 */
#include "test/mpi/counter.h"
#include "test/mpi/shutdown.h"
#include "test/mpi/testlib.h"

#include <unistd.h>

enum { PATIENCE = 2000 };

static counter_t *taken;

static bool is_shared(const tl_window_t *w)
{
    return w->kind != TL_CREATE;
}

static bool is_idle(const tl_window_t *w)
{
    return w->kind == TL_ALLOCATE;
}

/** The first error. */
static int take(const tl_window_t *w, int type)
{
    static long got;
    int rc = MPI_Win_lock(type, 0, 0, w->win);

    if (rc == MPI_SUCCESS)
        rc = MPI_Get(&got, 1, MPI_LONG, 0, tl_disp(w, 0, 0), 1, MPI_LONG, w->win);
    return rc == MPI_SUCCESS ? MPI_Win_flush(0, w->win) : rc;
}

static void say(const tl_window_t *w, int to)
{
    TL_MPI(MPI_Send(NULL, 0, MPI_BYTE, to, 0, w->comm));
}

static void hear(const tl_window_t *w, int from)
{
    TL_MPI(MPI_Recv(NULL, 0, MPI_BYTE, from, 0, w->comm, MPI_STATUS_IGNORE));
}

/** Takes the lock until that goes by the gate. */
static void take_by_gate(const tl_window_t *w)
{
    const int type = is_shared(w) ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE;
    unsigned long long before = counter_read(taken);
    int tries = 0;

    TL_MPI(take(w, type));
    while (counter_read(taken) == before && tries++ < PATIENCE) {
        TL_MPI(MPI_Win_unlock(0, w->win));
        TL_MPI(take(w, type));
    }
    TL_CHECK(tries < PATIENCE, "no lock was taken by the adapter");
}

/** Rank 1 is lost while it has the lock, or after that. */
static void holder(const tl_window_t *w)
{
    take_by_gate(w);
    if (is_idle(w))
        TL_MPI(MPI_Win_unlock(0, w->win));
    say(w, 2);
    hear(w, 2);
    TL_CHECK(shutdown_connections() > 0, "there is no connection to break");
}

/** It wants the lock now. */
static void next(const tl_window_t *w)
{
    const int rc = take(w, MPI_LOCK_EXCLUSIVE);

    TL_CHECK((rc != MPI_SUCCESS) == (is_shared(w) && !is_idle(w)), "rank %d: %d", w->rank, rc);
    if (rc == MPI_SUCCESS)
        TL_MPI(MPI_Win_unlock(0, w->win));
}

/** The target asks for the lock of the one that is lost, and so notices that, in the end. */
static void notice(const tl_window_t *w)
{
    int rc = MPI_SUCCESS;

    for (int tries = 0; rc == MPI_SUCCESS && tries < PATIENCE; tries++) {
        static long got;

        usleep(1000);
        rc = MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, w->win);
        if (rc == MPI_SUCCESS) {
            rc = MPI_Get(&got, 1, MPI_LONG, 1, tl_disp(w, 1, 0), 1, MPI_LONG, w->win);
            rc = MPI_Win_unlock(1, w->win) != MPI_SUCCESS ? MPI_ERR_OTHER : rc;
        }
    }
    TL_CHECK(rc != MPI_SUCCESS, "rank 1 is not lost");
}

static void other(const tl_window_t *w)
{
    hear(w, 1);
    say(w, 1);
    if (is_idle(w)) {
        say(w, 0);
        hear(w, 0);
        take_by_gate(w);
        say(w, 0);
        hear(w, 0);
        TL_MPI(MPI_Win_unlock(0, w->win));
    }
    next(w);
    say(w, 0);
}

int main(int argc, char **argv)
{
    int index, provided;

    shutdown_set_up();
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    TL_MPI(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    if (!counter_find("osc_nicstride_adapter_locks", &index))
        tl_skip("the component is not there");
    shutdown_begin(3);
    taken = counter_begin("osc_nicstride_adapter_locks");
    /* One window: what is broken stays so. */
    tl_window_t w = tl_win_make(tl_first_kind(), 64, 1, MPI_COMM_WORLD, MPI_INFO_NULL);
    TL_MPI(MPI_Win_set_errhandler(w.win, MPI_ERRORS_RETURN));
    if (w.rank == 1) {
        holder(&w);
    } else if (w.rank == 2) {
        other(&w);
    } else {
        for (int i = 0; i < 2 && is_idle(&w); i++) {
            hear(&w, 2);
            notice(&w);
            say(&w, 2);
        }
        hear(&w, 2);
        next(&w);
    }
    MPI_Barrier(w.comm);
    counter_end(taken);
    TL_MPI(MPI_T_finalize());
    return tl_finish();
}
