/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-4 */
/* windows: create dynamic */
/* methods: auto */
/* apart: transport */
/**
 * @file
 * A target that no transport reaches, because only transports to oneself are allowed and the
 * ranks share no memory. What waits for it must end, with an error. Once it never did: the failed
 * connection was not told to those who waited for locks, acknowledgements and answers.
 */
#include "test/mpi/testlib.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/** Seconds after which a process that hangs is ended by a signal. */
#define PATIENCE TL_PATIENCE

enum { FIVE = 5 };
static const int five = FIVE;

/** Counts calls that failed; components that have no such parameters may well succeed. */
static int failed(int code)
{
    return code != MPI_SUCCESS;
}

/** The last rank is the target, the first is the origin; returns the errors. */
static int put(const tl_window_t *w)
{
    int target = w->size - 1;

    return failed(MPI_Put(&five, 1, MPI_INT, target, tl_disp(w, target, 0), 1, MPI_INT, w->win));
}

static int by_fence(const tl_window_t *w)
{
    int errors = failed(MPI_Win_fence(0, w->win));

    errors += w->rank == 0 ? put(w) : 0;
    return errors + failed(MPI_Win_fence(MPI_MODE_NOSUCCEED, w->win));
}

static int by_lock(const tl_window_t *w)
{
    int target = w->size - 1;

    if (w->rank > 0)
        return 0;
    if (MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, w->win) != MPI_SUCCESS)
        return 1;
    int errors = put(w) + failed(MPI_Win_flush(target, w->win));
    return errors + failed(MPI_Win_unlock(target, w->win));
}

static int by_lock_all(const tl_window_t *w)
{
    int target = w->size - 1, old = -1, errors;

    if (w->rank > 0)
        return 0;
    errors = failed(MPI_Win_lock_all(0, w->win));
    errors += put(w);
    errors += failed(
        MPI_Fetch_and_op(&five, &old, MPI_INT, target, tl_disp(w, target, 0), MPI_REPLACE, w->win));
    errors += failed(MPI_Win_flush_local_all(w->win));
    return errors + failed(MPI_Win_unlock_all(w->win));
}

/** Only where the target could tell the origin of its epoch there is one for the origin. */
static int by_pscw(const tl_window_t *w)
{
    int last = w->size - 1, errors = 0;
    MPI_Group origin = tl_group_of(w->comm, 0), target = tl_group_of(w->comm, last);

    if (w->rank == last)
        errors = failed(MPI_Win_post(origin, 0, w->win));
    MPI_Bcast(&errors, 1, MPI_INT, last, w->comm);
    if (errors == 0 && w->rank == 0) {
        TL_MPI(MPI_Win_start(target, 0, w->win));
        errors = put(w);
        errors += failed(MPI_Win_complete(w->win));
    } else if (w->rank == last) {
        int late = failed(MPI_Win_wait(w->win));
        TL_CHECK(late == errors, "%d errors in MPI_Win_wait, %d before it", late, errors);
    }
    MPI_Group_free(&origin);
    MPI_Group_free(&target);
    return errors;
}

/** The origin cannot tell the target that its epoch is over. With other components there may be
 *  nothing wrong. */
static void try_complete(tl_kind_t kind)
{
    tl_window_t w = tl_win_make(kind, sizeof(int), 1, MPI_COMM_WORLD, MPI_INFO_NULL);
    const char *osc = getenv("OMPI_MCA_osc");

    if (w.rank == 0 && osc != NULL && strcmp(osc, "nicstride") == 0) {
        MPI_Group target = tl_group_of(w.comm, w.size - 1);
        TL_MPI(MPI_Win_start(target, MPI_MODE_NOCHECK, w.win));
        TL_CHECK(MPI_Win_complete(w.win) != MPI_SUCCESS, "the target was told");
        MPI_Group_free(&target);
    }
    tl_win_free(&w);
}

/** A window of its own for each: whoever has failed once may go on failing. */
static void try_epoch(tl_kind_t kind, int (*epoch)(const tl_window_t *), const char *name)
{
    tl_window_t w = tl_win_make(kind, sizeof(int), 1, MPI_COMM_WORLD, MPI_INFO_NULL);
    int errors = epoch(&w);

    MPI_Bcast(&errors, 1, MPI_INT, 0, w.comm);
    if (errors == 0 && w.rank == w.size - 1) {
        TL_MPI(MPI_Win_lock(MPI_LOCK_SHARED, w.rank, 0, w.win));
        TL_CHECK(*(int *)(void *)w.base == FIVE, "%s window, %s: no error, but no data",
                 tl_kind_name(kind), name);
        TL_MPI(MPI_Win_unlock(w.rank, w.win));
    }
    tl_win_free(&w);
}

int main(int argc, char **argv)
{
    setenv("UCX_TLS", "self", 1);
    setenv("OMPI_MCA_osc_nicstride_node", "0", 1);
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    tl_need_ranks(2, 64);
    alarm(PATIENCE);
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind)) {
        try_epoch(kind, by_fence, "fence");
        try_epoch(kind, by_lock, "lock");
        try_epoch(kind, by_lock_all, "lock_all");
        try_epoch(kind, by_pscw, "pscw");
        try_complete(kind);
    }
    return tl_finish();
}
