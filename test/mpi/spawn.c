/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 1-4 */
/* windows: create allocate dynamic shared */
/* retry: start spawn */
/**
 * @file
 * Processes that come later: spawned, merged with their parents and used through windows by both;
 * spawned a second time while windows of the first are still there; and windows that are made while
 * processes leave. Peers are other processes than those of MPI_COMM_WORLD with the same ranks, and
 * go while the parents live on. Two parts of a job that meet by connect and accept: jobs.
 *
 * MPI_Comm_spawn of Open MPI 4.1.4 sometimes waits forever inside PMIx, with any component: then,
 * and only then, the run is made again.
 *
 * The program starts itself with the argument -child. Skipped where nothing can be spawned.
 */
#include "test/mpi/phase.h"
#include "test/mpi/testlib.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CHILDREN = 3, LONGS = 3000 };
#define CHILD_OPTION "-child"

/* ---- windows over any communicator ---- */

static MPI_Aint at(const tl_window_t *w, int target, int index)
{
    return tl_disp(w, target, (MPI_Aint)index * (MPI_Aint)sizeof(long));
}

static void check_longs(const long *data, int n, long first, const char *what)
{
    int wrong = 0;

    for (int i = 0; i < n; i++)
        wrong += data[i] != first + i;
    TL_CHECK(wrong == 0, "%s: %d of %d longs wrong", what, wrong, n);
}

/** Everybody puts to the next, gets from it, and adds to a counter of everybody. */
static void use_window(const tl_window_t *w, long salt)
{
    long *data = tl_alloc(LONGS * sizeof(long)), one = 1, got;
    int next = (w->rank + 1) % w->size, before = (w->rank + w->size - 1) % w->size;

    for (int i = 0; i < LONGS; i++)
        data[i] = salt + w->rank * 10000L + i;
    TL_MPI(MPI_Win_fence(0, w->win));
    TL_MPI(MPI_Put(data, LONGS, MPI_LONG, next, at(w, next, 1), LONGS, MPI_LONG, w->win));
    TL_MPI(MPI_Win_fence(MPI_MODE_NOSUCCEED, w->win));
    check_longs((long *)w->base + 1, LONGS, salt + before * 10000L, "put");
    TL_MPI(MPI_Win_lock_all(0, w->win));
    memset(data, 0, LONGS * sizeof(long));
    TL_MPI(MPI_Get(data, LONGS, MPI_LONG, next, at(w, next, 1), LONGS, MPI_LONG, w->win));
    for (int t = 0; t < w->size; t++)
        TL_MPI(MPI_Accumulate(&one, 1, MPI_LONG, t, at(w, t, 0), 1, MPI_LONG, MPI_SUM, w->win));
    TL_MPI(MPI_Win_flush_all(w->win));
    check_longs(data, LONGS, salt + w->rank * 10000L, "get");
    MPI_Barrier(w->comm);
    TL_MPI(MPI_Get(&got, 1, MPI_LONG, next, at(w, next, 0), 1, MPI_LONG, w->win));
    TL_MPI(MPI_Win_unlock_all(w->win));
    TL_CHECK(got == w->size, "%ld have added, not %d", got, w->size);
    free(data);
}

static tl_window_t make_window(tl_kind_t kind, MPI_Comm comm)
{
    return tl_win_make(kind, (LONGS + 1) * sizeof(long), sizeof(long), comm, MPI_INFO_NULL);
}

static bool on_one_node(MPI_Comm comm)
{
    MPI_Comm node;
    int here, all;

    MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_size(node, &here);
    MPI_Comm_size(comm, &all);
    MPI_Comm_free(&node);
    int mine = here == all, everybody = 0;
    MPI_Allreduce(&mine, &everybody, 1, MPI_INT, MPI_LAND, comm);
    return everybody;
}

