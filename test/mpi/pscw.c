/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 1-4 */
/* windows: create allocate dynamic shared */
/**
 * @file
 * Post, start, complete, wait and test: random subsets of groups, empty groups, oneself in a group,
 * both orders of post and start, origins that run ahead of their target, polling, and asserts.
 * Everybody with everybody, and two windows whose epochs cross: epochs_order.
 */
#include "test/mpi/testlib.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static tl_window_t make_ints(tl_kind_t kind, int ints)
{
    return tl_win_make(kind, (MPI_Aint)ints * (MPI_Aint)sizeof(int), sizeof(int), MPI_COMM_WORLD,
                       MPI_INFO_NULL);
}

static void put_int(const tl_window_t *w, const int *value, int target, int index)
{
    MPI_Aint disp = tl_disp(w, target, (MPI_Aint)index * (MPI_Aint)sizeof(int));

    TL_MPI(MPI_Put(value, 1, MPI_INT, target, disp, 1, MPI_INT, w->win));
}

static void get_int(const tl_window_t *w, int *value, int target, int index)
{
    MPI_Aint disp = tl_disp(w, target, (MPI_Aint)index * (MPI_Aint)sizeof(int));

    TL_MPI(MPI_Get(value, 1, MPI_INT, target, disp, 1, MPI_INT, w->win));
}

static int load_int(const tl_window_t *w, int index)
{
    return ((const int *)w->base)[index];
}

/* ---- groups ---- */

static MPI_Group group_of(MPI_Comm comm, int n, const int *ranks)
{
    MPI_Group all, some;

    MPI_Comm_group(comm, &all);
    MPI_Group_incl(all, n, ranks, &some);
    MPI_Group_free(&all);
    return some;
}

/** Opens an exposure epoch for the ranks; the group is gone at once, as MPI allows. */
static void post_to(const tl_window_t *w, int n, const int *ranks, int asserts)
{
    MPI_Group group = group_of(w->comm, n, ranks);

    TL_MPI(MPI_Win_post(group, asserts, w->win));
    MPI_Group_free(&group);
}

/** Opens an access epoch to the ranks. */
static void start_to(const tl_window_t *w, int n, const int *ranks, int asserts)
{
    MPI_Group group = group_of(w->comm, n, ranks);

    TL_MPI(MPI_Win_start(group, asserts, w->win));
    MPI_Group_free(&group);
}

/* ---- patterns ---- */

/** Draws who accesses whom (the same on all ranks), then my sources and my targets from it. */
static void draw_edges(const tl_window_t *w, tl_rng_t *rng, int *n_from, int *from, int *n_to,
                       int *to)
{
    *n_from = *n_to = 0;
    for (int i = 0; i < w->size; i++) {
        for (int j = 0; j < w->size; j++) {
            bool edge = tl_range(rng, 0, 1) == 1;

            if (edge && j == w->rank)
                from[(*n_from)++] = i;
            if (edge && i == w->rank)
                to[(*n_to)++] = j;
        }
    }
}

/** Random graphs of accesses; ranks that have no partner open empty epochs. */
static void test_subsets(tl_kind_t kind)
{
    tl_window_t w = make_ints(kind, tl_size());
    tl_rng_t rng = tl_rng(tl_seed(), 17);
    int *from = tl_alloc((size_t)w.size * sizeof(int)),
        *to = tl_alloc((size_t)w.size * sizeof(int));
    int *want = tl_alloc((size_t)w.size * sizeof(int)), n_from, n_to;

    for (int i = 1; i <= 60; i++) {
        int value = 100 * i + w.rank;

        draw_edges(&w, &rng, &n_from, from, &n_to, to);
        post_to(&w, n_from, from, 0);
        start_to(&w, n_to, to, 0);
        for (int t = 0; t < n_to; t++)
            put_int(&w, &value, to[t], w.rank);
        TL_MPI(MPI_Win_complete(w.win));
        TL_MPI(MPI_Win_wait(w.win));
        for (int f = 0; f < n_from; f++)
            want[from[f]] = 100 * i + from[f];
        TL_BYTES(w.base, want, (size_t)w.size * sizeof(int), "round %d", i);
    }
    free(want);
    free(to);
    free(from);
    tl_win_free(&w);
}

/* ---- order in time ---- */

