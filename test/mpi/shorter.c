/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 1-4 */
/* windows: create allocate dynamic shared */
/**
 * @file
 * Less data than there is room for, in every call: what is not written stays, and what an
 * accumulate fetches is all of the target, whatever part of it changes. Data that do not fit are
 * refused, and write nothing.
 */
#include "test/mpi/testlib.h"

#include <stdlib.h>
#include <string.h>

/** Bytes of each rank's memory. */
#define SLOT ((MPI_Aint)4096)

#define REFUSED(call) TL_MPI_ERROR(call, MPI_ERR_TYPE)

/** Data that do not fit, by one element. */
static void too_long(const tl_window_t *w, int t)
{
    const MPI_Aint at = tl_disp(w, t, 0);
    long a[4] = {1, 2, 3, 4}, b[4] = {5, 6, 7, 8};
    MPI_Request r;

    memset(w->base, 9, SLOT);
    tl_begin(w, TL_LOCK_ALL);
    REFUSED(MPI_Put(a, 3, MPI_LONG, t, at, 2, MPI_LONG, w->win));
    REFUSED(MPI_Rput(a, 3, MPI_LONG, t, at, 2, MPI_LONG, w->win, &r));
    REFUSED(MPI_Get(a, 2, MPI_LONG, t, at, 3, MPI_LONG, w->win));
    REFUSED(MPI_Accumulate(a, 3, MPI_LONG, t, at, 2, MPI_LONG, MPI_SUM, w->win));
    REFUSED(
        MPI_Get_accumulate(a, 3, MPI_LONG, b, 4, MPI_LONG, t, at, 2, MPI_LONG, MPI_SUM, w->win));
    REFUSED(
        MPI_Get_accumulate(a, 1, MPI_LONG, b, 2, MPI_LONG, t, at, 3, MPI_LONG, MPI_SUM, w->win));
    REFUSED(MPI_Get_accumulate(NULL, 0, MPI_LONG, b, 2, MPI_LONG, t, at, 3, MPI_LONG, MPI_NO_OP,
                               w->win));
    /* To nobody anything may go. */
    TL_MPI(MPI_Put(a, 3, MPI_LONG, MPI_PROC_NULL, 0, 2, MPI_LONG, w->win));
    TL_MPI(MPI_Get(a, 2, MPI_LONG, MPI_PROC_NULL, 0, 3, MPI_LONG, w->win));
    TL_MPI(MPI_Put(a, 1, MPI_LONG, MPI_PROC_NULL, 0, 2, MPI_LONG, w->win));
    tl_end(w, TL_LOCK_ALL);
    TL_CHECK(a[0] == 1 && a[1] == 2 && a[2] == 3 && b[0] == 5 && b[1] == 6, "a buffer has changed");
    TL_FILL(w->base, 9, SLOT, "the window has changed");
}

/** All that is named must be in the window; of a dynamic one what is written. */
static void named_beyond(const tl_window_t *w, int t)
{
    const MPI_Aint last = tl_disp(w, t, SLOT - (MPI_Aint)sizeof(long));
    long *mine = (long *)(void *)(w->base + SLOT) - 1, a = 77;

    *mine = 1;
    tl_begin(w, TL_LOCK_ALL);
    if (w->kind != TL_DYNAMIC)
        TL_MPI_ERROR(MPI_Put(&a, 1, MPI_LONG, t, last, 2, MPI_LONG, w->win), MPI_ERR_RMA_RANGE);
    else
        TL_MPI(MPI_Put(&a, 1, MPI_LONG, t, last, 2, MPI_LONG, w->win));
    tl_end(w, TL_LOCK_ALL);
    TL_CHECK(*mine == (w->kind == TL_DYNAMIC ? 77 : 1), "%ld", *mine);
}

/** Records of two types, one put into room for three; Open MPI lets them be replaced, too. */
static void records(const tl_window_t *w, int t)
{
    typedef struct record {
        double d;
        int i;
    } record_t;
    const record_t a[1] = {{1.5, 7}};
    record_t *mine = (record_t *)(void *)w->base;
    const MPI_Aint places[] = {offsetof(record_t, d), offsetof(record_t, i)};
    const MPI_Datatype types[] = {MPI_DOUBLE, MPI_INT};
    const int lengths[] = {1, 1};
    MPI_Datatype bare, type;

    MPI_Type_create_struct(2, lengths, places, types, &bare);
    MPI_Type_create_resized(bare, 0, sizeof(record_t), &type);
    MPI_Type_commit(&type);
    for (int replace = 0; replace < 2; replace++) {
        memset(w->base, 9, SLOT);
        tl_begin(w, TL_LOCK_ALL);
        if (replace)
            TL_MPI(MPI_Accumulate(a, 1, type, t, tl_disp(w, t, 0), 3, type, MPI_REPLACE, w->win));
        else
            TL_MPI(MPI_Put(a, 1, type, t, tl_disp(w, t, 0), 3, type, w->win));
        tl_end(w, TL_LOCK_ALL);
        TL_CHECK(mine->d == 1.5 && mine->i == 7, "%g, %d", mine->d, mine->i);
        TL_FILL(mine + 1, 9, SLOT - (MPI_Aint)sizeof(*mine), "what was not written");
    }
    MPI_Type_free(&bare);
    MPI_Type_free(&type);
}

int main(int argc, char **argv)
{
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind)) {
        tl_window_t w = tl_win_make(kind, SLOT, 1, MPI_COMM_WORLD, MPI_INFO_NULL);

        for (int i = 0; i < 2; i++) {
            const int t = (w.rank + i) % w.size;

            too_long(&w, t);
            named_beyond(&w, t);
            records(&w, t);
        }
        tl_win_free(&w);
    }
    return tl_finish();
}