/** Both sides of an intercommunicator: windows of a kind over all of them together. */
static void use_together(MPI_Comm inter, bool second, tl_kind_t kind)
{
    MPI_Comm merged;

    MPI_Intercomm_merge(inter, second, &merged);
    if (kind != TL_SHARED || on_one_node(merged)) {
        tl_window_t a = make_window(kind, merged), b = make_window(kind, merged);

        use_window(&a, 1000000);
        use_window(&b, 2000000);
        tl_win_free(&a);
        tl_win_free(&b);
    }
    MPI_Comm_free(&merged);
}

/* ---- parents and children ---- */

/** Tells the children what comes next: a kind of window, or TL_KINDS for the end. */
static void tell_children(MPI_Comm inter, int word)
{
    MPI_Bcast(&word, 1, MPI_INT, tl_rank() == 0 ? MPI_ROOT : MPI_PROC_NULL, inter);
}

static int child(void)
{
    MPI_Comm parent;
    int word = TL_KINDS;

    MPI_Comm_get_parent(&parent);
    MPI_Comm_set_errhandler(parent, MPI_ERRORS_RETURN);
    MPI_Bcast(&word, 1, MPI_INT, 0, parent);
    while (word < TL_KINDS) {
        use_together(parent, true, (tl_kind_t)word);
        MPI_Bcast(&word, 1, MPI_INT, 0, parent);
    }
    MPI_Comm_disconnect(&parent);
    usleep(20000 * (useconds_t)tl_rank());
    return tl_finish();
}

static bool spawn(const char *program, MPI_Comm *inter)
{
    char option[] = CHILD_OPTION, *argv[] = {option, NULL};
    int codes[CHILDREN], good, all_good = 0;

    phase("spawn");
    good = MPI_Comm_spawn(program, argv, CHILDREN, MPI_INFO_NULL, 0, MPI_COMM_WORLD, inter,
                          codes) == MPI_SUCCESS;
    MPI_Allreduce(&good, &all_good, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    phase("windows");
    return all_good;
}

static void disconnect(MPI_Comm *inter)
{
    tell_children(*inter, TL_KINDS);
    MPI_Comm_disconnect(inter);
}

/** Windows of every kind over the parents and one set of children. */
static void use_with(MPI_Comm inter)
{
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind)) {
        tell_children(inter, kind);
        use_together(inter, false, kind);
    }
}

/**
 * Two sets of children, which have the same ranks and are others. The parents use windows with
 * one, with both by turns, with the second alone, and, both gone, one that they have had all along.
 */
static void test_children(const char *program)
{
    MPI_Comm first, second;

    if (!spawn(program, &first))
        tl_skip("processes cannot be spawned here");
    tl_window_t w = make_window(tl_first_kind(), MPI_COMM_WORLD);
    use_with(first);
    if (TL_CHECK(spawn(program, &second), "no second set of children")) {
        use_with(second);
        use_with(first);
        disconnect(&first);
        use_with(second);
        disconnect(&second);
    } else {
        disconnect(&first);
    }
    use_window(&w, 8);
    tl_win_free(&w);
}

/* ---- windows while processes leave ---- */

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

/** Children that have shared a window leave one after another: that they are lost is noticed at any
 *  moment, in the midst of making a window, too. */
static void test_leaving(const char *program)
{
    enum { WINDOWS = 150 };
    const int rounds = tl_large() ? 3 : tl_slow() ? 1 : 2;
    MPI_Comm inter;

    for (int round = 0; round < rounds && TL_CHECK(spawn(program, &inter), "no children");
         round++) {
        tell_children(inter, TL_CREATE);
        use_together(inter, false, TL_CREATE);
        disconnect(&inter);
        for (int i = 0; i < WINDOWS; i++)
            count(MPI_COMM_WORLD);
    }
}

int main(int argc, char **argv)
{
    phase("start");
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    phase("windows");
    if (argc > 1 && strcmp(argv[1], CHILD_OPTION) == 0)
        return child();
    /* Over several hosts Open MPI 4.1 fails or hangs in MPI_Comm_spawn, whoever serves the windows.
     */
    if (!tl_one_host())
        tl_skip("processes are spawned on one host only");
    test_children(argv[0]);
    test_leaving(argv[0]);
    return tl_finish();
}
