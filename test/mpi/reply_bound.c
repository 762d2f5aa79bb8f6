/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 1-4 8 */
/* windows: create */
/* methods: auto pack pipeline */
/**
 * @file
 * What a process has asked others for by message, and not got yet, is bounded by a quarter of
 * osc_nicstride_memory, however much it asks for before it makes progress: short gets, long ones,
 * strided and irregular ones, fetches, of all targets in several windows. Each of them ends, and
 * gets what it asked for.
 */
#include <stdlib.h>
#include <string.h>

#include "test/mpi/counter.h"
#include "test/mpi/testlib.h"

enum { MEMORY_MIB = 1, WINDOWS = 2, SHORTS = 300, LONGS = 1 << 17, ROUNDS = 3 };

#define WINDOW_BYTES ((MPI_Aint)LONGS * (MPI_Aint)sizeof(int64_t))

/** What the gets of one target in one window bring. */
typedef struct got {
    int64_t shorts[SHORTS], fetched[SHORTS];
    int64_t whole[LONGS], all[LONGS], gaps[LONGS / 2], some[LONGS / 4];
} got_t;

static MPI_Datatype gaps, irregular;
static int *at;

/** Every other element, and a quarter of them without any order. */
static void make_types(void)
{
    at = tl_alloc(LONGS / 4 * sizeof(*at));
    for (int i = 0; i < LONGS / 4; i++)
        at[i] = 4 * i + (i * 7 + i / 5) % 3;
    TL_MPI(MPI_Type_vector(LONGS / 2, 1, 2, MPI_INT64_T, &gaps));
    TL_MPI(MPI_Type_create_indexed_block(LONGS / 4, 1, at, MPI_INT64_T, &irregular));
    TL_MPI(MPI_Type_commit(&gaps));
    TL_MPI(MPI_Type_commit(&irregular));
}

static int64_t value(int rank, int window, int i)
{
    return rank * INT64_C(1000003) + window * INT64_C(7919) + i;
}

static void ask(const tl_window_t *w, int target, got_t *g)
{
    for (int i = 0; i < SHORTS; i++) {
        TL_MPI(MPI_Get(&g->shorts[i], 1, MPI_INT64_T, target, tl_disp(w, target, 8 * i), 1,
                       MPI_INT64_T, w->win));
    }
    TL_MPI(MPI_Get(g->whole, LONGS, MPI_INT64_T, target, tl_disp(w, target, 0), LONGS, MPI_INT64_T,
                   w->win));
    TL_MPI(
        MPI_Get(g->gaps, LONGS / 2, MPI_INT64_T, target, tl_disp(w, target, 0), 1, gaps, w->win));
    TL_MPI(MPI_Get_accumulate(NULL, 0, MPI_INT64_T, g->all, LONGS, MPI_INT64_T, target,
                              tl_disp(w, target, 0), LONGS, MPI_INT64_T, MPI_NO_OP, w->win));
    TL_MPI(MPI_Get(g->some, LONGS / 4, MPI_INT64_T, target, tl_disp(w, target, 0), 1, irregular,
                   w->win));
    for (int i = 0; i < SHORTS; i++) {
        TL_MPI(MPI_Fetch_and_op(NULL, &g->fetched[i], MPI_INT64_T, target,
                                tl_disp(w, target, 8 * i), MPI_NO_OP, w->win));
    }
}

static void check(const got_t *g, int target, int window)
{
    int wrong = 0;

    for (int i = 0; i < LONGS; i++) {
        const int64_t right = value(target, window, i);

        wrong += g->whole[i] != right || g->all[i] != right;
        wrong += i < SHORTS && (g->shorts[i] != right || g->fetched[i] != right);
        wrong += i < LONGS / 2 && g->gaps[i] != value(target, window, 2 * i);
        wrong += i < LONGS / 4 && g->some[i] != value(target, window, at[i]);
    }
    TL_CHECK(wrong == 0, "%d values of rank %d in window %d are wrong", wrong, target, window);
}

/** Nothing is waited for before all has been asked for. */
static void get_all(const tl_window_t *w, got_t *got)
{
    const int n = tl_size();

    memset(got, 0, (size_t)(WINDOWS * n) * sizeof(*got));
    for (int i = 0; i < WINDOWS * n; i++)
        ask(&w[i % WINDOWS], i / WINDOWS, &got[i]);
    for (int i = WINDOWS; i-- > 0;)
        TL_MPI(MPI_Win_flush_all(w[i].win));
    for (int i = 0; i < WINDOWS * n; i++)
        check(&got[i], i / WINDOWS, i % WINDOWS);
}

int main(int argc, char **argv)
{
    const unsigned long long most = ((unsigned long long)MEMORY_MIB << 20) / 4;
    tl_window_t w[WINDOWS];

    setenv("OMPI_MCA_osc_nicstride_memory", "1", 1);
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    counter_t *bytes = counter_begin("osc_nicstride_reply_bytes");
    got_t *got = tl_alloc((size_t)(WINDOWS * tl_size()) * sizeof(*got));
    make_types();
    for (int i = 0; i < WINDOWS; i++) {
        w[i] = tl_win_make(TL_CREATE, WINDOW_BYTES, 1, MPI_COMM_WORLD, MPI_INFO_NULL);
        for (int j = 0; j < LONGS; j++)
            ((int64_t *)w[i].base)[j] = value(tl_rank(), i, j);
        TL_MPI(MPI_Win_lock_all(0, w[i].win));
    }
    TL_MPI(MPI_Barrier(MPI_COMM_WORLD));
    for (int round = 0; round < ROUNDS; round++)
        get_all(w, got);
    if (bytes != NULL) {
        TL_CHECK(counter_read(bytes) <= most, "%llu bytes were asked for, with room for %llu",
                 counter_read(bytes), most);
        /* Fetches go by message with all methods. */
        TL_CHECK(tl_size() == 1 || counter_read(bytes) > most / 2, "only %llu bytes were asked for",
                 counter_read(bytes));
    }
    TL_MPI(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < WINDOWS; i++) {
        TL_MPI(MPI_Win_unlock_all(w[i].win));
        tl_win_free(&w[i]);
    }
    counter_end(bytes);
    TL_MPI(MPI_Type_free(&gaps));
    TL_MPI(MPI_Type_free(&irregular));
    free(at);
    free(got);
    return tl_finish();
}
