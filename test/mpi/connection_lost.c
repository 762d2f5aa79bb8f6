/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 6 */
/* windows: create dynamic */
/* methods: auto */
/* leaks: expected */
/* apart: transport */
/**
 * @file
 * Connections that break while both processes live. The last rank shuts down all that it has over
 * TCP when the others wait for its answers, each in its way: in a flush, for an old value, for a
 * request, for a long put, for a lock. All must end, with an error. Once they waited for ever,
 * unless something more was sent.
 */
#include "test/mpi/testlib.h"

#include <unistd.h>

#include "test/mpi/shutdown.h"

enum { MUCH = 8 << 20 };
static const int five = 5;

static int failed(int code)
{
    return code != MPI_SUCCESS;
}

static int flush(const tl_window_t *w, int target)
{
    int errors =
        failed(MPI_Put(&five, 1, MPI_INT, target, tl_disp(w, target, 0), 1, MPI_INT, w->win));

    return errors + failed(MPI_Win_flush(target, w->win));
}

static int fetch(const tl_window_t *w, int target)
{
    static int old;
    int errors = failed(
        MPI_Fetch_and_op(&five, &old, MPI_INT, target, tl_disp(w, target, 0), MPI_SUM, w->win));

    return errors + failed(MPI_Win_flush(target, w->win));
}

/** Nothing but MPI_Wait waits, which knows nothing of windows. */
static int request(const tl_window_t *w, int target)
{
    static int got;
    MPI_Request r;

    if (failed(MPI_Rget(&got, 1, MPI_INT, target, tl_disp(w, target, 0), 1, MPI_INT, w->win, &r)))
        return 1;
    return failed(MPI_Wait(&r, MPI_STATUS_IGNORE));
}

/** Much data, which UCX itself may wait for. */
static int long_put(const tl_window_t *w, int target)
{
    static char data[MUCH];
    MPI_Request r;

    if (failed(MPI_Rput(data, MUCH, MPI_BYTE, target, tl_disp(w, target, 0), MUCH, MPI_BYTE, w->win,
                        &r)))
        return 1;
    return failed(MPI_Wait(&r, MPI_STATUS_IGNORE)) + failed(MPI_Win_flush(target, w->win));
}

static int lock(const tl_window_t *w, int target)
{
    if (failed(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, w->win)))
        return 1;
    return failed(MPI_Win_unlock(target, w->win));
}

static const struct {
    const char *name;
    int (*run)(const tl_window_t *, int target);
    bool locks; /**< it takes the lock itself */
} waits[] = {{"flush", flush, false},
             {"fetch", fetch, false},
             {"request", request, false},
             {"long put", long_put, false},
             {"lock", lock, true}};

/** The last rank lets the first begin, with its last call of MPI for a while; that one the next. */
static void tell_to_begin(const tl_window_t *w, int me)
{
    int next = (me + 1) % w->size;

    if (me < w->size - 1) {
        TL_MPI(MPI_Recv(NULL, 0, MPI_BYTE, me == 0 ? w->size - 1 : me - 1, 0, w->comm,
                        MPI_STATUS_IGNORE));
    }
    if (next < w->size - 1)
        TL_MPI(MPI_Send(NULL, 0, MPI_BYTE, next, 0, w->comm));
}

/** All but the last rank wait for it, each in its way, and once more after that. */
static void wait_for_last(const tl_window_t *w, int me)
{
    int target = w->size - 1, broken = 0, errors = 0;

    if (me < target && !waits[me].locks)
        TL_MPI(MPI_Win_lock_all(MPI_MODE_NOCHECK, w->win));
    if (me < target)
        TL_CHECK(waits[me].run(w, target) == 0, "%s before", waits[me].name);
    MPI_Barrier(w->comm);
    tell_to_begin(w, me);
    if (me < target) {
        errors = waits[me].run(w, target);
    } else {
        /* Away from MPI: nothing is answered until it is too late. */
        usleep(500000);
        broken = shutdown_connections();
    }
    MPI_Bcast(&broken, 1, MPI_INT, target, w->comm);
    if (me < target) {
        TL_CHECK(broken == 0 || errors > 0, "%s: no error", waits[me].name);
        TL_CHECK(broken == 0 || waits[me].run(w, target) > 0, "%s: no error later", waits[me].name);
        if (!waits[me].locks)
            (void)MPI_Win_unlock_all(w->win);
    }
}

int main(int argc, char **argv)
{
    shutdown_set_up();
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    shutdown_begin(6);
    /* One window: what is broken stays so. */
    tl_window_t w = tl_win_make(tl_first_kind(), MUCH, 1, MPI_COMM_WORLD, MPI_INFO_NULL);
    wait_for_last(&w, w.rank);
    tl_win_free(&w);
    return tl_finish();
}
