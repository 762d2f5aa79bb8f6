/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 1-4 */
/* windows: create allocate dynamic shared */
/* threads: funneled */
/**
 * @file
 * MPI_THREAD_FUNNELED: the main thread communicates while two others of each rank compute on what
 * arrives and prepare what leaves. They touch the window's memory and signal each other by plain
 * atomics; no thread but the main one ever calls MPI.
 */
#include "test/mpi/testlib.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 2, LONGS = 4000, ROUNDS = 12 };

/** A window in two halves, one for each helper: what has arrived; and the buffers that leave. */
typedef struct shared {
    tl_window_t w;
    long *leaving;       /**< of THREADS * LONGS */
    atomic_int prepared; /**< helpers that have filled their part, over all rounds */
    atomic_int arrived;  /**< rounds whose data are here */
    atomic_int summed;   /**< helpers that have read what arrived, over all rounds */
    atomic_long sums[THREADS];
    atomic_int next_helper; /**< gives each helper its number */
} shared_t;

static long value_of(int rank, int round, int i)
{
    return (long)(rank + 1) * (round + 1) + i;
}

static void wait_until(atomic_int *counter, int value)
{
    while (atomic_load(counter) < value)
        sched_yield();
}

/** Prepares a part, waits for the main thread to exchange it, adds up the part that came. */
static void *helper(void *arg)
{
    shared_t *s = arg;
    int number = atomic_fetch_add(&s->next_helper, 1), first = number * LONGS;
    const long *window = (const long *)s->w.base;

    for (int round = 0; round < ROUNDS; round++) {
        long sum = 0;

        for (int i = first; i < first + LONGS; i++)
            s->leaving[i] = value_of(s->w.rank, round, i);
        atomic_fetch_add(&s->prepared, 1);
        wait_until(&s->arrived, round + 1);
        for (int i = first; i < first + LONGS; i++)
            sum += window[i];
        atomic_store(&s->sums[number], sum);
        atomic_fetch_add(&s->summed, 1);
    }
    return NULL;
}

/** One exchange with the next rank, by locks or by fences. */
static void exchange(shared_t *s, int round)
{
    const tl_window_t *w = &s->w;
    int next = (w->rank + 1) % w->size, n = THREADS * LONGS;

    if (round % 2 == 0) {
        TL_MPI(MPI_Win_fence(0, w->win));
        TL_MPI(MPI_Put(s->leaving, n, MPI_LONG, next, tl_disp(w, next, 0), n, MPI_LONG, w->win));
        TL_MPI(MPI_Win_fence(MPI_MODE_NOSUCCEED, w->win));
        return;
    }
    TL_MPI(MPI_Win_lock_all(0, w->win));
    TL_MPI(MPI_Accumulate(s->leaving, n, MPI_LONG, next, tl_disp(w, next, 0), n, MPI_LONG,
                          MPI_REPLACE, w->win));
    TL_MPI(MPI_Win_flush(next, w->win));
    MPI_Barrier(w->comm);
    TL_MPI(MPI_Win_unlock_all(w->win));
}

static void check_sums(shared_t *s, int round)
{
    int before = (s->w.rank + s->w.size - 1) % s->w.size;
    long sum = 0, want = 0;

    for (int t = 0; t < THREADS; t++)
        sum += atomic_load(&s->sums[t]);
    for (int i = 0; i < THREADS * LONGS; i++)
        want += value_of(before, round, i);
    TL_CHECK(sum == want, "round %d: the helpers saw %ld, not %ld", round, sum, want);
}

static void test_helpers(tl_kind_t kind)
{
    shared_t s = {.leaving = tl_alloc(THREADS * LONGS * sizeof(long))};
    pthread_t threads[THREADS];

    s.w = tl_win_make(kind, THREADS * LONGS * sizeof(long), sizeof(long), MPI_COMM_WORLD,
                      MPI_INFO_NULL);
    for (int t = 0; t < THREADS; t++)
        if (!TL_CHECK(pthread_create(&threads[t], NULL, helper, &s) == 0, "no thread"))
            MPI_Abort(MPI_COMM_WORLD, TL_EXIT_FAILED);
    for (int round = 0; round < ROUNDS; round++) {
        wait_until(&s.prepared, (round + 1) * THREADS);
        exchange(&s, round);
        atomic_store(&s.arrived, round + 1);
        wait_until(&s.summed, (round + 1) * THREADS);
        check_sums(&s, round);
        /* the next rank's data may be overwritten only when its helpers have read them */
        MPI_Barrier(s.w.comm);
    }
    for (int t = 0; t < THREADS; t++)
        pthread_join(threads[t], NULL);
    tl_win_free(&s.w);
    free(s.leaving);
}

int main(int argc, char **argv)
{
    tl_init(&argc, &argv, MPI_THREAD_FUNNELED);
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind))
        test_helpers(kind);
    return tl_finish();
}
