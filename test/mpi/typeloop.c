/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 1-4 */
/* windows: create allocate dynamic shared */
/**
 * @file
 * A datatype made, committed, used once and freed for each call, as runtimes on top of MPI do:
 * twelve thousand times, with handles that come again for other layouts. The data are right each
 * time and memory does not grow.
 */
#include <stdlib.h>
#include <string.h>

#include "test/mpi/testlib.h"

#define LOOPS  4000
#define WARMUP 1000
/** Bytes in a third of the loops that follow. */
#define GROWTH_MAX ((size_t)1 << 20)
/** Ints of a transfer, and of the memory it is spread over. */
#define N      24
#define SPREAD (N * 10)
#define SLOT   ((MPI_Aint)(SPREAD * sizeof(int)))

/** A regular or irregular layout of N ints in SPREAD; places[] says where each of them lies. */
static MPI_Datatype make_type(int i, int *places)
{
    int displacements[N], lengths[N], step = 1 + i % 9;
    MPI_Datatype type;

    for (int k = 0; k < N; k++) {
        places[k] = k * step;
        displacements[k] = places[k];
        lengths[k] = 1;
    }
    switch (i % 4) {
    case 0:
        MPI_Type_vector(N, 1, step, MPI_INT, &type);
        break;
    case 1:
        for (int k = 0; k < N; k++) {
            places[k] += (k * k + i) % step;
            displacements[k] = places[k];
        }
        MPI_Type_create_indexed_block(N, 1, displacements, MPI_INT, &type);
        break;
    case 2:
        MPI_Type_indexed(N, lengths, displacements, MPI_INT, &type);
        break;
    default:
        MPI_Type_create_hvector(N, 1, step * (MPI_Aint)sizeof(int), MPI_INT, &type);
        break;
    }
    MPI_Type_commit(&type);
    return type;
}

/** Waits for the calls on the way; a type may be freed before. */
static void complete(const tl_window_t *w, int target)
{
    TL_MPI(MPI_Win_flush(target, w->win));
}

/** Puts through one type, gets and accumulates through others of the same layout. */
static void loop_once(const tl_window_t *w, int target, int i)
{
    int places[N], sent[N], got[SPREAD], old[N], wrong = 0;
    MPI_Aint disp = tl_disp(w, target, w->rank * SLOT);
    MPI_Datatype type = make_type(i, places);

    for (int k = 0; k < N; k++)
        sent[k] = i + k;
    TL_MPI(MPI_Put(sent, N, MPI_INT, target, disp, 1, type, w->win));
    MPI_Type_free(&type);
    complete(w, target);

    type = make_type(i, places);
    TL_MPI(MPI_Accumulate(sent, N, MPI_INT, target, disp, 1, type, MPI_SUM, w->win));
    TL_MPI(MPI_Get_accumulate(sent, N, MPI_INT, old, N, MPI_INT, target, disp, 1, type, MPI_SUM,
                              w->win));
    MPI_Type_free(&type);
    complete(w, target);

    type = make_type(i, places);
    TL_MPI(MPI_Get(got, 1, type, target, disp, 1, type, w->win));
    MPI_Type_free(&type);
    complete(w, target);
    for (int k = 0; k < N; k++)
        wrong += old[k] != 2 * sent[k] || got[places[k]] != 3 * sent[k];
    TL_CHECK(wrong == 0, "%d of %d wrong in loop %d, type %d", wrong, N, i, i % 4);
}

static void try_kind(tl_kind_t kind, int loops)
{
    tl_window_t w = tl_win_make(kind, tl_size() * SLOT, 1, MPI_COMM_WORLD, MPI_INFO_NULL);
    tl_growth_t growth = {0};

    TL_MPI(MPI_Win_lock_all(0, w.win));
    for (int i = 0; i < loops && tl_failed() < 100; i++) {
        tl_growth_step(&growth, i, WARMUP, loops);
        loop_once(&w, (w.rank + i) % w.size, i);
    }
    TL_MPI(MPI_Win_unlock_all(w.win));
    tl_growth_step(&growth, loops, WARMUP, loops);

    TL_CHECK(growth.least < GROWTH_MAX, "%s: grew by %zu bytes and more", tl_kind_name(kind),
             growth.least);
    tl_win_free(&w);
}

/** Making and freeing windows leaves nothing behind either. */
static void window_loop(tl_kind_t kind)
{
    enum { WINDOWS = 60 };
    tl_growth_t growth = {0};

    for (int i = 0; i < WINDOWS; i++) {
        tl_growth_step(&growth, i, WINDOWS / 3, WINDOWS);
        tl_window_t w = tl_win_make(kind, SLOT, 4, MPI_COMM_WORLD, MPI_INFO_NULL);
        int target = (w.rank + 1) % w.size, from = (w.rank + w.size - 1) % w.size;

        tl_begin(&w, TL_FENCE);
        TL_MPI(MPI_Put(&w.rank, 1, MPI_INT, target, tl_disp(&w, target, 8), 1, MPI_INT, w.win));
        tl_end(&w, TL_FENCE);
        TL_CHECK(((int *)(void *)w.base)[2] == from, "window %d", i);
        tl_win_free(&w);
    }
    tl_growth_step(&growth, WINDOWS, WINDOWS / 3, WINDOWS);

    TL_CHECK(growth.least < GROWTH_MAX, "%s windows: grew by %zu bytes and more",
             tl_kind_name(kind), growth.least);
}

int main(int argc, char **argv)
{
    /* Of verbs' receive buffers, 8 KiB each, another one becomes resident with each message until
     * the queue is through, which takes more messages than a slow machine has time for. */
    if (tl_slow())
        setenv("UCX_IB_RX_QUEUE_LEN", "256", 0);
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind)) {
        try_kind(kind, LOOPS * tl_factor());
        window_loop(kind);
    }
    return tl_finish();
}
