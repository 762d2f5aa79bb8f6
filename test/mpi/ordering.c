/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 1-4 */
/* windows: create allocate dynamic shared */
/**
 * @file
 * Accumulate calls of one origin to one location take effect in program order, whatever their
 * size, datatype and call, with nothing between them; and info accumulate_ordering is understood.
 */
#include <stdlib.h>
#include <string.h>

#include "test/mpi/testlib.h"

/** Integers of a slot; an accumulate of all of them is larger than any eager message. */
#define LARGE  40000
#define SLOT   ((MPI_Aint)(LARGE * sizeof(int64_t)))
#define STREAM 64

/** The location of `index` in what belongs to this rank at the target. */
static MPI_Aint at(const tl_window_t *w, int target, int index)
{
    return tl_disp(w, target, w->rank * SLOT + index * (MPI_Aint)sizeof(int64_t));
}

static void set(const tl_window_t *w, int target, int index, const int64_t *value)
{
    TL_MPI(MPI_Accumulate(value, 1, MPI_INT64_T, target, at(w, target, index), 1, MPI_INT64_T,
                          MPI_REPLACE, w->win));
}

static void fetch(const tl_window_t *w, int target, int index, int64_t *value)
{
    TL_MPI(MPI_Fetch_and_op(NULL, value, MPI_INT64_T, target, at(w, target, index), MPI_NO_OP,
                            w->win));
}

/** Writes to one location, read after each by two calls: each read sees the write before it. */
static void replace_stream(const tl_window_t *w, int target)
{
    int64_t values[STREAM], fetched[STREAM], got[STREAM];

    TL_MPI(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, w->win));
    for (int i = 0; i < STREAM; i++) {
        values[i] = 1000 * (w->rank + 1) + i;
        set(w, target, 5, &values[i]);
        fetch(w, target, 5, &fetched[i]);
        TL_MPI(MPI_Get_accumulate(NULL, 0, MPI_INT64_T, &got[i], 1, MPI_INT64_T, target,
                                  at(w, target, 5), 1, MPI_INT64_T, MPI_NO_OP, w->win));
    }
    TL_MPI(MPI_Win_unlock(target, w->win));
    TL_BYTES(fetched, values, sizeof(values), "fetch_and_op behind replace on %d", target);
    TL_BYTES(got, values, sizeof(values), "get_accumulate behind replace on %d", target);
}

/** Operations that do not commute, one behind the other by different calls. */
static void expression(const tl_window_t *w, int target)
{
    int64_t start = 7, add = 5, times = 3, other = 100, after_sum = 0, after_product = 0, old = 0;
    int64_t compare = 36, last = 0;

    TL_MPI(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, w->win));
    set(w, target, 9, &start);
    TL_MPI(MPI_Accumulate(&add, 1, MPI_INT64_T, target, at(w, target, 9), 1, MPI_INT64_T, MPI_SUM,
                          w->win));
    TL_MPI(MPI_Fetch_and_op(&times, &after_sum, MPI_INT64_T, target, at(w, target, 9), MPI_PROD,
                            w->win));
    fetch(w, target, 9, &after_product);
    TL_MPI(MPI_Compare_and_swap(&other, &compare, &old, MPI_INT64_T, target, at(w, target, 9),
                                w->win));
    TL_MPI(MPI_Get_accumulate(&add, 1, MPI_INT64_T, &last, 1, MPI_INT64_T, target, at(w, target, 9),
                              1, MPI_INT64_T, MPI_SUM, w->win));
    TL_MPI(MPI_Win_flush(target, w->win));
    TL_CHECK(after_sum == 12, "7 + 5 is %ld on %d", (long)after_sum, target);
    TL_CHECK(after_product == 36, "12 * 3 is %ld on %d", (long)after_product, target);
    TL_CHECK(old == 36, "compare_and_swap found %ld on %d", (long)old, target);
    TL_CHECK(last == 100, "%ld after compare_and_swap on %d", (long)last, target);
    fetch(w, target, 9, &last);
    TL_MPI(MPI_Win_unlock(target, w->win));
    TL_CHECK(last == 105, "%ld in the end on %d", (long)last, target);
}

