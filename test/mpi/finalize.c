/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 1-4 */
/* windows: create allocate dynamic shared */
/* leaks: expected */
/**
 * @file
 * Programs that end without having tidied up: MPI_Finalize must neither hang nor crash. Arguments
 * name what to forget (window, many, lock, exclusive, fence, post, start, request, attached,
 * communicator); without arguments everything is forgotten at once. None of it is legal MPI but
 * for the transfers that are over; that the end is good all the same is quality.
 */
#include "test/mpi/testlib.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/** Seconds after which a process that hangs is ended by a signal. */
#define PATIENCE TL_PATIENCE
#define LONGS    20000

/* Must outlive main(): transfers that nobody waited for may still use them. */
static long data[LONGS];
static MPI_Request requests[3];

static tl_window_t make_window(tl_kind_t kind)
{
    return tl_win_make(kind, LONGS * sizeof(long), sizeof(long), MPI_COMM_WORLD, MPI_INFO_NULL);
}

static int next_rank(const tl_window_t *w)
{
    return (w->rank + 1) % w->size;
}

static void put(const tl_window_t *w, int n)
{
    int next = next_rank(w);

    TL_MPI(MPI_Put(data, n, MPI_LONG, next, tl_disp(w, next, 0), n, MPI_LONG, w->win));
}

static void forget_window(tl_kind_t kind)
{
    tl_window_t w = make_window(kind);

    TL_MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next_rank(&w), 0, w.win));
    put(&w, LONGS);
    TL_MPI(MPI_Win_unlock(next_rank(&w), w.win));
}

static void forget_many(tl_kind_t kind)
{
    for (int i = 0; i < 20; i++) {
        tl_window_t w = make_window(kind);

        if (i % 3 == 1)
            tl_win_free(&w);
    }
}

static void forget_lock(tl_kind_t kind)
{
    tl_window_t w = make_window(kind);

    TL_MPI(MPI_Win_lock_all(0, w.win));
    put(&w, LONGS);
}

/** Only one rank holds the lock, and it may be the first to end or the last. */
static void forget_exclusive(tl_kind_t kind)
{
    tl_window_t w = make_window(kind);

    if (w.rank == w.size - 1) {
        TL_MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, w.win));
        put(&w, 0);
    }
}

static void forget_fence(tl_kind_t kind)
{
    tl_window_t w = make_window(kind);

    TL_MPI(MPI_Win_fence(0, w.win));
    put(&w, LONGS);
}

static void forget_post(tl_kind_t kind)
{
    tl_window_t w = make_window(kind);
    MPI_Group from = tl_group_of(w.comm, (w.rank + w.size - 1) % w.size);

    TL_MPI(MPI_Win_post(from, 0, w.win));
    MPI_Group_free(&from);
}

static void forget_start(tl_kind_t kind)
{
    tl_window_t w = make_window(kind);
    MPI_Group from = tl_group_of(w.comm, (w.rank + w.size - 1) % w.size);
    MPI_Group to = tl_group_of(w.comm, next_rank(&w));

    TL_MPI(MPI_Win_post(from, 0, w.win));
    TL_MPI(MPI_Win_start(to, 0, w.win));
    put(&w, LONGS);
    MPI_Group_free(&from);
    MPI_Group_free(&to);
}

static void forget_request(tl_kind_t kind)
{
    static long got[LONGS];
    tl_window_t w = make_window(kind);
    int next = next_rank(&w);
    MPI_Aint disp = tl_disp(&w, next, 0);
    long one = 1;

    TL_MPI(MPI_Win_lock_all(0, w.win));
    TL_MPI(
        MPI_Rput(data, LONGS / 2, MPI_LONG, next, disp, LONGS / 2, MPI_LONG, w.win, &requests[0]));
    TL_MPI(MPI_Rget(got, LONGS / 2, MPI_LONG, next,
                    tl_disp(&w, next, LONGS / 2 * (MPI_Aint)sizeof(long)), LONGS / 2, MPI_LONG,
                    w.win, &requests[1]));
    TL_MPI(MPI_Raccumulate(&one, 1, MPI_LONG, next,
                           tl_disp(&w, next, (LONGS - 1) * (MPI_Aint)sizeof(long)), 1, MPI_LONG,
                           MPI_SUM, w.win, &requests[2]));
}

/** The memory is gone before its window is. */
static void forget_attached(tl_kind_t kind)
{
    tl_window_t w = tl_win_make(TL_DYNAMIC, 0, 1, MPI_COMM_WORLD, MPI_INFO_NULL);
    void *memory = tl_alloc(1 << 20);

    (void)kind;
    TL_MPI(MPI_Win_attach(w.win, memory, 1 << 20));
    MPI_Barrier(w.comm);
    free(memory);
}

/** The communicator it was made on is freed, the window is not. */
static void forget_communicator(tl_kind_t kind)
{
    MPI_Comm half;

    MPI_Comm_split(MPI_COMM_WORLD, tl_rank() % 2, 0, &half);
    tl_window_t w = tl_win_make(kind, 64, 1, half, MPI_INFO_NULL);
    MPI_Comm_free(&half);
    MPI_Comm_free(&w.comm);
}

static const struct {
    const char *name;
    void (*run)(tl_kind_t);
} modes[] = {{"window", forget_window},     {"many", forget_many},
             {"lock", forget_lock},         {"exclusive", forget_exclusive},
             {"fence", forget_fence},       {"post", forget_post},
             {"start", forget_start},       {"request", forget_request},
             {"attached", forget_attached}, {"communicator", forget_communicator}};

int main(int argc, char **argv)
{
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    alarm(PATIENCE);
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind)) {
        for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
            if (tl_asked_for(modes[i].name, argc, argv)) {
                modes[i].run(kind);
                TL_CHECK(tl_failed() == 0, "not even '%s' could be set up", modes[i].name);
            }
        }
    }
    return tl_finish();
}
