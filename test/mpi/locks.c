/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-4 */
/* windows: create allocate dynamic shared */
/* arguments: here */
/* arguments: apart */
/**
 * @file
 * Passive target locks: mutual exclusion shown by read-modify-write that is not atomic of itself,
 * readers beside writers, MPI_Win_lock_all beside processes that hold locks of several targets at a
 * time, where nobody waits for ever, and nobody sees what is done under an exclusive lock; a writer
 * among readers that never pause, NOCHECK, locks around nothing, and locks on oneself. On a node,
 * and where each process is one of its own (apart), so that locks are asked for by message.
 */
#include "test/mpi/counter.h"
#include "test/mpi/testlib.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/** Epochs in which a counter is looked at. */
enum { TIMES = 10 };
/** Asked for: processes of one host are nodes of their own, and ask for locks by message. */
static bool apart;

/** Seconds after which a test that waits for others gives up and fails. */
#define PATIENCE TL_PATIENCE

static tl_window_t make_longs(tl_kind_t kind, int longs)
{
    return tl_win_make(kind, (MPI_Aint)longs * (MPI_Aint)sizeof(long), sizeof(long), MPI_COMM_WORLD,
                       MPI_INFO_NULL);
}

static MPI_Aint at(const tl_window_t *w, int target, int index)
{
    return tl_disp(w, target, (MPI_Aint)index * (MPI_Aint)sizeof(long));
}

static void put_long(const tl_window_t *w, const long *value, int target, int index)
{
    TL_MPI(MPI_Put(value, 1, MPI_LONG, target, at(w, target, index), 1, MPI_LONG, w->win));
}

/** Gets one long within an epoch that is open. */
static long get_long(const tl_window_t *w, int target, int index)
{
    long value = -1;

    TL_MPI(MPI_Get(&value, 1, MPI_LONG, target, at(w, target, index), 1, MPI_LONG, w->win));
    TL_MPI(MPI_Win_flush(target, w->win));
    return value;
}

/** My own memory as a lock on it shows it. */
static long load_long(const tl_window_t *w, int index)
{
    TL_MPI(MPI_Win_lock(MPI_LOCK_SHARED, w->rank, 0, w->win));
    long value = ((const long *)w->base)[index];
    TL_MPI(MPI_Win_unlock(w->rank, w->win));
    return value;
}

/* ---- exclusion, and no circles ---- */

static void start_get(const tl_window_t *w, long *value, int target, int index)
{
    TL_MPI(MPI_Get(value, 1, MPI_LONG, target, at(w, target, index), 1, MPI_LONG, w->win));
}

/* Two cells that are equal but under an exclusive lock, and one that counts. */
enum { LEFT, RIGHT, COUNT, CELLS };

/** Under an exclusive lock. */
static void update(const tl_window_t *w, int t)
{
    long left = -1, right = -2, count = -1;

    start_get(w, &left, t, LEFT);
    start_get(w, &right, t, RIGHT);
    start_get(w, &count, t, COUNT);
    TL_MPI(MPI_Win_flush(t, w->win));
    TL_CHECK(left == right, "%ld and %ld at %d", left, right, t);
    left++;
    right++;
    count++;
    put_long(w, &left, t, LEFT);
    TL_MPI(MPI_Win_flush(t, w->win));
    put_long(w, &count, t, COUNT);
    put_long(w, &right, t, RIGHT);
    TL_MPI(MPI_Win_flush_local(t, w->win));
}

/** Under a shared one. */
static void look(const tl_window_t *w, int t)
{
    long left = -1, right = -2;

    start_get(w, &left, t, LEFT);
    TL_MPI(MPI_Win_flush(t, w->win));
    start_get(w, &right, t, RIGHT);
    TL_MPI(MPI_Win_flush(t, w->win));
    TL_CHECK(left == right, "%ld and %ld at %d", left, right, t);
}

/** `one` holds the lock of `a`, and then asks for that of `b`; `all` is in MPI_Win_lock_all, and
 *  then accesses `a`. Whoever comes first. */
