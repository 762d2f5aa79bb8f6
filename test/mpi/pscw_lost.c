/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 3 */
/* windows: create dynamic */
/* methods: auto */
/* leaks: expected */
/* apart: transport */
/**
 * @file
 * Post, start, complete and wait where one of the others is lost meanwhile: rank 1 shuts down all
 * that it has over TCP when rank 0 has posted to it and to rank 2. Rank 0's MPI_Win_wait, and its
 * MPI_Win_test in windows of the second kind, must end with an error, and the notice of rank 2 be
 * used up, so that the next epoch, with rank 2 alone, is right.
 */
#include "test/mpi/testlib.h"

#include <unistd.h>

#include "test/mpi/shutdown.h"

static MPI_Group group_of_two(const tl_window_t *w)
{
    const int ranks[] = {1, 2};
    MPI_Group all, two;

    MPI_Comm_group(w->comm, &all);
    MPI_Group_incl(all, 2, ranks, &two);
    MPI_Group_free(&all);
    return two;
}

/** An access epoch of rank 1 or 2 to rank 0, in which it puts `value`. */
static void access_epoch(const tl_window_t *w, int value)
{
    MPI_Group zero = tl_group_of(w->comm, 0);

    TL_MPI(MPI_Win_start(zero, 0, w->win));
    TL_MPI(MPI_Put(&value, 1, MPI_INT, 0, tl_disp(w, 0, w->rank * (MPI_Aint)sizeof(int)), 1,
                   MPI_INT, w->win));
    TL_MPI(MPI_Win_complete(w->win));
    MPI_Group_free(&zero);
}

static int value_of(const tl_window_t *w, int rank)
{
    return ((const volatile int *)(const void *)w->base)[rank];
}

/** Ends an exposure epoch by MPI_Win_wait or MPI_Win_test. */
static int end_exposure(const tl_window_t *w, bool by_test)
{
    int flag = 0, rc = MPI_SUCCESS;

    if (!by_test)
        return MPI_Win_wait(w->win);
    while (!flag && rc == MPI_SUCCESS)
        rc = MPI_Win_test(w->win, &flag);
    TL_CHECK(flag, "MPI_Win_test gives an error and no flag");
    return rc;
}

/** What rank 0 sees: a good epoch, one with the loss, and one more with rank 2 alone. */
static void expose(const tl_window_t *w, bool by_test)
{
    MPI_Group both = group_of_two(w), two = tl_group_of(w->comm, 2);

    TL_MPI(MPI_Win_post(both, 0, w->win));
    TL_CHECK(end_exposure(w, by_test) == MPI_SUCCESS, "an error before the loss");
    TL_CHECK(value_of(w, 1) == 1 && value_of(w, 2) == 1, "%d and %d", value_of(w, 1),
             value_of(w, 2));
    TL_MPI(MPI_Win_post(both, 0, w->win));
    TL_CHECK(end_exposure(w, by_test) != MPI_SUCCESS, "no error of the loss");
    TL_CHECK(value_of(w, 2) == 2, "rank 2 has put %d", value_of(w, 2));
    TL_MPI(MPI_Win_post(two, 0, w->win));
    TL_CHECK(end_exposure(w, by_test) == MPI_SUCCESS, "an error of the epoch after the loss");
    TL_CHECK(value_of(w, 2) == 3, "the epoch after the loss ends early: %d", value_of(w, 2));
    MPI_Group_free(&both);
    MPI_Group_free(&two);
}

/** Rank 1: leaves its second epoch by force. */
static void be_lost(const tl_window_t *w)
{
    MPI_Group zero = tl_group_of(w->comm, 0);

    access_epoch(w, 1);
    TL_MPI(MPI_Win_start(zero, 0, w->win));
    TL_CHECK(shutdown_connections() > 0, "there is no connection to break");
    MPI_Group_free(&zero);
    /* The window has this epoch open for ever. */
}

static void follow(const tl_window_t *w)
{
    access_epoch(w, 1);
    access_epoch(w, 2);
    /* Rank 0 must wait for this one. */
    usleep(300000);
    access_epoch(w, 3);
}

int main(int argc, char **argv)
{
    shutdown_set_up();
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    shutdown_begin(3);
    /* One window: what is broken stays so. */
    tl_window_t w = tl_win_make(tl_first_kind(), 64, 1, MPI_COMM_WORLD, MPI_INFO_NULL);
    if (w.rank == 0)
        expose(&w, tl_first_kind() == TL_DYNAMIC);
    else if (w.rank == 1)
        be_lost(&w);
    else
        follow(&w);
    MPI_Barrier(w.comm);
    return tl_finish();
}
