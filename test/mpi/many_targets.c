/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 1-4 */
/* windows: create allocate dynamic shared */
/**
 * @file
 * All ranks transfer to all at once: small puts and gets to targets in random order, long bursts
 * without a flush, several locks at a time, one target flushed while others are not, and a matrix
 * transposed by strided puts.
 */
#include "test/mpi/testlib.h"

#include <stdlib.h>
#include <string.h>

/** Longs that each rank has at each target. */
#define SLOTS 400

/** What rank r has in slot s at target t. */
static long value_of(int r, int t, int s)
{
    return r * 100000000L + t * 1000000L + s;
}

static MPI_Aint slot(const tl_window_t *w, int target, int origin, int s)
{
    return tl_disp(w, target, (MPI_Aint)(origin * SLOTS + s) * (MPI_Aint)sizeof(long));
}

static tl_window_t make_window(tl_kind_t kind)
{
    return tl_win_make(kind, (MPI_Aint)tl_size() * SLOTS * (MPI_Aint)sizeof(long), sizeof(long),
                       MPI_COMM_WORLD, MPI_INFO_NULL);
}

/** All slots of all targets, in an order that differs by rank. Free with free(). */
static int *random_order(const tl_window_t *w, uint64_t stream)
{
    int n = w->size * SLOTS, *order = tl_alloc((size_t)n * sizeof(int));
    tl_rng_t rng = tl_rng(tl_seed(), stream * 64 + (uint64_t)w->rank);

    for (int i = 0; i < n; i++) {
        int j = (int)tl_range(&rng, 0, i);

        order[i] = order[j];
        order[j] = i;
    }
    return order;
}

static void check_window(const tl_window_t *w, long salt, const char *what)
{
    int wrong = 0;

    MPI_Barrier(w->comm);
    TL_MPI(MPI_Win_lock(MPI_LOCK_SHARED, w->rank, 0, w->win));
    for (int i = 0; i < w->size * SLOTS; i++)
        wrong += ((long *)w->base)[i] != salt + value_of(i / SLOTS, w->rank, i % SLOTS);
    TL_MPI(MPI_Win_unlock(w->rank, w->win));
    TL_CHECK(wrong == 0, "%s: %d of %d longs wrong", what, wrong, w->size * SLOTS);
    MPI_Barrier(w->comm);
}

/** Puts one slot; `values` holds what is put until it is complete. */
static void put_slot(const tl_window_t *w, long *values, int which, long salt)
{
    int t = which / SLOTS, s = which % SLOTS;

    values[which] = salt + value_of(w->rank, t, s);
    TL_MPI(MPI_Put(&values[which], 1, MPI_LONG, t, slot(w, t, w->rank, s), 1, MPI_LONG, w->win));
}

/** Every now and then a flush of one target, of all, or a local one. */
static void sometimes_flush(const tl_window_t *w, tl_rng_t *rng)
{
    int t = (int)tl_range(rng, 0, w->size - 1);

    switch (tl_range(rng, 0, 40)) {
    case 0:
        TL_MPI(MPI_Win_flush(t, w->win));
        break;
    case 1:
        TL_MPI(MPI_Win_flush_all(w->win));
        break;
    case 2:
        TL_MPI(MPI_Win_flush_local(t, w->win));
        break;
    default:
        break;
    }
}

static void test_random_puts(tl_kind_t kind)
{
    tl_window_t w = make_window(kind);
    tl_rng_t rng = tl_rng(tl_seed(), 900u + (uint64_t)w.rank);
    long *values = tl_alloc((size_t)w.size * SLOTS * sizeof(long));

    for (int round = 0; round < 2; round++) {
        int *order = random_order(&w, (uint64_t)round + 1);

        TL_MPI(MPI_Win_lock_all(0, w.win));
        for (int i = 0; i < w.size * SLOTS; i++) {
            put_slot(&w, values, order[i], round + 1);
            if (round == 0)
                sometimes_flush(&w, &rng);
        }
        TL_MPI(MPI_Win_unlock_all(w.win));
        check_window(&w, round + 1, round ? "a burst of puts" : "puts and flushes");
        free(order);
    }
    free(values);
    tl_win_free(&w);
}

static void test_random_gets(tl_kind_t kind)
{
    tl_window_t w = make_window(kind);
    int n = w.size * SLOTS, wrong = 0, *order = random_order(&w, 3);
    long *values = tl_alloc((size_t)n * sizeof(long));

    TL_MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, w.rank, 0, w.win));
    for (int i = 0; i < n; i++)
        ((long *)w.base)[i] = value_of(i / SLOTS, w.rank, i % SLOTS);
    TL_MPI(MPI_Win_unlock(w.rank, w.win));
    MPI_Barrier(w.comm);
    TL_MPI(MPI_Win_lock_all(0, w.win));
    for (int i = 0; i < n; i++) {
        int t = order[i] / SLOTS, s = order[i] % SLOTS;

        TL_MPI(
            MPI_Get(&values[order[i]], 1, MPI_LONG, t, slot(&w, t, w.rank, s), 1, MPI_LONG, w.win));
    }
    TL_MPI(MPI_Win_flush_local_all(w.win));
    for (int i = 0; i < n; i++)
        wrong += values[i] != value_of(w.rank, i / SLOTS, i % SLOTS);
    TL_CHECK(wrong == 0, "%d of %d gets wrong", wrong, n);
    TL_MPI(MPI_Win_unlock_all(w.win));
    free(values);
    free(order);
    tl_win_free(&w);
}