static void pair(const tl_window_t *w, int one, int all, int a, int b)
{
    for (int first = 0; first < 2; first++) {
        MPI_Barrier(w->comm);
        if (w->rank == one) {
            usleep(first == 0 ? 0 : 4000);
            TL_MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, a, 0, w->win));
            update(w, a);
            TL_MPI(MPI_Win_flush(a, w->win));
            usleep(8000);
            TL_MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, b, 0, w->win));
            update(w, b);
            TL_MPI(MPI_Win_unlock(b, w->win));
            TL_MPI(MPI_Win_unlock(a, w->win));
        }
        if (w->rank == all) {
            usleep(first == 0 ? 4000 : 0);
            TL_MPI(MPI_Win_lock_all(0, w->win));
            usleep(8000);
            look(w, a);
            look(w, b);
            TL_MPI(MPI_Win_unlock_all(w->win));
        }
    }
}

static void test_pairs(const tl_window_t *w)
{
    for (int one = 0; one < w->size; one++) {
        const int all = (one + (w->size + 1) / 2) % w->size;

        pair(w, one, all, one, all);
        pair(w, one, all, all, one);
    }
}

/** A shared lock beside MPI_Win_lock_all of others, which last until it is given back. */
static void test_beside_all(const tl_window_t *w)
{
    MPI_Barrier(w->comm);
    if (w->rank != 0)
        TL_MPI(MPI_Win_lock_all(0, w->win));
    MPI_Barrier(w->comm);
    if (w->rank == 0) {
        for (int t = 0; t < w->size; t++)
            TL_MPI(MPI_Win_lock(MPI_LOCK_SHARED, t, 0, w->win));
        for (int t = 0; t < w->size; t++) {
            look(w, t);
            TL_MPI(MPI_Win_unlock(t, w->win));
        }
    }
    MPI_Barrier(w->comm);
    if (w->rank != 0)
        TL_MPI(MPI_Win_unlock_all(w->win));
    MPI_Barrier(w->comm);
}

/** Locks of several targets, taken in ascending order, some shared. */
static void nest(const tl_window_t *w, tl_rng_t *r, long *updates)
{
    int type[64] = {0};

    for (int t = 0; t < w->size; t++) {
        if (tl_range(r, 0, 1) == 0)
            continue;
        type[t] = tl_range(r, 0, 1) == 0 ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE;
        TL_MPI(MPI_Win_lock(type[t], t, 0, w->win));
        if (type[t] == MPI_LOCK_EXCLUSIVE) {
            update(w, t);
            ++*updates;
        } else {
            look(w, t);
        }
    }
    for (int k = 0, t = (int)tl_range(r, 0, w->size - 1); k < w->size; k++, t++)
        if (type[t % w->size] != 0)
            TL_MPI(MPI_Win_unlock(t % w->size, w->win));
}

/** Its own memory by loads and stores. */
static void update_own(const tl_window_t *w)
{
    volatile long *mine = (volatile long *)(void *)w->base;

    TL_MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, w->rank, 0, w->win));
    TL_CHECK(mine[LEFT] == mine[RIGHT], "%ld and %ld here", mine[LEFT], mine[RIGHT]);
    for (int cell = LEFT; cell < CELLS; cell++)
        mine[cell] = mine[cell] + 1;
    TL_MPI(MPI_Win_unlock(w->rank, w->win));
}

static void test_random(const tl_window_t *w)
{
    tl_rng_t r = tl_rng(tl_seed(), (uint64_t)w->rank);
    long updates = 0, all = 0, mine, sum = 0, before = 0;

    MPI_Barrier(w->comm);
    mine = load_long(w, COUNT);
    MPI_Allreduce(&mine, &before, 1, MPI_LONG, MPI_SUM, w->comm);
    for (int i = 0; i < (tl_slow() ? 20 : 60) * tl_factor(); i++) {
        if (tl_range(&r, 0, 4) == 0) {
            update_own(w);
            updates++;
            continue;
        }
        if (tl_range(&r, 0, 2) > 0) {
            nest(w, &r, &updates);
            continue;
        }
        TL_MPI(MPI_Win_lock_all(0, w->win));
        for (int64_t k = tl_range(&r, 0, 3); k > 0; k--)
            look(w, (int)tl_range(&r, 0, w->size - 1));
        TL_MPI(MPI_Win_unlock_all(w->win));
    }
    MPI_Barrier(w->comm);
    mine = load_long(w, COUNT);
    MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, w->comm);
    MPI_Allreduce(&updates, &all, 1, MPI_LONG, MPI_SUM, w->comm);
    TL_CHECK(sum == before + all, "%ld, not %ld", sum, before + all);
    MPI_Barrier(w->comm);
}