/** A small call must not overtake a large one, nor a large one that before it. */
static void small_behind_large(const tl_window_t *w, int target, int round)
{
    int64_t *values = tl_alloc((size_t)SLOT), *all = tl_alloc((size_t)SLOT);
    int64_t mark = -1 - round, first = 0, last = 0, middle = 0;
    int wrong = 0;

    for (int i = 0; i < LARGE; i++)
        values[i] = (int64_t)round * LARGE + i;
    TL_MPI(MPI_Win_lock_all(0, w->win));
    TL_MPI(MPI_Accumulate(values, LARGE, MPI_INT64_T, target, at(w, target, 0), LARGE, MPI_INT64_T,
                          MPI_REPLACE, w->win));
    fetch(w, target, 0, &first);
    fetch(w, target, LARGE - 1, &last);
    fetch(w, target, LARGE / 2, &middle);
    set(w, target, LARGE - 1, &mark);
    TL_MPI(MPI_Get_accumulate(NULL, 0, MPI_BYTE, all, LARGE, MPI_INT64_T, target, at(w, target, 0),
                              LARGE, MPI_INT64_T, MPI_NO_OP, w->win));
    TL_MPI(MPI_Win_unlock_all(w->win));
    TL_CHECK(first == values[0], "first is %ld on %d", (long)first, target);
    TL_CHECK(last == values[LARGE - 1], "last is %ld on %d", (long)last, target);
    TL_CHECK(middle == values[LARGE / 2], "middle is %ld on %d", (long)middle, target);
    for (int i = 0; i < LARGE; i++)
        wrong += all[i] != (i == LARGE - 1 ? mark : values[i]);
    TL_CHECK(wrong == 0, "%d of %d read back wrong from %d", wrong, LARGE, target);
    free(values);
    free(all);
}

/** Different datatypes over the same elements: strided, reversed, contiguous. */
static void through_types(const tl_window_t *w, int target)
{
    enum { N = 600 };
    int64_t a[N], b[N], got[N], reversed[N];
    MPI_Datatype even, backwards;
    int wrong = 0;

    MPI_Type_vector(N / 2, 1, 2, MPI_INT64_T, &even);
    MPI_Type_vector(N, 1, -1, MPI_INT64_T, &backwards);
    MPI_Type_commit(&even);
    MPI_Type_commit(&backwards);
    for (int i = 0; i < N; i++) {
        a[i] = i;
        b[i] = 10000 + i;
    }
    TL_MPI(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, w->win));
    TL_MPI(MPI_Accumulate(a, N, MPI_INT64_T, target, at(w, target, 0), N, MPI_INT64_T, MPI_REPLACE,
                          w->win));
    TL_MPI(
        MPI_Accumulate(b, N / 2, MPI_INT64_T, target, at(w, target, 0), 1, even, MPI_SUM, w->win));
    TL_MPI(MPI_Get_accumulate(a, N, MPI_INT64_T, reversed, N, MPI_INT64_T, target,
                              at(w, target, N - 1), 1, backwards, MPI_SUM, w->win));
    TL_MPI(MPI_Get_accumulate(NULL, 0, MPI_INT64_T, got, N, MPI_INT64_T, target, at(w, target, 0),
                              N, MPI_INT64_T, MPI_NO_OP, w->win));
    TL_MPI(MPI_Win_unlock(target, w->win));
    for (int i = 0; i < N; i++) {
        int64_t want = i + (i % 2 == 0 ? 10000 + i / 2 : 0);

        wrong += reversed[N - 1 - i] != want;
        wrong += got[i] != want + (N - 1 - i);
    }
    TL_CHECK(wrong == 0, "%d of %d wrong on %d", wrong, 2 * N, target);
    MPI_Type_free(&even);
    MPI_Type_free(&backwards);
}

/** Where the program asks for no order, sums still are exact. */
static void unordered_sums(const tl_window_t *w)
{
    enum { N = 100 };
    int64_t one = 1, got[4] = {0};

    for (int target = 0; target < w->size; target++) {
        static const int64_t zero[1];

        TL_MPI(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, w->win));
        set(w, target, 3, zero);
        TL_MPI(MPI_Win_flush(target, w->win));
        for (int i = 0; i < N; i++) {
            TL_MPI(MPI_Accumulate(&one, 1, MPI_INT64_T, target, at(w, target, 3), 1, MPI_INT64_T,
                                  MPI_SUM, w->win));
        }
        TL_MPI(MPI_Win_flush(target, w->win));
        fetch(w, target, 3, &got[target % 4]);
        TL_MPI(MPI_Win_unlock(target, w->win));
        TL_CHECK(got[target % 4] == N, "%ld of %d on %d", (long)got[target % 4], N, target);
    }
}

static void try_kind(tl_kind_t kind, const char *order)
{
    MPI_Info info;

    MPI_Info_create(&info);
    if (order != NULL)
        MPI_Info_set(info, "accumulate_ordering", order);
    tl_window_t w = tl_win_make(kind, tl_size() * SLOT, 8, MPI_COMM_WORLD, info);

    MPI_Info_free(&info);
    for (int i = 0; i < w.size * tl_factor(); i++) {
        int target = (w.rank + i) % w.size;

        if (order == NULL || strcmp(order, "none") != 0) {
            replace_stream(&w, target);
            expression(&w, target);
            small_behind_large(&w, target, i);
            through_types(&w, target);
        }
    }
    unordered_sums(&w);
    tl_win_free(&w);
}

int main(int argc, char **argv)
{
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind)) {
        try_kind(kind, NULL);
        try_kind(kind, "rar,raw,war,waw");
        try_kind(kind, "none");
    }
    return tl_finish();
}
