/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-4 */
/* windows: create allocate */
/* methods: auto pack */
/* arguments: origins */
/* arguments: target */
/**
 * @file
 * Epochs one side of which stays outside of MPI until the other one says, in shared memory, that
 * its part is over.
 *
 *  origins  an origin that has closed its epoch need not call MPI again for the target to close its
 *           own: what the transport could not take at once, its queues being short here, has been
 *           handed over
 *  target   an origin that puts more than there is room for closes its epoch though the target is
 *           away: columns, which go by message on every kind of window
 */
#include "test/mpi/testlib.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROUNDS = 12, PUTS = 900, WORDS = 32 };

/** A put travels in a message with few others; all of them are more than a queue holds. */
#define BYTES (WORDS * (int)sizeof(int64_t))

/** Microseconds between two looks, and how many until the target is taken to be stuck. */
#define LOOK  1000
#define LOOKS (TL_PATIENCE * 1000)

typedef struct field {
    tl_window_t w;
    MPI_Win flags_win;
    int *over; /**< the last round that its target has closed */
} field_t;

static field_t make_field(tl_kind_t kind, MPI_Aint size, int disp_unit)
{
    field_t f = {.w = tl_win_make(kind, size, disp_unit, MPI_COMM_WORLD, MPI_INFO_NULL)};
    MPI_Aint bytes;
    int unit, *mine;

    TL_MPI(MPI_Win_allocate_shared(f.w.rank == 0 ? (MPI_Aint)sizeof(int) : 0, sizeof(int),
                                   MPI_INFO_NULL, f.w.comm, &mine, &f.flags_win));
    TL_MPI(MPI_Win_shared_query(f.flags_win, 0, &bytes, &unit, &f.over));
    if (f.w.rank == 0)
        *f.over = 0;
    MPI_Barrier(f.w.comm);
    return f;
}

static void free_field(field_t *f)
{
    MPI_Win_free(&f->flags_win);
    tl_win_free(&f->w);
}

static void put_all(const field_t *f, int target, const int64_t *values)
{
    for (int i = 0; i < PUTS; i++) {
        const MPI_Aint disp = ((MPI_Aint)f->w.rank * PUTS + i) * BYTES;

        TL_MPI(MPI_Put(values + (ptrdiff_t)i * WORDS, WORDS, MPI_INT64_T, target,
                       tl_disp(&f->w, target, disp), WORDS, MPI_INT64_T, f->w.win));
    }
}

static void fill(int64_t *values, int round, int rank)
{
    for (int i = 0; i < PUTS * WORDS; i++)
        values[i] = ((int64_t)round << 40) + ((int64_t)rank << 32) + i;
}

/** The target has come back from its call. */
static void check_target(const field_t *f, int round, int64_t *values)
{
    __atomic_store_n(f->over, round, __ATOMIC_RELEASE);
    for (int r = 0; r < f->w.size; r++) {
        if (r != f->w.rank) {
            fill(values, round, r);
            TL_BYTES(f->w.base + (size_t)r * PUTS * BYTES, values, PUTS * BYTES, "of %d", r);
        }
    }
}

/** Outside of MPI. */
static void await_others(const field_t *f, int over, const char *what)
{
    int looks = 0;

    while (__atomic_load_n(f->over, __ATOMIC_ACQUIRE) != over && looks < LOOKS) {
        usleep(LOOK);
        looks++;
    }
    TL_CHECK(looks < LOOKS, "%d: %s", over, what);
}

static void one_round(const field_t *f, int round, bool fences, int64_t *values)
{
    const int target = round % f->w.size;
    const bool is_target = f->w.rank == target;
    MPI_Group all, other, one = tl_group_of(f->w.comm, target);

    MPI_Comm_group(f->w.comm, &all);
    MPI_Group_difference(all, one, &other);
    fill(values, round, f->w.rank);
    if (fences)
        TL_MPI(MPI_Win_fence(0, f->w.win));
    else if (is_target)
        TL_MPI(MPI_Win_post(other, 0, f->w.win));
    else
        TL_MPI(MPI_Win_start(one, 0, f->w.win));
    if (is_target)
        usleep(5000);
    else
        put_all(f, target, values);
    if (fences)
        TL_MPI(MPI_Win_fence(MPI_MODE_NOSUCCEED, f->w.win));
    else if (is_target)
        TL_MPI(MPI_Win_wait(f->w.win));
    else
        TL_MPI(MPI_Win_complete(f->w.win));
    if (is_target)
        check_target(f, round, values);
    else
        await_others(f, round, "the target waits for this process to call MPI");
    MPI_Barrier(f->w.comm);
    MPI_Group_free(&one);
    MPI_Group_free(&other);
    MPI_Group_free(&all);
}