/** Is each process a node of its own, here or by a parameter? */
static bool alone(void)
{
    const char *node = getenv("OMPI_MCA_osc_nicstride_node");

    return node != NULL && strcmp(node, "0") == 0;
}

/** Who only ever calls MPI_Win_lock_all, or never, asks for the window's lock once. But that where
 *  each process is a node of its own and they can wake each other, only rank 0 stays in it. */
static void test_asked(tl_kind_t kind, bool all)
{
    tl_window_t w = make_longs(kind, CELLS);
    counter_t *asked = counter_begin("osc_nicstride_window_locks");

    for (int i = 0; i < 10; i++) {
        const int t = (w.rank + i) % w.size;

        if (all)
            TL_MPI(MPI_Win_lock_all(0, w.win));
        else
            TL_MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, t, 0, w.win));
        if (all)
            TL_MPI(MPI_Win_unlock_all(w.win));
        else
            TL_MPI(MPI_Win_unlock(t, w.win));
    }
    TL_CHECK(asked == NULL || counter_read(asked) == 1 ||
                 (alone() && w.rank > 0 && counter_read(asked) == 10),
             "%llu times", counter_read(asked));
    counter_end(asked);
    tl_win_free(&w);
}

static void test_circles(tl_kind_t kind)
{
    tl_window_t w = make_longs(kind, CELLS);

    for (int i = 0; i < CELLS; i++)
        ((long *)w.base)[i] = 0;
    MPI_Barrier(w.comm);
    test_pairs(&w);
    test_beside_all(&w);
    test_random(&w);
    tl_win_free(&w);
    if (kind != TL_SHARED) {
        test_asked(kind, true);
        test_asked(kind, false);
    }
}

/* ---- shared locks ---- */

/** All hold a shared lock on rank 0 at the same time, or the barrier would never return. */
static void test_shared_together(tl_kind_t kind)
{
    tl_window_t w = make_longs(kind, tl_size());
    long value = 3 + w.rank;

    for (int all = 0; all < 2; all++) {
        TL_MPI(all ? MPI_Win_lock_all(0, w.win) : MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, w.win));
        put_long(&w, &value, 0, w.rank);
        TL_MPI(MPI_Win_flush(0, w.win));
        MPI_Barrier(w.comm);
        for (int r = 0; r < w.size; r++) {
            long got = get_long(&w, 0, r);

            TL_CHECK(got == 3 + r, "%ld from %d", got, r);
        }
        TL_MPI(all ? MPI_Win_unlock_all(w.win) : MPI_Win_unlock(0, w.win));
    }
    tl_win_free(&w);
}

/* ---- fairness ---- */

/**
 * Readers take a shared lock on rank 0 again and again, without a pause, until they see what the
 * last rank writes under an exclusive lock: where readers overtake a waiting writer for ever, they
 * never see it.
 */
static void test_writer_gets_in(tl_kind_t kind)
{
    tl_window_t w = make_longs(kind, 1);
    double begin;
    long seen = 0, one = 1;

    for (int lock_all = 0; lock_all < 2; lock_all++, one++) {
        MPI_Barrier(w.comm);
        begin = MPI_Wtime();
        if (w.rank == w.size - 1) {
            usleep(5000);
            TL_MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, w.win));
            put_long(&w, &one, 0, 0);
            TL_MPI(MPI_Win_unlock(0, w.win));
            continue;
        }
        while (seen != one && MPI_Wtime() - begin < PATIENCE) {
            TL_MPI(lock_all ? MPI_Win_lock_all(0, w.win)
                            : MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, w.win));
            seen = get_long(&w, 0, 0);
            usleep(200);
            TL_MPI(lock_all ? MPI_Win_unlock_all(w.win) : MPI_Win_unlock(0, w.win));
        }
        TL_CHECK(seen == one, "the writer starved beside %s", lock_all ? "lock_all" : "lock");
    }
    tl_win_free(&w);
}

