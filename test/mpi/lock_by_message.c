/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-4 */
/* windows: create allocate dynamic */
/**
 * @file
 * Locks of targets on other nodes, which are asked for by message, the first operation with them:
 * free locks and busy ones, locks on several targets and windows at once. On one host each process
 * is made a node of its own. What is done under them: operations_apart.
 */
#include "test/mpi/testlib.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test/mpi/counter.h"

enum { CELLS = 64, MANY = 40000 };

static MPI_Aint at(const tl_window_t *w, int target, int index)
{
    return tl_disp(w, target, (MPI_Aint)index * (MPI_Aint)sizeof(long));
}

static tl_window_t make(tl_kind_t kind, int longs)
{
    return tl_win_make(kind, (MPI_Aint)longs * (MPI_Aint)sizeof(long), sizeof(long), MPI_COMM_WORLD,
                       MPI_INFO_NULL);
}

static void lock(const tl_window_t *w, int type, int target)
{
    TL_MPI(MPI_Win_lock(type, target, 0, w->win));
}

static void unlock(const tl_window_t *w, int target)
{
    TL_MPI(MPI_Win_unlock(target, w->win));
}

static void put(const tl_window_t *w, const long *value, int target, int index)
{
    TL_MPI(MPI_Put(value, 1, MPI_LONG, target, at(w, target, index), 1, MPI_LONG, w->win));
}

static void get(const tl_window_t *w, long *value, int target, int index)
{
    TL_MPI(MPI_Get(value, 1, MPI_LONG, target, at(w, target, index), 1, MPI_LONG, w->win));
}

static void add(const tl_window_t *w, const long *value, int target, int index)
{
    TL_MPI(MPI_Accumulate(value, 1, MPI_LONG, target, at(w, target, index), 1, MPI_LONG, MPI_SUM,
                          w->win));
}

static void flush(const tl_window_t *w, int target)
{
    TL_MPI(MPI_Win_flush(target, w->win));
}

/** My own memory as my own lock shows it. */
static long own(const tl_window_t *w, int index)
{
    lock(w, MPI_LOCK_SHARED, w->rank);
    const long value = ((const volatile long *)w->base)[index];
    unlock(w, w->rank);
    return value;
}

static int next(const tl_window_t *w)
{
    return (w->rank + 1) % w->size;
}

static int previous(const tl_window_t *w)
{
    return (w->rank + w->size - 1) % w->size;
}

/** Tells the next rank to look at what was put there, and looks at what the previous one put. */
static void check_own(const tl_window_t *w, int index, long want)
{
    long got;

    MPI_Sendrecv(NULL, 0, MPI_BYTE, next(w), 0, NULL, 0, MPI_BYTE, previous(w), 0, w->comm,
                 MPI_STATUS_IGNORE);
    got = own(w, index);
    TL_CHECK(got == want, "[%d] is %ld, not %ld", index, got, want);
    MPI_Barrier(w->comm);
}

/** The first operation goes with the request where it is short, and no other. */
static void test_counted(const tl_window_t *w)
{
    const int t = next(w), rounds = 10;
    /* Both are collective. */
    const bool one_host = tl_one_host(), same_host = tl_same_host(t);
    const bool far = w->kind != TL_SHARED && (!same_host || one_host);
    const char *method = getenv("OMPI_MCA_osc_nicstride_method");
    const long value = 3;
    long got, *data = tl_alloc(MANY * sizeof(long));
    counter_t *together = counter_begin("osc_nicstride_locks_together");
    unsigned long long n;

    memset(data, 0, MANY * sizeof(long));
    for (int i = 0; i < rounds; i++) {
        lock(w, MPI_LOCK_SHARED, t);
        put(w, &value, t, i);
        unlock(w, t);
        lock(w, MPI_LOCK_EXCLUSIVE, t);
        get(w, &got, t, i);
        put(w, &value, t, i);
        unlock(w, t);
    }
    n = counter_read(together);
    if (together != NULL && (method == NULL || strcmp(method, "pack") == 0))
        TL_CHECK(n == (far ? 2 * (unsigned)rounds : 0), "%llu", n);
    for (int i = 0; i < rounds; i++) {
        lock(w, MPI_LOCK_SHARED, t);
        TL_MPI(
            MPI_Accumulate(data, MANY, MPI_LONG, t, at(w, t, 0), MANY, MPI_LONG, MPI_SUM, w->win));
        unlock(w, t);
        lock(w, MPI_LOCK_SHARED, t);
        unlock(w, t);
    }
    TL_CHECK(counter_read(together) == n, "%llu, not %llu", counter_read(together), n);
    counter_end(together);
    free(data);
    MPI_Barrier(w->comm);
}

