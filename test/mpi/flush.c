/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 1-4 */
/* windows: create allocate dynamic shared */
/**
 * @file
 * The four flushes. After a flush the data are at the target, which hears of it by a message or by
 * a flag that is written behind it; after a local flush the origin's buffer may be reused. What was
 * fetched is there then, and in which order: operations.
 */
#include "test/mpi/testlib.h"

#include <stdlib.h>
#include <string.h>

/** Ints moved by one operation: far below, around and far above the usual buffer sizes. */
static const int lengths[] = {1, 1000, 3000, 100000};
enum { LENGTHS = sizeof(lengths) / sizeof(lengths[0]), LONGEST = 100000 };

/** What brings ints to a target. */
typedef enum op { PUT, PUT_STRIDED, REPLACE, GET_REPLACE, REQUEST_PUT, OPS } op_t;
static const char *const op_names[] = {"put", "strided put", "accumulate", "get_accumulate",
                                       "rput"};

typedef enum form { FLUSH, FLUSH_ALL, FLUSH_LOCAL, FLUSH_LOCAL_ALL, FORMS } form_t;
static const char *const form_names[] = {"flush", "flush_all", "flush_local", "flush_local_all"};

static tl_window_t make_ints(tl_kind_t kind, int ints)
{
    return tl_win_make(kind, (MPI_Aint)ints * (MPI_Aint)sizeof(int), sizeof(int), MPI_COMM_WORLD,
                       MPI_INFO_NULL);
}

static MPI_Aint at(const tl_window_t *w, int target, int index)
{
    return tl_disp(w, target, (MPI_Aint)index * (MPI_Aint)sizeof(int));
}

static int next_rank(const tl_window_t *w)
{
    return (w->rank + 1) % w->size;
}

static int rank_before(const tl_window_t *w)
{
    return (w->rank + w->size - 1) % w->size;
}

static void flush(form_t form, int target, MPI_Win win)
{
    switch (form) {
    case FLUSH:
        TL_MPI(MPI_Win_flush(target, win));
        break;
    case FLUSH_ALL:
        TL_MPI(MPI_Win_flush_all(win));
        break;
    case FLUSH_LOCAL:
        TL_MPI(MPI_Win_flush_local(target, win));
        break;
    default:
        TL_MPI(MPI_Win_flush_local_all(win));
    }
}

/** Tells the next rank that my data are there, and hears it from the one before. */
static void tell_next(const tl_window_t *w)
{
    char token = 0;

    MPI_Sendrecv_replace(&token, 1, MPI_CHAR, next_rank(w), 0, rank_before(w), 0, w->comm,
                         MPI_STATUS_IGNORE);
}

/** The same inside an epoch, where my memory may be looked at then. */
static void tell_and_sync(const tl_window_t *w)
{
    tell_next(w);
    TL_MPI(MPI_Win_sync(w->win));
}

/** Nobody writes again before everybody has looked. */
static void all_have_looked(const tl_window_t *w)
{
    TL_MPI(MPI_Win_sync(w->win));
    MPI_Barrier(w->comm);
}

static int pattern(int rank, int round, int i)
{
    return rank * 1000003 + round * 7919 + i;
}

static void fill(int *data, int n, int rank, int round)
{
    for (int i = 0; i < n; i++)
        data[i] = pattern(rank, round, i);
}

static int count_wrong(const volatile int *data, int n, int rank, int round)
{
    int wrong = 0;

    for (int i = 0; i < n; i++)
        wrong += data[i] != pattern(rank, round, i);
    return wrong;
}

/** Puts `count` ints, every second one from number `first` on, to the same places there. */
static void put_alternate(const tl_window_t *w, const int *data, int first, int count)
{
    int target = next_rank(w);
    MPI_Datatype alternate;

    MPI_Type_vector(count, 1, 2, MPI_INT, &alternate);
    MPI_Type_commit(&alternate);
    TL_MPI(MPI_Put(data + first, 1, alternate, target, at(w, target, first), 1, alternate, w->win));
    MPI_Type_free(&alternate);
}

