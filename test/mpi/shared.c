/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 1-4 */
/* windows: shared */
/**
 * @file
 * MPI_Win_allocate_shared: what MPI_Win_shared_query says of segments, contiguous or not, of
 * different sizes and units; loads and stores in the memory of others; and these mixed with
 * one-sided calls on the same memory.
 */
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "test/mpi/testlib.h"

#define LONGS 512
#define BYTES ((MPI_Aint)(LONGS * sizeof(long)))

/** The segment of a rank, as longs. */
static long *segment(const tl_window_t *w, int rank)
{
    MPI_Aint bytes;
    int unit;
    void *base = NULL;

    TL_MPI(MPI_Win_shared_query(w->win, rank, &bytes, &unit, &base));
    TL_CHECK(bytes == w->peer_bytes[rank], "size of %d is %ld, not %ld", rank, (long)bytes,
             (long)w->peer_bytes[rank]);
    TL_CHECK(unit == w->peer_unit[rank], "unit of %d is %d", rank, unit);
    return base;
}

/** MPI_PROC_NULL stands for the first rank that has any memory. */
static void query_lowest(const tl_window_t *w)
{
    MPI_Aint bytes = -1;
    void *base = NULL;
    int unit, lowest = 0;

    while (lowest < w->size && w->peer_bytes[lowest] == 0)
        lowest++;
    TL_MPI(MPI_Win_shared_query(w->win, MPI_PROC_NULL, &bytes, &unit, &base));
    if (lowest < w->size) {
        TL_CHECK(bytes == w->peer_bytes[lowest], "lowest has %ld bytes", (long)bytes);
        TL_CHECK(unit == w->peer_unit[lowest], "lowest has unit %d", unit);
        TL_CHECK(base == segment(w, lowest), "lowest is not rank %d", lowest);
    } else {
        TL_CHECK(bytes == 0, "a window of nothing has %ld bytes", (long)bytes);
    }
}

/** Segments that may lie apart have no place where they are empty. (Elsewhere this is not so on one
 *  rank.) */
static void query_empty(const tl_window_t *w)
{
    for (int r = 0; r < w->size; r++) {
        TL_CHECK(w->size == 1 || (segment(w, r) == NULL) == (w->peer_bytes[r] == 0),
                 "segment of %d with %ld bytes is at %p", r, (long)w->peer_bytes[r],
                 (void *)segment(w, r));
    }
    TL_CHECK(w->size == 1 || (w->base == NULL) == (w->bytes == 0), "my own is at %p",
             (void *)w->base);
}

/** Segments follow each other, unless the program allows otherwise. */
static void query_contiguous(const tl_window_t *w)
{
    char *next = NULL;

    for (int r = 0; r < w->size; r++) {
        char *base = (char *)segment(w, r);

        TL_CHECK(base != NULL, "segment of %d is nowhere", r);
        if (w->peer_bytes[r] > 0) {
            TL_CHECK(next == NULL || base == next, "segment of %d is apart", r);
            next = base + w->peer_bytes[r];
        }
    }
}

static tl_window_t make(MPI_Aint bytes, int unit, bool apart)
{
    MPI_Info info;

    MPI_Info_create(&info);
    MPI_Info_set(info, "alloc_shared_noncontig", apart ? "true" : "false");
    tl_window_t w = tl_win_make(TL_SHARED, bytes, unit, MPI_COMM_WORLD, info);

    MPI_Info_free(&info);
    TL_CHECK(bytes == 0 || segment(&w, w.rank) == (long *)(void *)w.base, "my own segment");
    return w;
}

/** Sizes and units that differ, some ranks without memory, all without. */
static void query(bool apart)
{
    int rank = tl_rank(), last = tl_size() - 1;
    MPI_Aint sizes[] = {BYTES, rank % 2 * 4000, 24 * rank, rank == last ? 8 : 0, 0};

    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        tl_window_t w = make(sizes[i], 1 << rank, apart);
        int model = -1, found = 0, *model_p, *flavor_p;

        query_lowest(&w);
        if (apart)
            query_empty(&w);
        else
            query_contiguous(&w);
        TL_MPI(MPI_Win_get_attr(w.win, MPI_WIN_CREATE_FLAVOR, &flavor_p, &found));
        TL_CHECK(found && *flavor_p == MPI_WIN_FLAVOR_SHARED, "flavor");
        TL_MPI(MPI_Win_get_attr(w.win, MPI_WIN_MODEL, &model_p, &found));
        model = found ? *model_p : -1;
        TL_CHECK(model == MPI_WIN_UNIFIED, "memory model %d", model);
        if (w.bytes > 0)
            memset(segment(&w, w.rank), 1, (size_t)w.bytes);
        tl_win_free(&w);
    }
}

/** Makes stores of everybody visible to everybody. */
static void meet(const tl_window_t *w)
{
    TL_MPI(MPI_Win_sync(w->win));
    MPI_Barrier(w->comm);
    TL_MPI(MPI_Win_sync(w->win));
}

/** Every rank stores into every segment, then loads from every segment. */
static void load_and_store(const tl_window_t *w)
{
    long wrong = 0;

    for (int r = 0; r < w->size; r++) {
        long *memory = segment(w, r);

        for (int i = w->rank; i < LONGS; i += w->size)
            memory[i] = 1000 * r + i;
    }
    meet(w);
    for (int r = 0; r < w->size; r++) {
        const long *memory = segment(w, r);

        for (int i = 0; i < LONGS; i++)
            wrong += memory[i] != 1000 * r + i;
    }
    TL_CHECK(wrong == 0, "%ld loads wrong", wrong);
    meet(w);
}