/* ---- several at once ------------------------------------------------------------------------- */

/** Exclusive locks of two targets in two windows, asked for in one order by all and used in the
 *  other, which must not end in a circle. */
static void test_order(const tl_window_t *v, const tl_window_t *w)
{
    const int rounds = 20 * tl_factor();
    const long one = 1;

    for (int i = 0; i < rounds; i++) {
        lock(v, MPI_LOCK_EXCLUSIVE, 0);
        lock(w, MPI_LOCK_EXCLUSIVE, 1);
        for (int k = 0; k < 2; k++)
            add(w, &one, 1, CELLS - 1);
        for (int k = 0; k < 2; k++)
            add(v, &one, 0, CELLS - 1);
        unlock(i % 2 == 0 ? v : w, i % 2);
        unlock(i % 2 == 0 ? w : v, 1 - i % 2);
    }
    MPI_Barrier(w->comm);
    if (w->rank < 2) {
        const long got = own(w->rank == 0 ? v : w, CELLS - 1), want = 2L * rounds * w->size;
        TL_CHECK(got == want, "%ld, not %ld", got, want);
    }
    MPI_Barrier(w->comm);
}

/** MPI_Win_lock_all, with targets that each rank uses in an order of its own, beside exclusive
 * locks of single ones, which must not end in a circle either. */
static void test_all_orders(const tl_window_t *w)
{
    const int rounds = 60 * tl_factor();
    const long one = 1;
    long mine = 0, sum = 0, added = 0, all = 0;

    for (int i = 0; i < rounds; i++) {
        if ((i + w->rank) % 3 == 0) {
            const int t = (i / 3 + w->rank) % w->size;

            lock(w, MPI_LOCK_EXCLUSIVE, t);
            add(w, &one, t, CELLS - 2);
            unlock(w, t);
            added++;
            continue;
        }
        TL_MPI(MPI_Win_lock_all(0, w->win));
        for (int k = 0; k < w->size; k++, added++) {
            const int t = (w->rank + (w->rank % 2 == 0 ? k : w->size - k)) % w->size;

            add(w, &one, t, CELLS - 2);
            if ((i + k) % 2 == 0)
                flush(w, t);
        }
        if (i % 4 == 0)
            TL_MPI(MPI_Win_flush_all(w->win));
        TL_MPI(MPI_Win_unlock_all(w->win));
    }
    MPI_Barrier(w->comm);
    mine = own(w, CELLS - 2);
    MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, w->comm);
    MPI_Allreduce(&added, &all, 1, MPI_LONG, MPI_SUM, w->comm);
    TL_CHECK(sum == all, "%ld, not %ld", sum, all);
    MPI_Barrier(w->comm);
}

/* ---- busy locks ------------------------------------------------------------------------------ */