/* ---- a target that is away ---- */

/** So many puts that their target's window and memory are full, and the queue to it, too. */
enum { ROWS = 512, COLUMNS = 8, WIDTH = 64, MANY = 2200 };

/** Each origin puts its own columns again and again, at last the numbers of the round. */
static void put_columns(const tl_window_t *w, int target, int round, MPI_Datatype column)
{
    int64_t *values = tl_alloc(ROWS * sizeof(*values));

    for (int row = 0; row < ROWS; row++)
        values[row] = ((int64_t)w->rank << 32) + round * ROWS + row;
    for (int i = 0; i < MANY; i++) {
        const MPI_Aint at = (MPI_Aint)sizeof(int64_t) * (w->rank * COLUMNS + i % COLUMNS);

        TL_MPI(
            MPI_Put(values, ROWS, MPI_INT64_T, target, tl_disp(w, target, at), 1, column, w->win));
    }
    TL_MPI(MPI_Win_complete(w->win));
    free(values);
}

static void check_columns(const tl_window_t *w, int round)
{
    const int64_t *at = (const int64_t *)w->base;

    for (int i = 0; i < ROWS * w->size * COLUMNS; i++) {
        const int row = i / (w->size * COLUMNS), column = i % (w->size * COLUMNS);
        const int64_t want = ((int64_t)(column / COLUMNS) << 32) + round * ROWS + row;

        TL_CHECK(column / COLUMNS == w->rank || at[row * WIDTH + column] == want,
                 "round %d, row %d, column %d", round, row, column);
    }
}

static void room_round(const field_t *f, int round, MPI_Datatype column)
{
    const tl_window_t *w = &f->w;
    MPI_Group all, others, target = tl_group_of(w->comm, 0);

    MPI_Comm_group(w->comm, &all);
    MPI_Group_difference(all, target, &others);
    if (w->rank == 0) {
        TL_MPI(MPI_Win_post(others, 0, w->win));
        await_others(f, round * (w->size - 1), "origins wait for this process to call MPI");
        TL_MPI(MPI_Win_wait(w->win));
        check_columns(w, round);
    } else {
        TL_MPI(MPI_Win_start(target, 0, w->win));
        put_columns(w, 0, round, column);
        __atomic_fetch_add(f->over, 1, __ATOMIC_RELEASE);
    }
    MPI_Barrier(w->comm);
    MPI_Group_free(&target);
    MPI_Group_free(&others);
    MPI_Group_free(&all);
}

static void test_room(tl_kind_t kind)
{
    field_t f = make_field(kind, (MPI_Aint)sizeof(int64_t) * ROWS * WIDTH, 1);
    MPI_Datatype column;

    MPI_Type_vector(ROWS, 1, WIDTH, MPI_INT64_T, &column);
    MPI_Type_commit(&column);
    for (int round = 1; round <= 2; round++)
        room_round(&f, round, column);
    MPI_Type_free(&column);
    free_field(&f);
}

/** Messages go through short queues of ours, and with an odd number of ranks through UCX's. */
static void shorten_queues(void)
{
    const char *ranks = getenv("OMPI_COMM_WORLD_SIZE");
    const char *kibibytes = ranks != NULL && atoi(ranks) % 2 == 1 ? "0" : "64";

    setenv("OMPI_MCA_osc_nicstride_queues", kibibytes, 1);
    setenv("OMPI_MCA_pml_superpipe_queues", kibibytes, 1);
    setenv("UCX_MM_FIFO_SIZE", "16", 0);
    setenv("UCX_POSIX_FIFO_SIZE", "16", 0);
    setenv("UCX_SYSV_FIFO_SIZE", "16", 0);
}

static void test_away(tl_kind_t kind)
{
    int64_t *values = tl_alloc((size_t)PUTS * BYTES);
    field_t f = make_field(kind, (MPI_Aint)tl_size() * PUTS * BYTES, sizeof(int64_t));

    for (int round = 1; round <= ROUNDS; round++)
        one_round(&f, round, round % 4 >= 2, values);
    free_field(&f);
    free(values);
}

int main(int argc, char **argv)
{
    const bool room = argc > 1 && tl_asked_for("target", argc, argv);

    if (!room) {
        /* Nor does a helper thread. */
        setenv("OMPI_MCA_osc_nicstride_server", "0", 1);
        shorten_queues();
    }
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    tl_need_ranks(2, 1 << 20);
    if (!tl_one_host())
        tl_skip("one side tells the other in shared memory");
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind))
        (room ? test_room : test_away)(kind);
    return tl_finish();
}
