/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-3 */
/* windows: create allocate */
/* methods: auto pack */
/**
 * @file
 * An origin that puts more than there is room for closes its epoch though the target stays outside
 * of MPI: that waits until the origins say, in shared memory, that theirs are over. Columns, which
 * go by message on every kind of window.
 */
#include "test/mpi/testlib.h"

#include <stdlib.h>
#include <unistd.h>

/** So many puts that their target's window and memory are full, and the queue to it, too. */
enum { ROUNDS = 2, ROWS = 512, COLUMNS = 8, WIDTH = 64, PUTS = 2200 };

/** Microseconds between two looks, and how many until the origins are taken to be stuck. */
#define LOOK  1000
#define LOOKS (TL_PATIENCE * 1000)

/** Each origin puts its own columns again and again, at last the numbers of the round. */
static void put_columns(const tl_window_t *w, int target, int round, MPI_Datatype column)
{
    int64_t *values = tl_alloc(ROWS * sizeof(*values));

    for (int row = 0; row < ROWS; row++)
        values[row] = ((int64_t)w->rank << 32) + round * ROWS + row;
    for (int i = 0; i < PUTS; i++) {
        const MPI_Aint at = (MPI_Aint)sizeof(int64_t) * (w->rank * COLUMNS + i % COLUMNS);

        TL_MPI(
            MPI_Put(values, ROWS, MPI_INT64_T, target, tl_disp(w, target, at), 1, column, w->win));
    }
    TL_MPI(MPI_Win_complete(w->win));
    free(values);
}

static void await_origins(const int *over, int round, int origins)
{
    int looks = 0;

    while (__atomic_load_n(over, __ATOMIC_ACQUIRE) != round * origins && looks < LOOKS) {
        usleep(LOOK);
        looks++;
    }
    TL_CHECK(looks < LOOKS, "round %d: origins wait for this process to call MPI", round);
}

static void check(const tl_window_t *w, int round)
{
    const int64_t *at = (const int64_t *)w->base;

    for (int i = 0; i < ROWS * w->size * COLUMNS; i++) {
        const int row = i / (w->size * COLUMNS), column = i % (w->size * COLUMNS);
        const int64_t want = ((int64_t)(column / COLUMNS) << 32) + round * ROWS + row;

        TL_CHECK(column / COLUMNS == w->rank || at[row * WIDTH + column] == want,
                 "round %d, row %d, column %d", round, row, column);
    }
}

static void one_round(const tl_window_t *w, int round, int *over, MPI_Datatype column)
{
    MPI_Group all, others, target = tl_group_of(w->comm, 0);

    MPI_Comm_group(w->comm, &all);
    MPI_Group_difference(all, target, &others);
    if (w->rank == 0) {
        TL_MPI(MPI_Win_post(others, 0, w->win));
        await_origins(over, round, w->size - 1);
        TL_MPI(MPI_Win_wait(w->win));
        check(w, round);
    } else {
        TL_MPI(MPI_Win_start(target, 0, w->win));
        put_columns(w, 0, round, column);
        __atomic_fetch_add(over, 1, __ATOMIC_RELEASE);
    }
    MPI_Barrier(w->comm);
    MPI_Group_free(&target);
    MPI_Group_free(&others);
    MPI_Group_free(&all);
}

int main(int argc, char **argv)
{
    MPI_Datatype column;
    MPI_Win flags_win;
    MPI_Aint bytes;
    int unit, *over;

    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    tl_need_ranks(2, 1 << 20);
    if (!tl_one_host())
        tl_skip("the origins tell the target in shared memory");
    TL_MPI(MPI_Win_allocate_shared(tl_rank() == 0 ? (MPI_Aint)sizeof(int) : 0, sizeof(int),
                                   MPI_INFO_NULL, MPI_COMM_WORLD, &over, &flags_win));
    TL_MPI(MPI_Win_shared_query(flags_win, 0, &bytes, &unit, &over));
    MPI_Type_vector(ROWS, 1, WIDTH, MPI_INT64_T, &column);
    MPI_Type_commit(&column);
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind)) {
        tl_window_t w = tl_win_make(kind, (MPI_Aint)sizeof(int64_t) * ROWS * WIDTH, 1,
                                    MPI_COMM_WORLD, MPI_INFO_NULL);

        *over = 0;
        MPI_Barrier(w.comm);
        for (int round = 1; round <= ROUNDS; round++)
            one_round(&w, round, over, column);
        tl_win_free(&w);
    }
    MPI_Type_free(&column);
    MPI_Win_free(&flags_win);
    return tl_finish();
}