/** Everybody wants the lock of rank 0 for one operation, or to read and write in two. */
static void test_contention(const tl_window_t *w)
{
    const int rounds = 200 * tl_factor();
    const long one = 1;

    for (int i = 0; i < rounds; i++) {
        long value, old;

        lock(w, MPI_LOCK_EXCLUSIVE, 0);
        switch ((i + w->rank) % 4) {
        case 0:
            get(w, &value, 0, 0);
            flush(w, 0);
            value++;
            put(w, &value, 0, 0);
            break;
        case 1:
            TL_MPI(MPI_Fetch_and_op(&one, &old, MPI_LONG, 0, at(w, 0, 0), MPI_SUM, w->win));
            break;
        default:
            add(w, &one, 0, 0);
        }
        unlock(w, 0);
    }
    MPI_Barrier(w->comm);
    if (w->rank == 0) {
        const long got = own(w, 0), want = (long)rounds * w->size;
        TL_CHECK(got == want, "%ld, not %ld", got, want);
    }
    MPI_Barrier(w->comm);
}

/** The last rank holds the lock of rank 0 for long while the others want it for one operation. */
static void test_held_long(const tl_window_t *w)
{
    const int last = w->size - 1;
    const long one = 1, many = 1000;
    long before = -1, after = -1;

    if (w->rank == last) {
        lock(w, MPI_LOCK_EXCLUSIVE, 0);
        get(w, &before, 0, 1);
        flush(w, 0);
    }
    MPI_Barrier(w->comm);
    if (w->rank == last) {
        usleep(30000);
        get(w, &after, 0, 1);
        flush(w, 0);
        TL_CHECK(after == before, "%ld became %ld within my lock", before, after);
        after += many;
        put(w, &after, 0, 1);
        unlock(w, 0);
    } else {
        lock(w, MPI_LOCK_EXCLUSIVE, 0);
        if (w->rank % 2 == 0)
            add(w, &one, 0, 1);
        else
            TL_MPI(MPI_Fetch_and_op(&one, &after, MPI_LONG, 0, at(w, 0, 1), MPI_SUM, w->win));
        unlock(w, 0);
        TL_CHECK(w->rank % 2 == 0 || after >= many, "%ld is from before", after);
    }
    MPI_Barrier(w->comm);
    if (w->rank == 0)
        TL_CHECK(own(w, 1) == many + last, "%ld, not %ld", own(w, 1), many + last);
    MPI_Barrier(w->comm);
}

/** What the target refuses is told by the unlock, and the lock is free then. */
static void test_error(const tl_window_t *w)
{
    const int t = next(w);
    const long value = 1;

    if (w->kind == TL_DYNAMIC && t != w->rank) {
        lock(w, MPI_LOCK_EXCLUSIVE, t);
        TL_MPI(MPI_Put(&value, 1, MPI_LONG, t, 64, 1, MPI_LONG, w->win));
        TL_CHECK(MPI_Win_unlock(t, w->win) != MPI_SUCCESS, "no error");
    }
    MPI_Barrier(w->comm);
    lock(w, MPI_LOCK_EXCLUSIVE, t);
    put(w, &value, t, 2);
    unlock(w, t);
    check_own(w, 2, 1);
}

static void test_all(tl_kind_t kind)
{
    tl_window_t v = make(kind, CELLS), w = make(kind, MANY);

    test_order(&v, &w);
    test_all_orders(&v);
    test_counted(&w);
    test_error(&w);
    tl_win_free(&w);
    w = make(kind, CELLS);
    test_contention(&w);
    test_held_long(&w);
    tl_win_free(&w);
    tl_win_free(&v);
}

/** As mpirun says; before MPI is there. */
static bool alone_on_host(void)
{
    const char *all = getenv("OMPI_COMM_WORLD_SIZE"), *here = getenv("OMPI_COMM_WORLD_LOCAL_SIZE");

    return all != NULL && here != NULL && strcmp(all, here) == 0;
}

int main(int argc, char **argv)
{
    if (alone_on_host())
        setenv("OMPI_MCA_osc_nicstride_node", "0", 1);
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    tl_need_ranks(2, 64);
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind))
        test_all(kind);
    return tl_finish();
}
