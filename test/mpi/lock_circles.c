/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-4 */
/* windows: create allocate dynamic */
/**
 * @file
 * MPI_Win_lock_all beside processes that hold locks of several targets at a time: nobody waits for
 * ever, and nobody sees what is done under an exclusive lock. Over hosts, and on a node.
 */
#include "test/mpi/testlib.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test/mpi/counter.h"

/* Two cells that are equal but under an exclusive lock, and one that counts. */
enum { LEFT, RIGHT, COUNT, CELLS };

static MPI_Aint at(const tl_window_t *w, int target, int index)
{
    return tl_disp(w, target, (MPI_Aint)index * (MPI_Aint)sizeof(long));
}

static void put(const tl_window_t *w, const long *value, int target, int index)
{
    TL_MPI(MPI_Put(value, 1, MPI_LONG, target, at(w, target, index), 1, MPI_LONG, w->win));
}

static void get(const tl_window_t *w, long *value, int target, int index)
{
    TL_MPI(MPI_Get(value, 1, MPI_LONG, target, at(w, target, index), 1, MPI_LONG, w->win));
}

/** Under an exclusive lock. */
static void update(const tl_window_t *w, int t)
{
    long left = -1, right = -2, count = -1;

    get(w, &left, t, LEFT);
    get(w, &right, t, RIGHT);
    get(w, &count, t, COUNT);
    TL_MPI(MPI_Win_flush(t, w->win));
    TL_CHECK(left == right, "%ld and %ld at %d", left, right, t);
    left++;
    right++;
    count++;
    put(w, &left, t, LEFT);
    TL_MPI(MPI_Win_flush(t, w->win));
    put(w, &count, t, COUNT);
    put(w, &right, t, RIGHT);
    TL_MPI(MPI_Win_flush_local(t, w->win));
}

/** Under a shared one. */
static void look(const tl_window_t *w, int t)
{
    long left = -1, right = -2;

    get(w, &left, t, LEFT);
    TL_MPI(MPI_Win_flush(t, w->win));
    get(w, &right, t, RIGHT);
    TL_MPI(MPI_Win_flush(t, w->win));
    TL_CHECK(left == right, "%ld and %ld at %d", left, right, t);
}

/** `one` holds the lock of `a`, and then asks for that of `b`; `all` is in MPI_Win_lock_all, and
 *  then accesses `a`. Whoever comes first. */
static void pair(const tl_window_t *w, int one, int all, int a, int b)
{
    for (int first = 0; first < 2; first++) {
        MPI_Barrier(w->comm);
        if (w->rank == one) {
            usleep(first == 0 ? 0 : 4000);
            TL_MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, a, 0, w->win));
            update(w, a);
            TL_MPI(MPI_Win_flush(a, w->win));
            usleep(8000);
            TL_MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, b, 0, w->win));
            update(w, b);
            TL_MPI(MPI_Win_unlock(b, w->win));
            TL_MPI(MPI_Win_unlock(a, w->win));
        }
        if (w->rank == all) {
            usleep(first == 0 ? 4000 : 0);
            TL_MPI(MPI_Win_lock_all(0, w->win));
            usleep(8000);
            look(w, a);
            look(w, b);
            TL_MPI(MPI_Win_unlock_all(w->win));
        }
    }
}

static void test_pairs(const tl_window_t *w)
{
    for (int one = 0; one < w->size; one++) {
        const int all = (one + (w->size + 1) / 2) % w->size;

        pair(w, one, all, one, all);
        pair(w, one, all, all, one);
    }
}

/** A shared lock beside MPI_Win_lock_all of others, which last until it is given back. */
static void test_shared(const tl_window_t *w)
{
    MPI_Barrier(w->comm);
    if (w->rank != 0)
        TL_MPI(MPI_Win_lock_all(0, w->win));
    MPI_Barrier(w->comm);
    if (w->rank == 0) {
        for (int t = 0; t < w->size; t++)
            TL_MPI(MPI_Win_lock(MPI_LOCK_SHARED, t, 0, w->win));
        for (int t = 0; t < w->size; t++) {
            look(w, t);
            TL_MPI(MPI_Win_unlock(t, w->win));
        }
    }
    MPI_Barrier(w->comm);
    if (w->rank != 0)
        TL_MPI(MPI_Win_unlock_all(w->win));
    MPI_Barrier(w->comm);
}

