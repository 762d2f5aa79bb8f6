/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 1-4 */
/* windows: create allocate dynamic shared */
/* threads: multiple */
/**
 * @file
 * MPI_THREAD_MULTIPLE: four threads of each rank at once, each on a window of its own, all on one
 * window under one lock_all, each with a lock on another target, and some that wait for
 * messages while others communicate.
 */
#include "test/mpi/testlib.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 4, LONGS = 1200 };
#define ROUNDS (tl_slow() ? 10 : 25)

/** What one thread works on. Its part of each rank's memory starts at long `part`. */
typedef struct worker {
    const tl_window_t *w;
    int thread;
    int part;
} worker_t;

static MPI_Aint at(const tl_window_t *w, int target, int index)
{
    return tl_disp(w, target, (MPI_Aint)index * (MPI_Aint)sizeof(long));
}

static tl_window_t make_longs(tl_kind_t kind, int longs, MPI_Comm comm)
{
    return tl_win_make(kind, (MPI_Aint)longs * (MPI_Aint)sizeof(long), sizeof(long), comm,
                       MPI_INFO_NULL);
}

/** Runs `body` in THREADS threads and waits for all of them. */
static void run_threads(void *(*body)(void *), worker_t *workers)
{
    pthread_t threads[THREADS];
    int started = 0;

    while (started < THREADS &&
           pthread_create(&threads[started], NULL, body, &workers[started]) == 0)
        started++;
    TL_CHECK(started == THREADS, "only %d threads started", started);
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
}

/* ---- put and get ---- */

/** Fills with what thread, rank and round give, puts, gets back, compares. Within an epoch. */
static void there_and_back(const worker_t *me, int target, int round, long *data, long *back)
{
    const tl_window_t *w = me->w;
    int n = 1 + (round * 97 + me->thread * 31) % LONGS;
    MPI_Aint disp = at(w, target, me->part);
    MPI_Request requests[1];

    for (int i = 0; i < n; i++)
        data[i] = (w->rank * THREADS + me->thread) * 1000000L + round * 10000L + i;
    if (round % 2 == 0) {
        TL_MPI(MPI_Put(data, n, MPI_LONG, target, disp, n, MPI_LONG, w->win));
    } else {
        TL_MPI(MPI_Rput(data, n, MPI_LONG, target, disp, n, MPI_LONG, w->win, requests));
        TL_MPI(MPI_Wait(requests, MPI_STATUS_IGNORE));
    }
    TL_MPI(MPI_Win_flush(target, w->win));
    memset(back, 0, (size_t)n * sizeof(long));
    if (round % 3 == 0) {
        TL_MPI(MPI_Get(back, n, MPI_LONG, target, disp, n, MPI_LONG, w->win));
        TL_MPI(MPI_Win_flush_local(target, w->win));
    } else {
        TL_MPI(MPI_Rget(back, n, MPI_LONG, target, disp, n, MPI_LONG, w->win, requests));
        TL_MPI(MPI_Wait(requests, MPI_STATUS_IGNORE));
    }
    TL_BYTES(back, data, (size_t)n * sizeof(long), "thread %d, round %d, target %d", me->thread,
             round, target);
}

/* ---- each thread a window ---- */

/** Makes it, too: the first windows of a process, which open the transport, are made by all threads
 *  at once. */
static void *own_window(void *arg)
{
    const worker_t *given = arg;
    tl_window_t made = make_longs(given->w->kind, LONGS, given->w->comm), *w = &made;
    const worker_t worker = {w, given->thread, 0}, *me = &worker;
    long *data = tl_alloc(LONGS * sizeof(long)), *back = tl_alloc(LONGS * sizeof(long));

    for (int round = 0; round < ROUNDS; round++) {
        int target = (w->rank + round) % w->size;

        if (round % 5 == 4) {
            TL_MPI(MPI_Win_fence(0, w->win));
            TL_MPI(MPI_Win_fence(MPI_MODE_NOSUCCEED, w->win));
        }
        TL_MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, w->win));
        there_and_back(me, target, round, data, back);
        TL_MPI(MPI_Win_unlock(target, w->win));
    }
    free(back);
    free(data);
    tl_win_free(w);
    return NULL;
}

static void test_own_windows(tl_kind_t kind)
{
    tl_window_t windows[THREADS];
    worker_t workers[THREADS];

    for (int i = 0; i < THREADS; i++) {
        windows[i].kind = kind;
        MPI_Comm_dup(MPI_COMM_WORLD, &windows[i].comm);
        /* Errors come back from the calls. */
        MPI_Comm_set_errhandler(windows[i].comm, MPI_ERRORS_RETURN);
        workers[i] = (worker_t){&windows[i], i, 0};
    }
    run_threads(own_window, workers);
    for (int i = 0; i < THREADS; i++)
        MPI_Comm_free(&windows[i].comm);
}

/* ---- all threads on one window ---- */

/**
 * Beside its own part each thread adds to counters that all threads of all ranks add to. Order
 * and completion are for each thread what they would be were it alone.
 */
static void *one_window(void *arg)
{
    const worker_t *me = arg;
    const tl_window_t *w = me->w;
    long *data = tl_alloc(LONGS * sizeof(long)), *back = tl_alloc(LONGS * sizeof(long));
    /* Not on the stack of a thread that may end before the last accumulate is complete. */
    static const long ones[2] = {1, 1};
    long old = -1, before = -1;

    for (int round = 0; round < ROUNDS; round++) {
        int target = (w->rank + round + me->thread) % w->size;

        there_and_back(me, target, round, data, back);
        TL_MPI(MPI_Accumulate(ones, 2, MPI_LONG, target, at(w, target, 0), 2, MPI_LONG, MPI_SUM,
                              w->win));
        TL_MPI(MPI_Fetch_and_op(ones, &old, MPI_LONG, 0, at(w, 0, 2), MPI_SUM, w->win));
        if (round % 4 == 3)
            TL_MPI(MPI_Win_flush_all(w->win));
        else
            TL_MPI(MPI_Win_flush(0, w->win));
        TL_CHECK(old > before, "fetched %ld after %ld", old, before);
        before = old;
    }
    free(back);
    free(data);
    return NULL;
}

