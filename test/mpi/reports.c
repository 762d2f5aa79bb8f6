/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-4 */
/* windows: create allocate dynamic shared */
/**
 * @file
 * What users of other components have reported in 2026, one function for each, named by the number
 * of the report at github.com/open-mpi/ompi/issues. docs/osc_nicstride.md has a table of what comes
 * of them there and here. Names of reports as arguments: only these.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "test/mpi/testlib.h"

#define DOUBLES 500
#define BYTES   ((MPI_Aint)(DOUBLES * sizeof(double)))

static MPI_Aint at(const tl_window_t *w, int target, int i)
{
    return tl_disp(w, target, i * (MPI_Aint)sizeof(double));
}

/** Zero, and seen as such by all. */
static void clear(const tl_window_t *w)
{
    MPI_Barrier(w->comm);
    MPI_Win_lock_all(0, w->win);
    memset(w->base, 0, (size_t)w->bytes);
    MPI_Win_unlock_all(w->win);
    MPI_Barrier(w->comm);
}

/* ---- accumulates of derived types ---- */

/** Places in a buffer of doubles, in no order, and in blocks that differ. */
static void report_14175(const tl_window_t *w)
{
    static const int places[] = {7, 1, 30, 12, 100}, lengths[] = {1, 2, 1, 1};
    const MPI_Aint from[] = {16, 80, 0, 400};
    double data[64];
    MPI_Datatype origin, target;

    for (int i = 0; i < 64; i++)
        data[i] = i;
    TL_MPI(MPI_Type_create_hindexed(4, lengths, from, MPI_DOUBLE, &origin));
    TL_MPI(MPI_Type_create_indexed_block(5, 1, places, MPI_DOUBLE, &target));
    MPI_Type_commit(&origin);
    MPI_Type_commit(&target);
    TL_MPI(MPI_Win_lock_all(0, w->win));
    for (int t = 0; t < w->size; t++)
        TL_MPI(MPI_Accumulate(data, 1, origin, t, at(w, t, 0), 1, target, MPI_SUM, w->win));
    TL_MPI(MPI_Win_unlock_all(w->win));
    MPI_Barrier(w->comm);
    static const double sent[] = {2, 10, 11, 0, 50};
    const double *mine = (const double *)w->base;
    for (int i = 0; i < 5; i++)
        TL_CHECK(mine[places[i]] == w->size * sent[i], "%g at %d", mine[places[i]], places[i]);
    MPI_Type_free(&origin);
    MPI_Type_free(&target);
}

/** One element, described by an indexed type. */
static void report_14181(const tl_window_t *w)
{
    const double *mine = (const double *)w->base;
    double one[DOUBLES];

    for (int i = 0; i < DOUBLES; i++)
        one[i] = i + 1;
    TL_MPI(MPI_Win_lock_all(0, w->win));
    for (int i = 0; i < DOUBLES; i++) {
        MPI_Datatype type;

        TL_MPI(MPI_Type_create_indexed_block(1, 1, &i, MPI_DOUBLE, &type));
        MPI_Type_commit(&type);
        TL_MPI(MPI_Accumulate(one, 1, type, 0, at(w, 0, 0), 1, type, MPI_SUM, w->win));
        MPI_Type_free(&type);
    }
    TL_MPI(MPI_Win_unlock_all(w->win));
    MPI_Barrier(w->comm);
    for (int i = 0; i < DOUBLES && w->rank == 0; i++)
        TL_CHECK(mine[i] == w->size * (i + 1.0), "%g at %d", mine[i], i);
}

/** One double for each rank; all add to that of rank 0. */
static void report_14203(const tl_window_t *w)
{
    tl_window_t small = tl_win_make(w->kind, sizeof(double), 1, w->comm, MPI_INFO_NULL);
    const double one = 1;

    TL_MPI(MPI_Win_lock_all(0, small.win));
    TL_MPI(MPI_Accumulate(&one, 1, MPI_DOUBLE, 0, tl_disp(&small, 0, 0), 1, MPI_DOUBLE, MPI_SUM,
                          small.win));
    TL_MPI(MPI_Win_unlock_all(small.win));
    MPI_Barrier(small.comm);
    if (small.rank == 0)
        TL_CHECK(*(double *)small.base == small.size, "%g", *(double *)small.base);
    tl_win_free(&small);
}

