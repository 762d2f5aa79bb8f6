/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-3 */
/* windows: create allocate dynamic shared */
/* arguments: say refuse */
/**
 * @file
 * What a program does wrong with a window is said, with rank, call, window and place, where
 * parameter check is 1, and refused where it is 2; what is right is not. Each case listens to what
 * its process prints.
 */
#include "test/mpi/testlib.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ORIGIN, TARGET };

/** Doubles in each rank's memory. */
#define N 64

static bool refuse;
static double from[N], to[2 * N];
static tl_window_t w;

/* ---- listening ------------------------------------------------------------------------------- */

static const char *heard = "";

/** Was each of these texts heard, up to NULL? */
static bool was_heard(const char *first, ...)
{
    bool all = true;
    va_list more;

    va_start(more, first);
    for (const char *text = first; text != NULL; text = va_arg(more, const char *))
        all = all && strstr(heard, text) != NULL;
    va_end(more);
    return all;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static MPI_Aint place(int target, int i)
{
    return tl_disp(&w, target, (MPI_Aint)(i * (int)sizeof(double)));
}

static int put(int target, int i, int n)
{
    return MPI_Put(from, n, MPI_DOUBLE, target, place(target, i), n, MPI_DOUBLE, w.win);
}

static int get(int at, int target, int i, int n)
{
    return MPI_Get(to + at, n, MPI_DOUBLE, target, place(target, i), n, MPI_DOUBLE, w.win);
}

static int sum(int target, int i, int n, MPI_Op op)
{
    return MPI_Accumulate(from, n, MPI_DOUBLE, target, place(target, i), n, MPI_DOUBLE, op, w.win);
}

static int class_of(int code)
{
    int class = MPI_SUCCESS;

    if (code != MPI_SUCCESS)
        MPI_Error_class(code, &class);
    return class;
}

/** What a call comes to that was found to conflict. */
static bool is_found(int code)
{
    return class_of(code) == (refuse ? MPI_ERR_RMA_CONFLICT : MPI_SUCCESS);
}

/* ---- synchronisation ------------------------------------------------------------------------- */

/** Of a call that may not be made now. */
static void expect_sync(int code, const char *call, const char *why)
{
    heard = tl_heard();
    TL_CHECK(class_of(code) == MPI_ERR_RMA_SYNC, "%s, %s: class %d", call, why, class_of(code));
    TL_CHECK(was_heard(call, "rank 0", "window \"halo\"", why, NULL), "%s, %s: said \"%s\"", call,
             why, heard);
}

static void test_epochs(void)
{
    MPI_Group group = tl_group_of(w.comm, TARGET);
    MPI_Request r;

    tl_listen();
    expect_sync(put(TARGET, 3, 1), "MPI_Put",
                "no access epoch is open (target rank 1, displacement");
    tl_listen();
    expect_sync(MPI_Win_unlock(TARGET, w.win), "MPI_Win_unlock", "no lock is held at that target");
    tl_listen();
    expect_sync(MPI_Win_unlock_all(w.win), "MPI_Win_unlock_all", "were not locked");
    tl_listen();
    expect_sync(MPI_Win_complete(w.win), "MPI_Win_complete",
                "no access epoch was begun by MPI_Win_start");
    tl_listen();
    expect_sync(MPI_Win_flush(TARGET, w.win), "MPI_Win_flush", "no passive-target epoch");

    TL_MPI(MPI_Win_lock(MPI_LOCK_SHARED, TARGET, 0, w.win));
    tl_listen();
    expect_sync(MPI_Win_lock(MPI_LOCK_SHARED, TARGET, 0, w.win), "MPI_Win_lock",
                "a lock is already held at that target");
    tl_listen();
    expect_sync(put(ORIGIN, 0, 1), "MPI_Put", "no lock is held at that target (target rank 0");
    tl_listen();
    expect_sync(MPI_Win_fence(0, w.win), "MPI_Win_fence", "a lock is still held");
    tl_listen();
    expect_sync(MPI_Win_lock_all(0, w.win), "MPI_Win_lock_all", "a lock is still held");
    tl_listen();
    expect_sync(MPI_Win_start(group, 0, w.win), "MPI_Win_start", "a lock is still held");
    TL_MPI(MPI_Win_unlock(TARGET, w.win));

    TL_MPI(MPI_Win_start(group, MPI_MODE_NOCHECK, w.win));
    tl_listen();
    expect_sync(put(ORIGIN, 0, 1), "MPI_Put", "that target is not in the group of MPI_Win_start");
    tl_listen();
    expect_sync(MPI_Rput(from, 1, MPI_DOUBLE, TARGET, place(TARGET, 0), 1, MPI_DOUBLE, w.win, &r),
                "MPI_Rput", "no passive-target epoch");
    TL_MPI(MPI_Win_complete(w.win));
    MPI_Group_free(&group);
}

/* ---- calls of one process -------------------------------------------------------------------- */

/** Of a call that is about the same bytes as another one. */
static void expect_found(int code, const char *call, const char *what, const char *other)
{
    heard = tl_heard();
    TL_CHECK(is_found(code), "%s, %s: class %d", call, what, class_of(code));
    TL_CHECK(was_heard(call, "rank 0: ", "window \"halo\"", what, other, NULL),
             "%s, %s, %s: said \"%s\"", call, what, other, heard);
}

static void expect_silence(int code, const char *what)
{
    heard = tl_heard();
    TL_CHECK(code == MPI_SUCCESS && heard[0] == '\0', "%s: class %d, said \"%s\"", what,
             class_of(code), heard);
}

static void flush(void)
{
    TL_MPI(MPI_Win_flush(TARGET, w.win));
}

static void test_overlaps(void)
{
    MPI_Datatype column, twice;

    TL_MPI(MPI_Type_vector(4, 1, 8, MPI_DOUBLE, &column));
    TL_MPI(MPI_Type_create_indexed_block(2, 2, (int[]){0, 1}, MPI_DOUBLE, &twice));
    TL_MPI(MPI_Type_commit(&column));
    TL_MPI(MPI_Type_commit(&twice));
    TL_MPI(MPI_Win_lock_all(0, w.win));

    tl_listen();
    TL_MPI(put(TARGET, 0, 4));
    TL_MPI(put(TARGET, 4, 4));
    TL_MPI(MPI_Put(from, 4, MPI_DOUBLE, TARGET, place(TARGET, 8), 1, column, w.win));
    expect_silence(MPI_Put(from, 4, MPI_DOUBLE, TARGET, place(TARGET, 9), 1, column, w.win),
                   "columns side by side");
    tl_listen();
    expect_found(put(TARGET, 3, 2), "MPI_Put to rank 1", "overlaps at",
                 w.kind == TL_DYNAMIC ? "MPI_Put to rank 1, addresses"
                                      : "MPI_Put to rank 1, displacement 0, bytes 0 to 31");
    flush();
    tl_listen();
    TL_MPI(MPI_Put(from, 4, MPI_DOUBLE, TARGET, place(TARGET, 8), 1, column, w.win));
    expect_found(get(0, TARGET, 23, 2), "MPI_Get to rank 1", "overlaps at", "MPI_Put to rank 1");
    flush();
    tl_listen();
    TL_MPI(sum(TARGET, 0, 2, MPI_SUM));
    TL_MPI(sum(TARGET, 1, 2, MPI_SUM));
    TL_MPI(sum(TARGET, 1, 2, MPI_PROD));
    expect_silence(sum(TARGET, 0, 3, MPI_REPLACE), "accumulates, which are ordered");
    tl_listen();
    expect_found(put(TARGET, 2, 1), "MPI_Put to rank 1", "overlaps at", "MPI_Accumulate to rank 1");
    flush();
    tl_listen();
    TL_MPI(sum(TARGET, 0, 2, MPI_SUM));
    expect_found(
        MPI_Accumulate(from, 1, MPI_FLOAT, TARGET, place(TARGET, 1), 1, MPI_FLOAT, MPI_SUM, w.win),
        "MPI_Accumulate to rank 1", "overlaps at", "MPI_Accumulate to rank 1");
    flush();
    tl_listen();
    expect_found(MPI_Put(from, 4, MPI_DOUBLE, TARGET, place(TARGET, 0), 1, twice, w.win),
                 "MPI_Put to rank 1", "names bytes twice", "halo");
    TL_MPI(MPI_Win_unlock_all(w.win));
    MPI_Type_free(&column);
    MPI_Type_free(&twice);
}

static void test_buffers(void)
{
    MPI_Request r;

    TL_MPI(MPI_Win_lock_all(0, w.win));
    tl_listen();
    TL_MPI(put(TARGET, 0, 4));
    TL_MPI(put(TARGET, 4, 4));
    TL_MPI(get(0, TARGET, 8, 4));
    TL_MPI(get(4, TARGET, 8, 4));
    expect_silence(get(8, ORIGIN, 8, 4), "buffers side by side, and one that is sent twice");
    tl_listen();
    expect_found(get(10, TARGET, 16, 1), "MPI_Get to rank 1", "one of its buffers overlaps",
                 "MPI_Get to rank 0");
    TL_MPI(MPI_Win_flush_all(w.win));
    tl_listen();
    TL_MPI(MPI_Put(to, 4, MPI_DOUBLE, TARGET, place(TARGET, 0), 4, MPI_DOUBLE, w.win));
    TL_MPI(MPI_Win_flush_local(TARGET, w.win));
    TL_MPI(get(0, TARGET, 8, 4));
    TL_MPI(MPI_Win_flush_local(TARGET, w.win));
    TL_MPI(get(0, TARGET, 16, 4));
    TL_MPI(MPI_Win_flush_local(TARGET, w.win));
    expect_silence(put(TARGET, 16, 4), "locally complete");
    flush();
    tl_listen();
    TL_MPI(MPI_Rget(to, 2, MPI_DOUBLE, TARGET, place(TARGET, 0), 2, MPI_DOUBLE, w.win, &r));
    expect_found(MPI_Get(to + 1, 2, MPI_DOUBLE, TARGET, place(TARGET, 8), 2, MPI_DOUBLE, w.win),
                 "MPI_Get to rank 1", "one of its buffers overlaps", "MPI_Rget to rank 1");
    TL_MPI(MPI_Wait(&r, MPI_STATUS_IGNORE));
    flush();
    tl_listen();
    TL_MPI(MPI_Rget(to, 2, MPI_DOUBLE, TARGET, place(TARGET, 0), 2, MPI_DOUBLE, w.win, &r));
    TL_MPI(MPI_Wait(&r, MPI_STATUS_IGNORE));
    TL_MPI(put(TARGET, 0, 2));
    flush();
    TL_MPI(MPI_Rput(to, 2, MPI_DOUBLE, TARGET, place(TARGET, 0), 2, MPI_DOUBLE, w.win, &r));
    TL_MPI(MPI_Wait(&r, MPI_STATUS_IGNORE));
    expect_silence(get(0, TARGET, 8, 2), "what a request has completed");
    tl_listen();
    expect_found(put(TARGET, 0, 1), "MPI_Put to rank 1", "overlaps at", "MPI_Rput to rank 1");
    TL_MPI(MPI_Win_unlock_all(w.win));
}

/** A range outside is refused in any case; the target says what is not attached. */
static void test_range(void)
{
    int code = MPI_SUCCESS;

    tl_listen();
    MPI_Barrier(w.comm);
    if (w.rank == ORIGIN) {
        TL_MPI(MPI_Win_lock(MPI_LOCK_SHARED, TARGET, 0, w.win));
        code = put(TARGET, N - 1, 2);
        if (w.kind == TL_DYNAMIC)
            code = MPI_Win_flush(TARGET, w.win);
        TL_MPI(MPI_Win_unlock(TARGET, w.win));
    }
    MPI_Barrier(w.comm);
    heard = tl_heard();
    if (w.rank == ORIGIN)
        TL_CHECK(class_of(code) == MPI_ERR_RMA_RANGE, "a put outside: class %d", class_of(code));
    if (w.rank == ORIGIN && w.kind != TL_DYNAMIC)
        TL_CHECK(
            was_heard("MPI_Put", "rank 0", "halo", "displacement 63", "leaves the window", NULL),
            "a put outside: said \"%s\"", heard);
    if (w.rank == TARGET && w.kind == TL_DYNAMIC)
        TL_CHECK(was_heard("rank 1", "halo", "access of rank 0 to 16 bytes", "attached here", NULL),
                 "a put outside: said \"%s\"", heard);
}

/* ---- calls of two processes ------------------------------------------------------------------ */

/** An access of one of the first two ranks to the memory of TARGET. */
typedef int (*access_t)(void);

static int put_there(void)
{
    return w.rank <= TARGET ? put(TARGET, 4, 4) : MPI_SUCCESS;
}

static int put_beside(void)
{
    return w.rank <= TARGET ? put(TARGET, w.rank, 1) : MPI_SUCCESS;
}

static int sum_there(void)
{
    return w.rank <= TARGET ? sum(TARGET, 4, 4, MPI_SUM) : MPI_SUCCESS;
}

static int sum_or_multiply(void)
{
    return w.rank <= TARGET ? sum(TARGET, 4, 4, w.rank == ORIGIN ? MPI_SUM : MPI_PROD)
                            : MPI_SUCCESS;
}

static int get_there(void)
{
    return w.rank <= TARGET ? get(0, TARGET, 4, 4) : MPI_SUCCESS;
}

static int get_or_put(void)
{
    return w.rank == ORIGIN ? get_there() : put_there();
}

/** What TARGET sends from its part of the window is what ORIGIN writes. */
static int put_or_send(void)
{
    if (w.rank != TARGET)
        return put_there();
    return MPI_Put(w.base + 4 * sizeof(double), 1, MPI_DOUBLE, ORIGIN, place(ORIGIN, 0), 1,
                   MPI_DOUBLE, w.win);
}

typedef enum way { FENCE, POST, LOCKS, WAYS } way_t;

static const char *const ways[] = {"fence", "post and start", "lock_all"};

static int access_in(way_t way, access_t access)
{
    MPI_Group all;
    int code;

    TL_MPI(MPI_Comm_group(w.comm, &all));
    if (way == FENCE)
        TL_MPI(MPI_Win_fence(0, w.win));
    if (way == POST)
        TL_MPI(MPI_Win_post(all, 0, w.win));
    if (way == POST)
        TL_MPI(MPI_Win_start(all, 0, w.win));
    if (way == LOCKS)
        TL_MPI(MPI_Win_lock_all(0, w.win));
    MPI_Barrier(w.comm);
    code = access();
    MPI_Barrier(w.comm);
    if (way == FENCE)
        TL_MPI(MPI_Win_fence(MPI_MODE_NOSUCCEED, w.win));
    if (way == POST)
        TL_MPI(MPI_Win_complete(w.win));
    if (way == POST)
        TL_MPI(MPI_Win_wait(w.win));
    if (way == LOCKS)
        TL_MPI(MPI_Win_unlock_all(w.win));
    MPI_Group_free(&all);
    return code;
}

static void test_two(way_t way, access_t access, bool race, const char *what)
{
    int code, found;

    tl_listen();
    MPI_Barrier(w.comm);
    code = access_in(way, access);
    MPI_Barrier(w.comm);
    heard = tl_heard();
    TL_CHECK(code == MPI_SUCCESS || is_found(code), "%s, %s: class %d", what, ways[way],
             class_of(code));
    found = heard[0] != '\0';
    if (found)
        TL_CHECK(race &&
                     was_heard("races at byte", "halo", "rank 1's memory",
                               w.rank == ORIGIN ? "a call of rank 1" : "a call of rank 0", NULL),
                 "%s, %s: said \"%s\"", what, ways[way], heard);
    MPI_Allreduce(MPI_IN_PLACE, &found, 1, MPI_INT, MPI_SUM, w.comm);
    TL_CHECK((found > 0) == race, "%s, %s: %d processes said something", what, ways[way], found);
}

/** One after another: what is complete before the other begins is no race. */
static int in_turn(void)
{
    if (w.rank == ORIGIN) {
        TL_MPI(put(TARGET, 4, 4));
        TL_MPI(get(0, TARGET, 16, 4));
        flush();
    }
    MPI_Barrier(w.comm);
    if (w.rank == TARGET) {
        TL_MPI(put(TARGET, 4, 4));
        TL_MPI(put(TARGET, 16, 4));
    }
    return MPI_SUCCESS;
}

/** In one exposure epoch: ORIGIN's access epoch is over before that of TARGET begins. Its get is
 *  complete then, and its put is not yet complete here. */
static void test_same_post(access_t first, bool race, const char *what)
{
    MPI_Group all;
    int code = MPI_SUCCESS;

    TL_MPI(MPI_Comm_group(w.comm, &all));
    MPI_Barrier(w.comm);
    tl_listen();
    TL_MPI(MPI_Win_post(all, 0, w.win));
    for (int turn = 0; turn < 2; turn++) {
        if (turn == (w.rank != ORIGIN)) {
            TL_MPI(MPI_Win_start(all, 0, w.win));
            code = turn == 0 ? first() : put_there();
            TL_MPI(MPI_Win_complete(w.win));
        }
        MPI_Barrier(w.comm);
    }
    TL_MPI(MPI_Win_wait(w.win));
    heard = tl_heard();
    if (race && w.rank == TARGET)
        TL_CHECK(is_found(code) && was_heard("races at byte", "a call of rank 0", NULL),
                 "%s: class %d, said \"%s\"", what, class_of(code), heard);
    else
        TL_CHECK(code == MPI_SUCCESS && heard[0] == '\0', "%s: class %d, said \"%s\"", what,
                 class_of(code), heard);
    MPI_Group_free(&all);
}

static void test_pairs(void)
{
    const char *node = getenv("OMPI_MCA_osc_nicstride_node");
    /* Memory of others is mapped, and all processes share it. */
    const bool seen = w.kind == TL_SHARED || (w.kind == TL_ALLOCATE && tl_one_host() &&
                                              (node == NULL || strcmp(node, "0") != 0));

    for (way_t way = FENCE; way < WAYS; way++) {
        test_two(way, put_beside, false, "puts side by side");
        test_two(way, get_there, false, "gets");
        test_two(way, sum_there, false, "sums");
        test_two(way, put_there, seen, "puts");
        test_two(way, get_or_put, seen, "get and put");
        test_two(way, sum_or_multiply, seen, "sum and product");
        test_two(way, put_or_send, seen, "put and what is sent");
    }
    test_two(LOCKS, in_turn, false, "one after another");
    test_same_post(get_there, false, "a put after a get that is complete");
    test_same_post(put_there, seen, "a put after a put, with no wait between");
}

/* ---- a fence that is told wrong -------------------------------------------------------------- */

static void test_fence(void)
{
    TL_MPI(MPI_Win_fence(MPI_MODE_NOPRECEDE, w.win));
    tl_listen();
    if (w.rank == ORIGIN)
        TL_MPI(put(TARGET, 0, 1));
    TL_MPI(MPI_Win_fence(MPI_MODE_NOPRECEDE, w.win));
    heard = tl_heard();
    TL_CHECK(w.rank != ORIGIN || was_heard("MPI_MODE_NOPRECEDE", "rank 0", "halo", NULL),
             "a fence said \"%s\"", heard);
    TL_CHECK(w.rank == ORIGIN || heard[0] == '\0', "a fence said \"%s\"", heard);
    TL_MPI(MPI_Win_fence(MPI_MODE_NOSUCCEED, w.win));
}

/** What was refused has not been done, and nothing conflicts with it. */
static void test_refused(void)
{
    MPI_Barrier(w.comm);
    memset(w.base, 0, (size_t)w.bytes);
    MPI_Barrier(w.comm);
    if (w.rank == ORIGIN) {
        TL_MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, TARGET, 0, w.win));
        from[0] = 1;
        TL_MPI(put(TARGET, 0, 1));
        flush();
        TL_MPI(MPI_Put(from + 1, 1, MPI_DOUBLE, TARGET, place(TARGET, 1), 1, MPI_DOUBLE, w.win));
        tl_listen();
        TL_CHECK(is_found(put(TARGET, 0, 2)), "a put was not refused");
        if (refuse)
            TL_MPI(put(TARGET, 0, 1));
        heard = tl_heard();
        TL_MPI(MPI_Win_unlock(TARGET, w.win));
    }
    MPI_Barrier(w.comm);
    if (w.rank == TARGET && refuse)
        TL_FILL(w.base + sizeof(double), 0, sizeof(double), "a put that was refused was made");
    from[0] = 0;
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        refuse = refuse || strcmp(argv[i], "refuse") == 0;
    if (setenv("OMPI_MCA_osc_nicstride_check", refuse ? "2" : "1", 1) != 0)
        return TL_EXIT_FAILED;
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    tl_need_ranks(2, 1000);
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind)) {
        w = tl_win_make(kind, N * sizeof(double), sizeof(double), MPI_COMM_WORLD, MPI_INFO_NULL);
        TL_MPI(MPI_Win_set_name(w.win, "halo"));
        if (w.rank == ORIGIN) {
            test_epochs();
            test_overlaps();
            test_buffers();
        }
        test_range();
        test_fence();
        test_pairs();
        test_refused();
        tl_win_free(&w);
    }
    return tl_finish();
}