/** What is put is loaded, what is stored is got, by third parties too. */
static void mix(const tl_window_t *w)
{
    int next = (w->rank + 1) % w->size, after = (w->rank + 2) % w->size;
    int before = (w->rank + w->size - 1) % w->size;
    long put[] = {7000 + w->rank, 8000 + w->rank}, got = 0;

    TL_MPI(MPI_Put(put, 2, MPI_LONG, next, tl_disp(w, next, 16), 2, MPI_LONG, w->win));
    TL_MPI(MPI_Win_flush(next, w->win));
    segment(w, after)[5] = 9000 + w->rank;
    meet(w);
    TL_CHECK(segment(w, w->rank)[2] == 7000 + before, "put not loaded by the target");
    TL_CHECK(segment(w, after)[3] == 8000 + next, "put of %d not loaded by another", next);
    int writer = (next + w->size - 2 % w->size) % w->size;

    TL_MPI(MPI_Get(&got, 1, MPI_LONG, next, tl_disp(w, next, 40), 1, MPI_LONG, w->win));
    TL_MPI(MPI_Win_flush(next, w->win));
    TL_CHECK(got == 9000 + writer, "got %ld of what %d stored", got, writer);
    meet(w);
}

/** Accumulates of all to one place, loaded afterwards. */
static void accumulate_and_load(const tl_window_t *w)
{
    enum { TIMES = 100 };
    long one = 1, old;

    for (int i = 0; i < TIMES; i++) {
        int target = i % w->size;

        TL_MPI(MPI_Fetch_and_op(&one, &old, MPI_LONG, target, tl_disp(w, target, 8 * 100), MPI_SUM,
                                w->win));
        TL_MPI(MPI_Win_flush_local(target, w->win));
        TL_MPI(MPI_Accumulate(&one, 1, MPI_LONG, target, tl_disp(w, target, 8 * 101), 1, MPI_LONG,
                              MPI_SUM, w->win));
    }
    TL_MPI(MPI_Win_flush_all(w->win));
    meet(w);
    for (int r = 0; r < w->size; r++) {
        long rounds = TIMES / w->size + (r < TIMES % w->size), want = rounds * w->size;

        TL_CHECK(segment(w, r)[100] == 1000 * r + 100 + want, "fetch_and_op on %d", r);
        TL_CHECK(segment(w, r)[101] == 1000 * r + 101 + want, "accumulate on %d", r);
    }
    meet(w);
}

/** A token goes round by stores alone: each waits in MPI_Win_sync until it has it. */
static void pass_token(const tl_window_t *w)
{
    enum { ROUNDS = 50 };
    int next = (w->rank + 1) % w->size;
    volatile long *mine = &segment(w, w->rank)[200], *theirs = &segment(w, next)[200];

    *mine = 0;
    meet(w);
    for (long round = 1; round <= ROUNDS; round++) {
        if (w->rank == 0)
            *theirs = round;
        while (*mine != round) {
            TL_MPI(MPI_Win_sync(w->win));
            sched_yield();
        }
        if (w->rank != 0)
            *theirs = round;
        TL_MPI(MPI_Win_sync(w->win));
    }
    TL_CHECK(*mine == ROUNDS, "token");
    meet(w);
}

static void access_memory(bool apart)
{
    tl_window_t w = make(BYTES, 8, apart);

    TL_MPI(MPI_Win_lock_all(MPI_MODE_NOCHECK, w.win));
    load_and_store(&w);
    accumulate_and_load(&w);
    mix(&w);
    pass_token(&w);
    TL_MPI(MPI_Win_unlock_all(w.win));
    tl_win_free(&w);
}

/** Atomic operations of the processor and of MPI by turns on one counter, all ranks alike. */
static void add_by_turns(void)
{
    enum { TIMES = 20 };
    tl_window_t w = make(sizeof(long), 1, false);
    long *counter = segment(&w, 0), one = 1;

    if (w.rank == 0)
        *counter = 0;
    for (int i = 0; i < TIMES; i++) {
        TL_MPI(MPI_Win_fence(0, w.win));
        TL_MPI(
            MPI_Accumulate(&one, 1, MPI_LONG, 0, tl_disp(&w, 0, 0), 1, MPI_LONG, MPI_SUM, w.win));
        TL_MPI(MPI_Win_fence(0, w.win));
        __atomic_fetch_add(counter, 1, __ATOMIC_SEQ_CST);
    }
    TL_MPI(MPI_Win_fence(0, w.win));
    TL_CHECK(*counter == 2L * TIMES * w.size, "%ld, not %ld", *counter, 2L * TIMES * w.size);
    TL_MPI(MPI_Win_fence(0, w.win));
    tl_win_free(&w);
}

int main(int argc, char **argv)
{
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    if (tl_next_kind(TL_DYNAMIC) != TL_SHARED)
        tl_skip("no shared windows here");
    query(false);
    query(true);
    access_memory(false);
    access_memory(true);
    /* Rank 0 alone says that they may lie apart. */
    access_memory(tl_rank() == 0);
    add_by_turns();
    return tl_finish();
}
