/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 1-4 */
/* windows: create allocate dynamic shared */
/**
 * @file
 * Fence epochs: every combination of asserts, empty epochs, fences mixed with locks. Mixed with
 * post and start: errors. Late ranks, and stores and loads around epochs: epochs_order.
 */
#include "test/mpi/testlib.h"

#include <stdlib.h>

static tl_window_t make_ints(tl_kind_t kind, int ints)
{
    return tl_win_make(kind, (MPI_Aint)ints * (MPI_Aint)sizeof(int), sizeof(int), MPI_COMM_WORLD,
                       MPI_INFO_NULL);
}

/** The displacement of int number `index` at `target`. */
static MPI_Aint at(const tl_window_t *w, int target, int index)
{
    return tl_disp(w, target, (MPI_Aint)index * (MPI_Aint)sizeof(int));
}

static void put_int(const tl_window_t *w, const int *value, int target, int index)
{
    TL_MPI(MPI_Put(value, 1, MPI_INT, target, at(w, target, index), 1, MPI_INT, w->win));
}

/* ---- asserts ---- */

/** The asserts a fence may have, by the bits of 0 .. 15. */
static int asserts_of(int bits)
{
    return (bits & 1 ? MPI_MODE_NOSTORE : 0) | (bits & 2 ? MPI_MODE_NOPUT : 0) |
           (bits & 4 ? MPI_MODE_NOPRECEDE : 0) | (bits & 8 ? MPI_MODE_NOSUCCEED : 0);
}

/**
 * One epoch between two fences, with what their asserts leave legal. Window: int `size` is the
 * owner's, stored locally; int r is put by rank r. `stored` and `put` are what they hold now.
 */
static void assert_epoch(const tl_window_t *w, int first, int last, int step, int *stored, int *put)
{
    bool silent = (first & MPI_MODE_NOSUCCEED) != 0 || (last & MPI_MODE_NOPRECEDE) != 0;
    bool puts = !silent && (first & MPI_MODE_NOPUT) == 0;
    int value = 1000 * step + w->rank, *window = (int *)w->base;
    int *got = tl_alloc((size_t)w->size * sizeof(int));

    if ((first & MPI_MODE_NOSTORE) == 0)
        window[w->size] = *stored = step;
    TL_MPI(MPI_Win_fence(first, w->win));
    for (int t = 0; t < w->size && !silent; t++) {
        TL_MPI(MPI_Get(&got[t], 1, MPI_INT, t, at(w, t, w->size), 1, MPI_INT, w->win));
        if (puts)
            put_int(w, &value, t, w->rank);
    }
    TL_MPI(MPI_Win_fence(last, w->win));
    *put = puts ? step : *put;
    for (int r = 0; r < w->size; r++) {
        int want = *put == 0 ? 0 : 1000 * *put + r;

        TL_CHECK(window[r] == want, "asserts %d, %d: %d, not %d from %d", first, last, window[r],
                 want, r);
        TL_CHECK(silent || got[r] == *stored, "asserts %d, %d: got %d, not %d", first, last, got[r],
                 *stored);
    }
    free(got);
}

static void test_asserts(tl_kind_t kind)
{
    tl_window_t w = make_ints(kind, tl_size() + 1);
    int stored = 0, put = 0;

    for (int pair = 0; pair < 256; pair++)
        assert_epoch(&w, asserts_of(pair % 16), asserts_of(pair / 16), pair + 1, &stored, &put);
    tl_win_free(&w);
}

/* ---- epochs without transfers ---- */

static void test_empty(tl_kind_t kind)
{
    tl_window_t w = make_ints(kind, 1);
    int value = 7, next = (w.rank + 1) % w.size;

    for (int i = 0; i < 100; i++)
        TL_MPI(MPI_Win_fence(0, w.win));
    TL_MPI(MPI_Put(&value, 0, MPI_INT, next, at(&w, next, 0), 0, MPI_INT, w.win));
    TL_MPI(MPI_Put(&value, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, w.win));
    TL_MPI(MPI_Win_fence(0, w.win));
    TL_CHECK(*(int *)w.base == 0, "a put of nothing wrote %d", *(int *)w.base);
    tl_win_free(&w);
}

/* ---- fences and other epochs ---- */

static void lock_put(const tl_window_t *w, int target, int value)
{
    TL_MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, w->win));
    put_int(w, &value, target, w->rank);
    TL_MPI(MPI_Win_unlock(target, w->win));
}

/** A fence after which nothing of its epoch is done allows locks, whatever its asserts say. */
static void test_then_lock(tl_kind_t kind)
{
    static const int asserts[] = {MPI_MODE_NOSUCCEED, 0, MPI_MODE_NOPUT};
    tl_window_t w = make_ints(kind, tl_size());
    int *window = (int *)w.base;

    for (int i = 0; i < 3; i++) {
        int fenced = 10 * i + 5, locked = 1000 * (i + 1);

        TL_MPI(MPI_Win_fence(0, w.win));
        for (int t = 0; t < w.size; t++)
            put_int(&w, &fenced, t, w.rank);
        TL_MPI(MPI_Win_fence(asserts[i], w.win));
        for (int r = 0; r < w.size; r++)
            TL_CHECK(window[r] >= fenced, "after a fence: %d from %d", window[r], r);
        MPI_Barrier(w.comm);
        for (int t = 0; t < w.size; t++)
            lock_put(&w, t, locked + w.rank);
        MPI_Barrier(w.comm);
        TL_MPI(MPI_Win_lock(MPI_LOCK_SHARED, w.rank, 0, w.win));
        for (int r = 0; r < w.size; r++)
            TL_CHECK(window[r] == locked + r, "after a lock: %d from %d", window[r], r);
        TL_MPI(MPI_Win_unlock(w.rank, w.win));
        MPI_Barrier(w.comm);
    }
    tl_win_free(&w);
}

int main(int argc, char **argv)
{
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind)) {
        test_asserts(kind);
        test_empty(kind);
        test_then_lock(kind);
    }
    return tl_finish();
}