/** Locks of two windows on the same ranks have nothing to do with each other. */
static void test_two_windows(tl_kind_t kind)
{
    tl_window_t a = make_longs(kind, 1), b = make_longs(kind, 1);
    int next = (a.rank + 1) % a.size, before = (a.rank + a.size - 1) % a.size;
    long value = 7 + a.rank;

    TL_MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, a.win));
    put_long(&a, &value, next, 0);
    TL_MPI(MPI_Win_flush(next, a.win));
    MPI_Barrier(a.comm);
    TL_MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, b.win));
    put_long(&b, &value, next, 0);
    TL_MPI(MPI_Win_unlock(next, b.win));
    MPI_Barrier(a.comm);
    TL_MPI(MPI_Win_unlock(next, a.win));
    MPI_Barrier(a.comm);
    TL_CHECK(load_long(&a, 0) == 7 + before, "a: %ld", load_long(&a, 0));
    TL_CHECK(load_long(&b, 0) == 7 + before, "b: %ld", load_long(&b, 0));
    tl_win_free(&b);
    tl_win_free(&a);
}

/* ---- locks of little ---- */

/** Adds one to a long by get and put. */
static void bump(const tl_window_t *w, int target, int index)
{
    TL_MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, w->win));
    long value = get_long(w, target, index) + 1;
    put_long(w, &value, target, index);
    TL_MPI(MPI_Win_unlock(target, w->win));
}

/** Locks that nothing is done under, also on ranks without memory, and by turns with lock_all. */
static void test_nothing(tl_kind_t kind)
{
    tl_window_t w = tl_win_make(kind, tl_rank() % 2 * 64, 1, MPI_COMM_WORLD, MPI_INFO_NULL);

    for (int i = 0; i < (tl_slow() ? 60 : 200); i++) {
        int target = (i + w.rank) % w.size;

        TL_MPI(MPI_Win_lock(i % 3 ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, target, 0, w.win));
        TL_MPI(MPI_Win_unlock(target, w.win));
        if (i % 10 == 0) {
            TL_MPI(MPI_Win_lock_all(0, w.win));
            TL_MPI(MPI_Win_unlock_all(w.win));
        }
    }
    tl_win_free(&w);
}

/** NOCHECK where no conflicting lock is held: each rank has its own target at a time. */
static void test_nocheck(tl_kind_t kind)
{
    tl_window_t w = make_longs(kind, tl_size());

    for (int i = 0; i < w.size; i++) {
        int target = (w.rank + i) % w.size;
        long value = 40 + w.rank;

        TL_MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, MPI_MODE_NOCHECK, w.win));
        put_long(&w, &value, target, w.rank);
        TL_MPI(MPI_Win_unlock(target, w.win));
        MPI_Barrier(w.comm);
    }
    TL_MPI(MPI_Win_lock_all(MPI_MODE_NOCHECK, w.win));
    for (int t = 0; t < w.size; t++) {
        for (int r = 0; r < w.size; r++) {
            long got = get_long(&w, t, r);

            TL_CHECK(got == 40 + r, "%ld at %d from %d", got, t, r);
        }
    }
    TL_MPI(MPI_Win_unlock_all(w.win));
    MPI_Barrier(w.comm);
    bump(&w, (w.rank + 1) % w.size, 0);
    MPI_Barrier(w.comm);
    TL_CHECK(load_long(&w, 0) == 41, "after NOCHECK: %ld", load_long(&w, 0));
    tl_win_free(&w);
}

