/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-4 */
/* windows: create allocate dynamic */
/* methods: rdma */
/* mpirun: --mca osc_nicstride_adapter_locks on */
/**
 * @file
 * Locks that an adapter takes, here as UCX emulates it. By itself a process of another node takes
 * the lock so from the second time on, which the counter shows, and while the target is away. Many
 * at the same time, in exclusive and shared epochs, some by all of MPI_Win_lock_all, and the target
 * itself, exclude each other as they must, and all get their turn.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test/mpi/counter.h"
#include "test/mpi/testlib.h"

enum {
    ALONE = 20,
    ROUNDS = 150,
    SLOW_ROUNDS = 15,
    WORDS = 64,
    PATIENCE = 2000,
    ASLEEP_USEC = 1000000
};

static counter_t *taken;

static int rounds(void)
{
    return tl_slow() ? SLOW_ROUNDS : ROUNDS;
}

static MPI_Aint at(const tl_window_t *w, int target, int word)
{
    return tl_disp(w, target, (MPI_Aint)word * (MPI_Aint)sizeof(long));
}

/** Adds one to all words of a target under its exclusive lock, by get and put. */
static void add_one(const tl_window_t *w, int target)
{
    long got[WORDS], sent[WORDS];
    int differ = 0;

    TL_MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, w->win));
    TL_MPI(MPI_Get(got, WORDS, MPI_LONG, target, at(w, target, 0), WORDS, MPI_LONG, w->win));
    TL_MPI(MPI_Win_flush(target, w->win));
    for (int i = 0; i < WORDS; i++) {
        differ += got[i] != got[0];
        sent[i] = got[i] + 1;
    }
    TL_MPI(MPI_Put(sent, WORDS, MPI_LONG, target, at(w, target, 0), WORDS, MPI_LONG, w->win));
    TL_MPI(MPI_Win_unlock(target, w->win));
    TL_CHECK(differ == 0, "%d of %d words differ under an exclusive lock", differ, WORDS);
}

/** Reads them twice under a shared lock. */
static void read_twice(const tl_window_t *w, int target, bool all)
{
    long first[WORDS], second[WORDS];

    TL_MPI(all ? MPI_Win_lock_all(0, w->win) : MPI_Win_lock(MPI_LOCK_SHARED, target, 0, w->win));
    TL_MPI(MPI_Get(first, WORDS, MPI_LONG, target, at(w, target, 0), WORDS, MPI_LONG, w->win));
    TL_MPI(MPI_Win_flush(target, w->win));
    TL_MPI(MPI_Get(second, WORDS, MPI_LONG, target, at(w, target, 0), WORDS, MPI_LONG, w->win));
    TL_MPI(all ? MPI_Win_unlock_all(w->win) : MPI_Win_unlock(target, w->win));
    TL_BYTES(second, first, sizeof(first), "read twice under a shared lock");
    for (int i = 1; i < WORDS; i++)
        TL_CHECK(first[i] == first[0], "word %d is %ld, not %ld", i, first[i], first[0]);
}

/** The first epochs bring the keys, and open the gate. */
static void warm_up(const tl_window_t *w, int target)
{
    const unsigned long long before = counter_read(taken);
    int tries = 0;

    while (counter_read(taken) == before && tries++ < PATIENCE)
        read_twice(w, target, false);
    TL_CHECK(tries < PATIENCE, "no lock of rank %d was taken by the adapter", target);
}

static void test_alone(const tl_window_t *w)
{
    unsigned long long before;

    if (w->rank == w->size - 1) {
        warm_up(w, 0);
        before = counter_read(taken);
        for (int i = 0; i < ALONE; i++) {
            read_twice(w, 0, false);
            add_one(w, 0);
        }
        TL_CHECK(counter_read(taken) - before == 2 * ALONE, "%llu of %d locks by the adapter",
                 counter_read(taken) - before, 2 * ALONE);
    }
    MPI_Barrier(w->comm);
    if (w->rank == 0) {
        usleep(ASLEEP_USEC);
    } else if (w->rank == w->size - 1) {
        const double begun = MPI_Wtime();

        before = counter_read(taken);
        for (int i = 0; i < ALONE; i++)
            add_one(w, 0);
        TL_CHECK(tl_slow() || MPI_Wtime() - begun < 0.75e-6 * ASLEEP_USEC, "it took %.3f s",
                 MPI_Wtime() - begun);
        TL_CHECK(counter_read(taken) - before == ALONE, "%llu of %d locks by the adapter",
                 counter_read(taken) - before, ALONE);
    }
    MPI_Barrier(w->comm);
}

/** All ranks at the same time, each target in turn; `near`: the target's own among them. */
static void test_together(const tl_window_t *w, int target, bool near, long expected)
{
    tl_rng_t rng = tl_rng(tl_seed(), (uint64_t)(w->rank + 100 * target));
    const bool takes_part = near || w->rank != target;

    for (int i = 0; i < rounds() && takes_part; i++) {
        add_one(w, target);
        for (int64_t n = tl_range(&rng, 0, 2); n > 0; n--)
            read_twice(w, target, tl_range(&rng, 0, 5) == 0);
        if (tl_range(&rng, 0, 20) == 0)
            usleep(300);
    }
    MPI_Barrier(w->comm);
    if (w->rank == target) {
        TL_MPI(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, w->win));
        for (int i = 0; i < WORDS; i++) {
            const long value = ((const long *)w->base)[i];

            TL_CHECK(value == expected, "word %d is %ld, not %ld", i, value, expected);
        }
        TL_MPI(MPI_Win_unlock(target, w->win));
    }
    MPI_Barrier(w->comm);
}

int main(int argc, char **argv)
{
    int index, provided;

    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    tl_need_ranks(2, 64);
    TL_MPI(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    if (!counter_find("osc_nicstride_adapter_locks", &index))
        tl_skip("the component is not there");
    taken = counter_begin("osc_nicstride_adapter_locks");
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind)) {
        tl_window_t w = tl_win_make(kind, WORDS * (MPI_Aint)sizeof(long), sizeof(long),
                                    MPI_COMM_WORLD, MPI_INFO_NULL);

        test_alone(&w);
        for (int target = 0; target < w.size; target++) {
            const long before = target == 0 ? 2 * ALONE : 0;

            test_together(&w, target, false, before + (long)(w.size - 1) * rounds());
            test_together(&w, target, true, before + (long)(2 * w.size - 1) * rounds());
        }
        tl_win_free(&w);
    }
    counter_end(taken);
    TL_MPI(MPI_T_finalize());
    return tl_finish();
}