static void test_one_window(tl_kind_t kind)
{
    int ranks = tl_size(), longs = 3 + ranks * THREADS * LONGS;
    tl_window_t w = make_longs(kind, longs, MPI_COMM_WORLD);
    worker_t workers[THREADS];
    long *window = (long *)w.base, mine, sum = 0;

    for (int i = 0; i < THREADS; i++)
        workers[i] = (worker_t){&w, i, 3 + (w.rank * THREADS + i) * LONGS};
    TL_MPI(MPI_Win_lock_all(0, w.win));
    run_threads(one_window, workers);
    TL_MPI(MPI_Win_unlock_all(w.win));
    MPI_Barrier(w.comm);
    TL_MPI(MPI_Win_lock(MPI_LOCK_SHARED, w.rank, 0, w.win));
    mine = window[0];
    TL_CHECK(window[1] == mine, "%ld beside %ld", window[1], mine);
    TL_CHECK(w.rank > 0 || window[2] == (long)ranks * THREADS * ROUNDS, "fetched in all: %ld",
             window[2]);
    TL_MPI(MPI_Win_unlock(w.rank, w.win));
    MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, w.comm);
    TL_CHECK(sum == (long)ranks * THREADS * ROUNDS, "added in all: %ld", sum);
    tl_win_free(&w);
}

/* ---- threads with locks on different targets ---- */

/** Adds under an exclusive lock by get and put; other ranks' threads want the same lock. */
static void *own_target(void *arg)
{
    const worker_t *me = arg;
    const tl_window_t *w = me->w;
    int target = me->thread;

    for (int round = 0; round < ROUNDS && target < w->size; round++) {
        long value = -1;

        TL_MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, w->win));
        TL_MPI(MPI_Get(&value, 1, MPI_LONG, target, at(w, target, 0), 1, MPI_LONG, w->win));
        TL_MPI(MPI_Win_flush(target, w->win));
        value++;
        TL_MPI(MPI_Put(&value, 1, MPI_LONG, target, at(w, target, 0), 1, MPI_LONG, w->win));
        TL_MPI(MPI_Win_unlock(target, w->win));
    }
    return NULL;
}

static void test_own_targets(tl_kind_t kind)
{
    tl_window_t w = make_longs(kind, 1, MPI_COMM_WORLD);
    worker_t workers[THREADS];

    for (int i = 0; i < THREADS; i++)
        workers[i] = (worker_t){&w, i, 0};
    run_threads(own_target, workers);
    MPI_Barrier(w.comm);
    TL_MPI(MPI_Win_lock(MPI_LOCK_SHARED, w.rank, 0, w.win));
    long got = *(long *)w.base, want = w.rank < THREADS ? (long)w.size * ROUNDS : 0;
    TL_MPI(MPI_Win_unlock(w.rank, w.win));
    TL_CHECK(got == want, "%ld, not %ld", got, want);
    tl_win_free(&w);
}

/* ---- messages beside transfers, windows made beside transfers ---- */

/** Thread 0 waits in receives and barriers, thread 1 makes windows, the others transfer. */
static void *mixed(void *arg)
{
    const worker_t *me = arg;
    const tl_window_t *w = me->w;
    int next = (w->rank + 1) % w->size, before = (w->rank + w->size - 1) % w->size;

    for (int round = 0; round < ROUNDS && me->thread == 0; round++) {
        int told = -1;

        MPI_Sendrecv(&round, 1, MPI_INT, next, 5, &told, 1, MPI_INT, before, 5, w->comm,
                     MPI_STATUS_IGNORE);
        TL_CHECK(told == round, "told %d in round %d", told, round);
        MPI_Barrier(w->comm);
    }
    for (int round = 0; round < 5 && me->thread == 1; round++) {
        tl_window_t other = make_longs(w->kind, 10, w->comm);

        TL_MPI(MPI_Win_fence(0, other.win));
        TL_MPI(MPI_Win_fence(MPI_MODE_NOSUCCEED, other.win));
        tl_win_free(&other);
    }
    if (me->thread > 1)
        one_window(arg);
    return NULL;
}

static void test_mixed(tl_kind_t kind)
{
    MPI_Comm another;
    int longs = 3 + tl_size() * THREADS * LONGS;
    tl_window_t w = make_longs(kind, longs, MPI_COMM_WORLD), made_on = w;
    worker_t workers[THREADS];

    MPI_Comm_dup(MPI_COMM_WORLD, &another);
    for (int i = 0; i < THREADS; i++)
        workers[i] = (worker_t){&w, i, 3 + (w.rank * THREADS + i) * LONGS};
    made_on.comm = another;
    workers[1].w = &made_on;
    TL_MPI(MPI_Win_lock_all(0, w.win));
    run_threads(mixed, workers);
    TL_MPI(MPI_Win_unlock_all(w.win));
    MPI_Comm_free(&another);
    tl_win_free(&w);
}

int main(int argc, char **argv)
{
    tl_init(&argc, &argv, MPI_THREAD_MULTIPLE);
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind)) {
        test_own_windows(kind);
        test_one_window(kind);
        test_own_targets(kind);
        test_mixed(kind);
    }
    return tl_finish();
}