/**
 * All others run ahead as far as they can; what an epoch of theirs puts must not arrive before
 * the target has posted for it, and all of it must be there when its wait returns.
 */
static void test_run_ahead(tl_kind_t kind)
{
    const int epochs = 40;
    tl_window_t w = make_ints(kind, tl_size());
    int *others = tl_alloc((size_t)w.size * sizeof(int)), zero = 0;

    for (int r = 1; r < w.size; r++)
        others[r - 1] = r;
    for (int i = 1; i <= epochs && w.rank > 0; i++) {
        start_to(&w, 1, &zero, 0);
        put_int(&w, &i, 0, w.rank);
        TL_MPI(MPI_Win_complete(w.win));
    }
    for (int i = 1; i <= epochs && w.rank == 0; i++) {
        post_to(&w, w.size - 1, others, 0);
        TL_MPI(MPI_Win_wait(w.win));
        usleep(i % 10 == 0 ? 2000 : 0);
        for (int r = 1; r < w.size; r++)
            TL_CHECK(load_int(&w, r) == i, "epoch %d: %d from %d", i, load_int(&w, r), r);
    }
    free(others);
    tl_win_free(&w);
}

/** Polling with MPI_Win_test ends each exposure exactly once. */
static void test_poll(tl_kind_t kind)
{
    tl_window_t w = make_ints(kind, 1);
    int next = (w.rank + 1) % w.size, before = (w.rank + w.size - 1) % w.size;

    for (int i = 1; i <= 20; i++) {
        int done = 0, value = 10 * i + w.rank;

        post_to(&w, 1, &before, 0);
        if (next == w.rank || i % 2 == 0) {
            start_to(&w, 1, &next, 0);
        } else {
            TL_MPI(MPI_Win_test(w.win, &done));
            TL_CHECK(done == 0 || w.size > 1, "an exposure nobody has accessed is over");
            start_to(&w, 1, &next, 0);
        }
        put_int(&w, &value, next, 0);
        TL_MPI(MPI_Win_complete(w.win));
        while (!done && TL_MPI(MPI_Win_test(w.win, &done)))
            continue;
        TL_CHECK(load_int(&w, 0) == 10 * i + before, "round %d: %d", i, load_int(&w, 0));
    }
    tl_win_free(&w);
}

/* ---- asserts ---- */

/** NOCHECK on both sides, the post known to have been called. */
static void test_nocheck(tl_kind_t kind)
{
    tl_window_t w = make_ints(kind, 1);
    int next = (w.rank + 1) % w.size, before = (w.rank + w.size - 1) % w.size;

    for (int i = 1; i <= 20; i++) {
        int value = 10 * i + w.rank;

        post_to(&w, 1, &before, MPI_MODE_NOCHECK);
        MPI_Barrier(w.comm);
        start_to(&w, 1, &next, MPI_MODE_NOCHECK);
        put_int(&w, &value, next, 0);
        TL_MPI(MPI_Win_complete(w.win));
        TL_MPI(MPI_Win_wait(w.win));
        TL_CHECK(load_int(&w, 0) == 10 * i + before, "round %d: %d", i, load_int(&w, 0));
    }
    tl_win_free(&w);
}

/** Exposures that are read only, and not stored to since the last synchronisation. */
static void test_readers(tl_kind_t kind)
{
    tl_window_t w = make_ints(kind, 1);
    int next = (w.rank + 1) % w.size, before = (w.rank + w.size - 1) % w.size;
    int *window = (int *)w.base;

    for (int i = 1; i <= 20; i++) {
        int got = -1, asserts = i % 2 == 1 ? MPI_MODE_NOPUT : MPI_MODE_NOPUT | MPI_MODE_NOSTORE;

        if (i % 2 == 1)
            *window = 10 * i + w.rank;
        post_to(&w, 1, &before, asserts);
        start_to(&w, 1, &next, 0);
        get_int(&w, &got, next, 0);
        TL_MPI(MPI_Win_complete(w.win));
        TL_CHECK(got == 10 * (i - 1 + i % 2) + next, "round %d: got %d", i, got);
        TL_MPI(MPI_Win_wait(w.win));
    }
    tl_win_free(&w);
}

int main(int argc, char **argv)
{
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind)) {
        test_subsets(kind);
        test_run_ahead(kind);
        test_poll(kind);
        test_nocheck(kind);
        test_readers(kind);
    }
    return tl_finish();
}