/* ---- values fetched ---- */

typedef void (*swap_fn_t)(const tl_window_t *w, int value, int *old);

static void swap_fetch_and_op(const tl_window_t *w, int value, int *old)
{
    TL_MPI(MPI_Fetch_and_op(&value, old, MPI_INT, 0, at(w, 0, 0), MPI_REPLACE, w->win));
    TL_MPI(MPI_Win_flush(0, w->win));
}

static void swap_get_accumulate(const tl_window_t *w, int value, int *old)
{
    TL_MPI(MPI_Get_accumulate(&value, 1, MPI_INT, old, 1, MPI_INT, 0, at(w, 0, 0), 1, MPI_INT,
                              MPI_REPLACE, w->win));
    TL_MPI(MPI_Win_flush(0, w->win));
}

static void swap_rget_accumulate(const tl_window_t *w, int value, int *old)
{
    MPI_Request request;

    TL_MPI(MPI_Rget_accumulate(&value, 1, MPI_INT, old, 1, MPI_INT, 0, at(w, 0, 0), 1, MPI_INT,
                               MPI_REPLACE, w->win, &request));
    TL_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
    TL_MPI(MPI_Win_flush(0, w->win));
}

/** A spinlock made of a swap, by each call that can swap, around a counter. */
static void report_14173(const tl_window_t *w)
{
    static const swap_fn_t swaps[] = {swap_fetch_and_op, swap_get_accumulate, swap_rget_accumulate};
    enum { ROUNDS = 10 };

    for (int i = 0; i < 3; i++) {
        int old, n;

        clear(w);
        TL_MPI(MPI_Win_lock_all(0, w->win));
        for (int k = 0; k < ROUNDS; k++) {
            do
                swaps[i](w, 1, &old);
            while (old != 0);
            TL_MPI(MPI_Get(&n, 1, MPI_INT, 0, at(w, 0, 1), 1, MPI_INT, w->win));
            TL_MPI(MPI_Win_flush(0, w->win));
            n++;
            TL_MPI(MPI_Put(&n, 1, MPI_INT, 0, at(w, 0, 1), 1, MPI_INT, w->win));
            TL_MPI(MPI_Win_flush(0, w->win));
            swaps[(i + k) % 3](w, 0, &old);
            TL_CHECK(old == 1, "it was not held: %d", old);
        }
        TL_MPI(MPI_Win_unlock_all(w->win));
        MPI_Barrier(w->comm);
        if (w->rank == 0)
            TL_CHECK(((int *)w->base)[2] == ROUNDS * w->size, "%d", ((int *)w->base)[2]);
    }
}

/** MPI_Get_accumulate that writes, of ranks of one node to all. */
static void report_14174(const tl_window_t *w)
{
    enum { N = 16, ROUNDS = 8 };
    double add[N], got[N], last = -1;

    for (int i = 0; i < N; i++)
        add[i] = 1;
    TL_MPI(MPI_Win_lock_all(0, w->win));
    for (int k = 0; k < ROUNDS; k++)
        for (int t = 0; t < w->size; t++) {
            TL_MPI(MPI_Get_accumulate(add, N, MPI_DOUBLE, got, N, MPI_DOUBLE, t, at(w, t, 0), N,
                                      MPI_DOUBLE, MPI_SUM, w->win));
            TL_MPI(MPI_Win_flush(t, w->win));
            if (t == 0) {
                TL_CHECK(got[0] > last, "%g after %g", got[0], last);
                last = got[0];
            }
        }
    TL_MPI(MPI_Win_unlock_all(w->win));
    MPI_Barrier(w->comm);
    for (int i = 0; i < N; i++)
        TL_CHECK(((double *)w->base)[i] == ROUNDS * w->size, "%g at %d", ((double *)w->base)[i], i);
}

/* ---- requests ---- */