/** Shared locks on all targets at once, given back one by one while others go on. */
static void test_many_locks(tl_kind_t kind)
{
    tl_window_t w = make_window(kind);
    long *values = tl_alloc((size_t)w.size * SLOTS * sizeof(long));

    for (int t = 0; t < w.size; t++)
        TL_MPI(MPI_Win_lock(MPI_LOCK_SHARED, t, 0, w.win));
    for (int s = 0; s < SLOTS / 2; s++)
        for (int t = 0; t < w.size; t++)
            put_slot(&w, values, t * SLOTS + s, 5);
    for (int t = 0; t < w.size; t++) {
        for (int s = SLOTS / 2; s < SLOTS; s++)
            put_slot(&w, values, t * SLOTS + s, 5);
        TL_MPI(MPI_Win_unlock(t, w.win));
    }
    check_window(&w, 5, "many locks");
    free(values);
    tl_win_free(&w);
}

/** All to all in one fence epoch, by larger blocks, everybody beginning elsewhere or all alike. */
static void test_fence(tl_kind_t kind)
{
    tl_window_t w = make_window(kind);
    long *values = tl_alloc((size_t)w.size * SLOTS * sizeof(long));

    for (int round = 1; round <= 5; round++) {
        for (int i = 0; i < w.size * SLOTS; i++)
            values[i] = round + value_of(w.rank, i / SLOTS, i % SLOTS);
        TL_MPI(MPI_Win_fence(0, w.win));
        for (int i = 0; i < w.size; i++) {
            int t = round % 2 ? (w.rank + i) % w.size : i;

            TL_MPI(MPI_Put(&values[t * SLOTS], SLOTS, MPI_LONG, t, slot(&w, t, w.rank, 0), SLOTS,
                           MPI_LONG, w.win));
        }
        TL_MPI(MPI_Win_fence(MPI_MODE_NOSUCCEED, w.win));
        check_window(&w, round, "fence");
    }
    free(values);
    tl_win_free(&w);
}

/* ---- transposition ---- */

enum { BLOCK = 24 };

/**
 * Of an n * n matrix each rank has BLOCK rows, and puts each BLOCK * BLOCK piece to where the
 * transposed matrix has it: rows at the origin, columns at the target.
 */
static void test_transpose(tl_kind_t kind)
{
    int n = BLOCK * tl_size(), wrong = 0;
    tl_window_t w = tl_win_make(kind, (MPI_Aint)BLOCK * n * (MPI_Aint)sizeof(int), sizeof(int),
                                MPI_COMM_WORLD, MPI_INFO_NULL);
    int *matrix = tl_alloc((size_t)BLOCK * (size_t)n * sizeof(int));
    MPI_Datatype rows, column, columns;

    for (int i = 0; i < BLOCK * n; i++)
        matrix[i] = w.rank * BLOCK * n + i;
    MPI_Type_vector(BLOCK, BLOCK, n, MPI_INT, &rows);
    MPI_Type_vector(BLOCK, 1, n, MPI_INT, &column);
    MPI_Type_create_hvector(BLOCK, 1, sizeof(int), column, &columns);
    MPI_Type_commit(&rows);
    MPI_Type_commit(&columns);
    TL_MPI(MPI_Win_lock_all(0, w.win));
    for (int t = 0; t < w.size; t++) {
        MPI_Aint disp = tl_disp(&w, t, (MPI_Aint)w.rank * BLOCK * (MPI_Aint)sizeof(int));

        TL_MPI(MPI_Put(matrix + t * BLOCK, 1, rows, t, disp, 1, columns, w.win));
    }
    TL_MPI(MPI_Win_unlock_all(w.win));
    MPI_Barrier(w.comm);
    TL_MPI(MPI_Win_lock(MPI_LOCK_SHARED, w.rank, 0, w.win));
    for (int i = 0; i < BLOCK * n; i++) {
        int row = w.rank * BLOCK + i / n, in_row = i % n;

        wrong += ((int *)w.base)[i] != in_row * n + row;
    }
    TL_MPI(MPI_Win_unlock(w.rank, w.win));
    TL_CHECK(wrong == 0, "transposed: %d of %d elements wrong", wrong, BLOCK * n);
    MPI_Type_free(&rows);
    MPI_Type_free(&column);
    MPI_Type_free(&columns);
    free(matrix);
    tl_win_free(&w);
}

int main(int argc, char **argv)
{
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind)) {
        test_random_puts(kind);
        test_random_gets(kind);
        test_many_locks(kind);
        test_fence(kind);
        test_transpose(kind);
    }
    return tl_finish();
}
