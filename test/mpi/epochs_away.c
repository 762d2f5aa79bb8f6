/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-4 */
/* windows: create */
/* methods: auto pack */
/**
 * @file
 * An origin that has closed its epoch need not call MPI again for the target to close its own: what
 * the transport could not take at once, its queues being short here, has been handed over. Origins
 * wait outside of MPI until the target says, in shared memory, that its fence or wait is over.
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

static field_t make_field(tl_kind_t kind)
{
    field_t f = {.w = tl_win_make(kind, (MPI_Aint)tl_size() * PUTS * BYTES, sizeof(int64_t),
                                  MPI_COMM_WORLD, MPI_INFO_NULL)};
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

static void check_origin(const field_t *f, int round)
{
    int looks = 0;

    while (__atomic_load_n(f->over, __ATOMIC_ACQUIRE) != round && looks < LOOKS) {
        usleep(LOOK);
        looks++;
    }
    TL_CHECK(looks < LOOKS, "round %d: the target waits for this process to call MPI", round);
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
        check_origin(f, round);
    MPI_Barrier(f->w.comm);
    MPI_Group_free(&one);
    MPI_Group_free(&other);
    MPI_Group_free(&all);
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

int main(int argc, char **argv)
{
    /* Nor does a helper thread. */
    setenv("OMPI_MCA_osc_nicstride_server", "0", 1);
    shorten_queues();
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    tl_need_ranks(2, 1 << 20);
    if (!tl_one_host())
        tl_skip("the target tells the others in shared memory");
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind)) {
        int64_t *values = tl_alloc((size_t)PUTS * BYTES);
        field_t f = make_field(kind);

        for (int round = 1; round <= ROUNDS; round++)
            one_round(&f, round, round % 4 >= 2, values);
        MPI_Win_free(&f.flags_win);
        tl_win_free(&f.w);
        free(values);
    }
    return tl_finish();
}