/** Locks of several targets, taken in ascending order, some shared. */
static void nest(const tl_window_t *w, tl_rng_t *r, long *updates)
{
    int type[64] = {0};

    for (int t = 0; t < w->size; t++) {
        if (tl_range(r, 0, 1) == 0)
            continue;
        type[t] = tl_range(r, 0, 1) == 0 ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE;
        TL_MPI(MPI_Win_lock(type[t], t, 0, w->win));
        if (type[t] == MPI_LOCK_EXCLUSIVE) {
            update(w, t);
            ++*updates;
        } else {
            look(w, t);
        }
    }
    for (int k = 0, t = (int)tl_range(r, 0, w->size - 1); k < w->size; k++, t++)
        if (type[t % w->size] != 0)
            TL_MPI(MPI_Win_unlock(t % w->size, w->win));
}

static void test_random(const tl_window_t *w)
{
    tl_rng_t r = tl_rng(tl_seed(), (uint64_t)w->rank);
    long updates = 0, all = 0, mine = 0, sum = 0, before = 0;

    MPI_Barrier(w->comm);
    TL_MPI(MPI_Win_lock(MPI_LOCK_SHARED, w->rank, 0, w->win));
    mine = ((const volatile long *)w->base)[COUNT];
    TL_MPI(MPI_Win_unlock(w->rank, w->win));
    MPI_Allreduce(&mine, &before, 1, MPI_LONG, MPI_SUM, w->comm);
    for (int i = 0; i < 60 * tl_factor(); i++) {
        if (tl_range(&r, 0, 2) > 0) {
            nest(w, &r, &updates);
            continue;
        }
        TL_MPI(MPI_Win_lock_all(0, w->win));
        for (int64_t k = tl_range(&r, 0, 3); k > 0; k--)
            look(w, (int)tl_range(&r, 0, w->size - 1));
        TL_MPI(MPI_Win_unlock_all(w->win));
    }
    MPI_Barrier(w->comm);
    TL_MPI(MPI_Win_lock(MPI_LOCK_SHARED, w->rank, 0, w->win));
    mine = ((const volatile long *)w->base)[COUNT];
    TL_MPI(MPI_Win_unlock(w->rank, w->win));
    MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, w->comm);
    MPI_Allreduce(&updates, &all, 1, MPI_LONG, MPI_SUM, w->comm);
    TL_CHECK(sum == before + all, "%ld, not %ld", sum, before + all);
    MPI_Barrier(w->comm);
}

static bool each_alone(void)
{
    const char *node = getenv("OMPI_MCA_osc_nicstride_node");

    return node != NULL && strcmp(node, "0") == 0;
}

/** Who only ever calls MPI_Win_lock_all, or never, asks for the window's lock once. But that where
 *  each process is a node of its own and they can wake each other, only rank 0 stays in it. */
static void test_counted(tl_kind_t kind, bool all)
{
    tl_window_t w = tl_win_make(kind, CELLS * (MPI_Aint)sizeof(long), sizeof(long), MPI_COMM_WORLD,
                                MPI_INFO_NULL);
    counter_t *asked = counter_begin("osc_nicstride_window_locks");

    for (int i = 0; i < 10; i++) {
        const int t = (w.rank + i) % w.size;

        if (all)
            TL_MPI(MPI_Win_lock_all(0, w.win));
        else
            TL_MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, t, 0, w.win));
        if (all)
            TL_MPI(MPI_Win_unlock_all(w.win));
        else
            TL_MPI(MPI_Win_unlock(t, w.win));
    }
    TL_CHECK(asked == NULL || counter_read(asked) == 1 ||
                 (each_alone() && w.rank > 0 && counter_read(asked) == 10),
             "%llu times", counter_read(asked));
    counter_end(asked);
    tl_win_free(&w);
}

static void test_all(tl_kind_t kind)
{
    tl_window_t w = tl_win_make(kind, CELLS * (MPI_Aint)sizeof(long), sizeof(long), MPI_COMM_WORLD,
                                MPI_INFO_NULL);

    for (int i = 0; i < CELLS; i++)
        ((long *)w.base)[i] = 0;
    MPI_Barrier(w.comm);
    test_pairs(&w);
    test_shared(&w);
    test_random(&w);
    tl_win_free(&w);
    test_counted(kind, true);
    test_counted(kind, false);
}

int main(int argc, char **argv)
{
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    tl_need_ranks(2, 64);
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind))
        test_all(kind);
    return tl_finish();
}