/** What an unlock completed is seen at the target as soon as it hears of it. */
static void test_visible(tl_kind_t kind)
{
    tl_window_t w = make_longs(kind, 1);
    int next = (w.rank + 1) % w.size, before = (w.rank + w.size - 1) % w.size;

    for (long i = 1; i <= 20; i++) {
        long told = -1;

        TL_MPI(MPI_Win_lock(i % 2 ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, next, 0, w.win));
        put_long(&w, &i, next, 0);
        TL_MPI(MPI_Win_unlock(next, w.win));
        MPI_Sendrecv(&i, 1, MPI_LONG, next, 0, &told, 1, MPI_LONG, before, 0, w.comm,
                     MPI_STATUS_IGNORE);
        TL_CHECK(told == i && load_long(&w, 0) == i, "%ld, told %ld", load_long(&w, 0), told);
        MPI_Barrier(w.comm);
    }
    tl_win_free(&w);
}

/* ---- locks by message ---- */

/** Those of the locks of a target on another node, so many times, with one operation each. */
static unsigned long long asked_with(const tl_window_t *w, int n, const counter_t *together)
{
    const unsigned long long before = counter_read(together);
    const int next = (w->rank + 1) % w->size;
    long *data = tl_alloc((size_t)n * sizeof(long));

    for (int i = 0; i < TIMES; i++) {
        TL_MPI(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, w->win));
        TL_MPI(
            MPI_Accumulate(data, n, MPI_LONG, next, at(w, next, 0), n, MPI_LONG, MPI_SUM, w->win));
        TL_MPI(MPI_Win_unlock(next, w->win));
        TL_MPI(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, w->win));
        TL_MPI(MPI_Win_unlock(next, w->win));
    }
    free(data);
    return counter_read(together) - before;
}

/** The first operation goes with the request where it is short, and no other. */
static void test_counted(tl_kind_t kind)
{
    enum { MANY = 20000 };
    tl_window_t w = make_longs(kind, MANY);
    counter_t *together = counter_begin("osc_nicstride_locks_together");
    const char *method = getenv("OMPI_MCA_osc_nicstride_method");

    if (together != NULL && (method == NULL || strcmp(method, "pack") == 0)) {
        const unsigned long long few = asked_with(&w, 1, together),
                                 many = asked_with(&w, MANY, together);

        TL_CHECK(few == TIMES && many == 0, "%llu with short ones, %llu with long ones", few, many);
    }
    counter_end(together);
    MPI_Barrier(w.comm);
    tl_win_free(&w);
}

/** What the target refuses is told by the unlock, and the lock is free then. */
static void test_error(void)
{
    tl_window_t w = make_longs(TL_DYNAMIC, 1);
    const int next = (w.rank + 1) % w.size;
    const long value = 1;

    TL_MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, w.win));
    TL_MPI(MPI_Put(&value, 1, MPI_LONG, next, 64, 1, MPI_LONG, w.win));
    TL_CHECK(MPI_Win_unlock(next, w.win) != MPI_SUCCESS, "no error");
    MPI_Barrier(w.comm);
    bump(&w, next, 0);
    MPI_Barrier(w.comm);
    TL_CHECK(load_long(&w, 0) == 1, "%ld", load_long(&w, 0));
    tl_win_free(&w);
}

int main(int argc, char **argv)
{
    bool shared = false;

    for (int i = 1; i < argc; i++) {
        apart = apart || (strcmp(argv[i], "apart") == 0 && tl_launched_here());
        shared = shared || strcmp(argv[i], "shared") == 0;
    }
    apart = apart && !shared;
    if (apart)
        setenv("OMPI_MCA_osc_nicstride_node", "0", 1);
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind)) {
        test_circles(kind);
        test_shared_together(kind);
        test_writer_gets_in(kind);
        test_two_windows(kind);
        test_nothing(kind);
        test_nocheck(kind);
        test_visible(kind);
        if (apart && tl_size() > 1)
            test_counted(kind);
        if (apart && tl_size() > 1 && kind == TL_DYNAMIC)
            test_error();
    }
    return tl_finish();
}