/** So many requests at once, then all are waited for. */
static void rputs(const tl_window_t *w, int n)
{
    MPI_Request *requests = tl_alloc((size_t)n * sizeof(*requests));
    int *values = tl_alloc((size_t)n * sizeof(*values));
    const int each = 2 * DOUBLES / w->size, next = (w->rank + 1) % w->size;

    TL_MPI(MPI_Win_lock_all(0, w->win));
    for (int i = 0; i < n; i++) {
        const MPI_Aint place = (w->rank * each + i % each) * (MPI_Aint)sizeof(int);

        values[i] = i;
        TL_MPI(MPI_Rput(&values[i], 1, MPI_INT, next, tl_disp(w, next, place), 1, MPI_INT, w->win,
                        &requests[i]));
    }
    TL_MPI(MPI_Waitall(n, requests, MPI_STATUSES_IGNORE));
    TL_MPI(MPI_Win_unlock_all(w->win));
    MPI_Barrier(w->comm);
    const int before = (w->rank + w->size - 1) % w->size;
    /* Puts to one place are not ordered. */
    for (int i = 0; i < each && i < n; i++) {
        const int got = ((int *)w->base)[before * each + i];

        TL_CHECK(got < n && got % each == i, "%d at %d", got, i);
    }
    free(requests);
    free(values);
}

static void report_14192(const tl_window_t *w)
{
    rputs(w, 300);
}

/** The same beyond every limit. */
static void report_many(const tl_window_t *w)
{
    rputs(w, tl_slow() ? 3000 : 100000);
}

/* ---- memory that is mapped anew ---- */

/** The pages of the window are others at the same address, between epochs and while others put to
 * the pages beside them: no copy, key or registration may still mean the former ones. */
static void report_remap(const tl_window_t *w)
{
    enum { PAGE = 4096, ROUNDS = 6 };
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS, next = (w->rank + 1) % w->size;
    unsigned char *memory = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, flags, -1, 0);
    unsigned char data[PAGE];
    MPI_Win win;

    if (w->kind != TL_CREATE || memory == MAP_FAILED)
        return;
    TL_MPI(MPI_Win_create(memory, 2 * PAGE, 1, MPI_INFO_NULL, w->comm, &win));
    for (int k = 0; k < ROUNDS; k++) {
        const int page = k % 2;

        memset(data, k + 1, sizeof(data));
        TL_MPI(MPI_Win_fence(0, win));
        TL_MPI(MPI_Put(data, PAGE, MPI_BYTE, next, (1 - page) * PAGE, PAGE, MPI_BYTE, win));
        TL_CHECK(mmap(memory + page * PAGE, PAGE, PROT_READ | PROT_WRITE, flags | MAP_FIXED, -1,
                      0) == memory + page * PAGE,
                 "mmap failed");
        TL_MPI(MPI_Win_fence(0, win));
        TL_FILL(memory + (1 - page) * PAGE, (unsigned char)(k + 1), PAGE, "round %d", k);
        TL_FILL(memory + page * PAGE, 0, PAGE, "the new page, round %d", k);
        TL_MPI(MPI_Win_fence(0, win));
        TL_MPI(MPI_Put(data, PAGE, MPI_BYTE, next, page * PAGE, PAGE, MPI_BYTE, win));
        TL_MPI(MPI_Win_fence(0, win));
        TL_FILL(memory + page * PAGE, (unsigned char)(k + 1), PAGE, "onto it, round %d", k);
    }
    TL_MPI(MPI_Win_free(&win));
    munmap(memory, 2 * PAGE);
}

static const struct {
    const char *name;
    void (*run)(const tl_window_t *w);
} reports[] = {
    {"14175", report_14175}, {"14181", report_14181}, {"14203", report_14203},
    {"14173", report_14173}, {"14174", report_14174}, {"14192", report_14192},
    {"many", report_many},   {"remap", report_remap},
};

int main(int argc, char **argv)
{
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind)) {
        tl_window_t w = tl_win_make(kind, BYTES, 1, MPI_COMM_WORLD, MPI_INFO_NULL);

        for (size_t i = 0; i < sizeof(reports) / sizeof(reports[0]); i++)
            if (tl_asked_for(reports[i].name, argc, argv)) {
                clear(&w);
                reports[i].run(&w);
            }
        tl_win_free(&w);
    }
    return tl_finish();
}