/** Moves n ints from `data` to the start of the next rank's memory. */
static void start_op(const tl_window_t *w, op_t op, const int *data, int n, int *scratch)
{
    int target = next_rank(w);
    MPI_Aint disp = at(w, target, 0);
    MPI_Request request;

    switch (op) {
    case PUT_STRIDED:
        put_alternate(w, data, 0, (n + 1) / 2);
        put_alternate(w, data, 1, n / 2);
        break;
    case REPLACE:
        TL_MPI(MPI_Accumulate(data, n, MPI_INT, target, disp, n, MPI_INT, MPI_REPLACE, w->win));
        break;
    case GET_REPLACE:
        TL_MPI(MPI_Get_accumulate(data, n, MPI_INT, scratch, n, MPI_INT, target, disp, n, MPI_INT,
                                  MPI_REPLACE, w->win));
        break;
    case REQUEST_PUT:
        TL_MPI(MPI_Rput(data, n, MPI_INT, target, disp, n, MPI_INT, w->win, &request));
        TL_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
        break;
    default:
        TL_MPI(MPI_Put(data, n, MPI_INT, target, disp, n, MPI_INT, w->win));
    }
}

/**
 * Every operation, length and form. A local form is followed by spoiling the origin's buffer, then
 * by a flush, so that what arrives must have left before.
 */
static void test_forms(tl_kind_t kind)
{
    tl_window_t w = make_ints(kind, LONGEST);
    int *data = tl_alloc(LONGEST * sizeof(int)), *scratch = tl_alloc(LONGEST * sizeof(int));
    int round = 0;

    TL_MPI(MPI_Win_lock_all(0, w.win));
    for (int i = 0; i < OPS * FORMS * LENGTHS; i++) {
        op_t op = (op_t)(i % OPS);
        form_t form = (form_t)(i / OPS % FORMS);
        int n = lengths[i / OPS / FORMS];

        round++;
        fill(data, n, w.rank, round);
        start_op(&w, op, data, n, scratch);
        flush(form, next_rank(&w), w.win);
        if (form == FLUSH_LOCAL || form == FLUSH_LOCAL_ALL) {
            memset(data, 0xEE, (size_t)n * sizeof(int));
            flush(round % 2 ? FLUSH : FLUSH_ALL, next_rank(&w), w.win);
        }
        tell_and_sync(&w);
        int wrong = count_wrong((int *)w.base, n, rank_before(&w), round);
        TL_CHECK(wrong == 0, "%s of %d ints, %s: %d wrong", op_names[op], n, form_names[form],
                 wrong);
        all_have_looked(&w);
    }
    TL_MPI(MPI_Win_unlock_all(w.win));
    free(scratch);
    free(data);
    tl_win_free(&w);
}

/** A flag put after a flush is never seen before the data that were put before it. */
static void test_flag(tl_kind_t kind)
{
    const int n = 50000;
    tl_window_t w = make_ints(kind, n + 1);
    int *data = tl_alloc((size_t)n * sizeof(int)), target = next_rank(&w), probed;
    volatile int *window = (int *)w.base;

    TL_MPI(MPI_Win_lock_all(0, w.win));
    for (int round = 1; round <= 10; round++) {
        fill(data, n, w.rank, round);
        TL_MPI(MPI_Put(data, n, MPI_INT, target, at(&w, target, 0), n, MPI_INT, w.win));
        TL_MPI(MPI_Win_flush(target, w.win));
        TL_MPI(MPI_Accumulate(&round, 1, MPI_INT, target, at(&w, target, n), 1, MPI_INT,
                              MPI_REPLACE, w.win));
        TL_MPI(MPI_Win_flush(target, w.win));
        while (window[n] != round) {
            MPI_Iprobe(MPI_ANY_SOURCE, 1, w.comm, &probed, MPI_STATUS_IGNORE);
            TL_MPI(MPI_Win_sync(w.win));
        }
        int wrong = count_wrong(window, n, rank_before(&w), round);
        TL_CHECK(wrong == 0, "round %d: %d of %d ints not there", round, wrong, n);
        all_have_looked(&w);
    }
    TL_MPI(MPI_Win_unlock_all(w.win));
    free(data);
    tl_win_free(&w);
}

int main(int argc, char **argv)
{
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind)) {
        test_forms(kind);
        test_flag(kind);
    }
    return tl_finish();
}
