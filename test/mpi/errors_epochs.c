/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-4 */
/* windows: dynamic */
/**
 * @file
 * Errors in active target that only the target can see: memory that is not attached any more. The
 * target is told by its fence, wait or test, the origin by one of its next synchronisations or,
 * in a text, by MPI_Win_free; nobody else is told, nobody waits for ever, what was right is done,
 * and the window works afterwards. Gets fail at the origin alone.
 */
#include "test/mpi/testlib.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/** Bytes of memory; the first half stays attached. */
#define BYTES (1 << 20)
#define GONE  (BYTES / 2)
/** Synchronisations after which the origin must have been told. */
#define PATIENCE 200

enum { ORIGIN, TARGET };

typedef struct field {
    tl_window_t w;
    unsigned char *memory;
    MPI_Aint there; /**< where the target's memory is */
    unsigned char *data;
} field_t;

/** How an epoch fails. */
typedef enum bad { PUT_FEW, PUT_MANY, PUT_LARGE, ACCUMULATE, BADS } bad_t;

static const char *const bad_names[BADS] = {"one put", "many puts", "a large put", "an accumulate"};

static void make_memory(field_t *f)
{
    f->memory = tl_alloc(BYTES);
    f->data = tl_alloc(BYTES);
    memset(f->data, 0x66, BYTES);
    MPI_Get_address(f->memory, &f->there);
    MPI_Bcast(&f->there, 1, MPI_AINT, TARGET, f->w.comm);
}

static field_t make_field(void)
{
    field_t f = {.w = tl_win_make(TL_DYNAMIC, 0, 1, MPI_COMM_WORLD, MPI_INFO_NULL)};

    make_memory(&f);
    TL_MPI(MPI_Win_attach(f.w.win, f.memory, GONE));
    TL_MPI(MPI_Win_attach(f.w.win, f.memory + GONE, BYTES - GONE));
    MPI_Barrier(f.w.comm);
    return f;
}

static void end_field(field_t *f)
{
    TL_MPI(MPI_Win_detach(f->w.win, f->memory));
    tl_win_free(&f->w);
    free(f->memory);
    free(f->data);
}

static bool is_refusal(int code)
{
    const int class = tl_class(code);

    return class == MPI_ERR_RMA_RANGE || class == MPI_ERR_RMA_ATTACH;
}

static void put(const field_t *f, MPI_Aint offset, int n)
{
    TL_MPI(MPI_Put(f->data, n, MPI_BYTE, TARGET, MPI_Aint_add(f->there, offset), n, MPI_BYTE,
                   f->w.win));
}

/** Puts that are right around others that are not. */
static void access_target(const field_t *f, bad_t bad)
{
    put(f, 0, 8);
    switch (bad) {
    case PUT_MANY:
        for (int i = 0; i < 1000; i++)
            put(f, GONE + 8 * i, 8);
        break;
    case PUT_LARGE:
        put(f, GONE, BYTES - GONE);
        break;
    case ACCUMULATE:
        TL_MPI(MPI_Accumulate(f->data, 8, MPI_INT, TARGET, MPI_Aint_add(f->there, GONE), 8, MPI_INT,
                              MPI_SUM, f->w.win));
        break;
    default:
        put(f, GONE, 8);
        break;
    }
    put(f, 64, 8);
}

static void check_memory(const field_t *f, const char *what)
{
    if (f->w.rank == TARGET) {
        TL_FILL(f->memory, 0x66, 8, "%s, what came before it", what);
        TL_FILL(f->memory + 64, 0x66, 8, "%s, what came behind it", what);
        TL_FILL(f->memory + GONE, 0, BYTES - GONE, "%s wrote where nothing is attached", what);
        memset(f->memory, 0, 128);
    }
}

/** Is anybody not told yet? Only the origin may be. */
static bool is_open(const field_t *f, bool told)
{
    int open = f->w.rank == ORIGIN && !told;

    MPI_Allreduce(MPI_IN_PLACE, &open, 1, MPI_INT, MPI_MAX, f->w.comm);
    return open != 0;
}

/** Each of several failures may be told. When this is over, all have been: an accumulate goes by
 *  message behind the others. */
static void settle(const field_t *f)
{
    if (f->w.rank == ORIGIN) {
        TL_MPI(MPI_Win_lock(MPI_LOCK_SHARED, TARGET, 0, f->w.win));
        TL_MPI(MPI_Accumulate(f->data, 8, MPI_BYTE, TARGET, MPI_Aint_add(f->there, 128), 8,
                              MPI_BYTE, MPI_REPLACE, f->w.win));
        (void)MPI_Win_flush(TARGET, f->w.win);
        TL_MPI(MPI_Win_unlock(TARGET, f->w.win));
    }
    MPI_Barrier(f->w.comm);
}

/* ---- fences ---- */

/** What the fence behind the failure said. */
static bool check_fence(const field_t *f, int code, const char *what)
{
    const bool refused = is_refusal(code);

    if (f->w.rank == TARGET) {
        TL_CHECK(refused, "%s: the target's fence says %d", what, tl_class(code));
    } else {
        TL_CHECK(code == MPI_SUCCESS || (refused && f->w.rank == ORIGIN), "%s: a fence says %d",
                 what, tl_class(code));
    }
    return refused;
}

static void fail_in_fences(const field_t *f, bad_t bad)
{
    bool told;

    TL_MPI(MPI_Win_fence(bad == PUT_FEW ? MPI_MODE_NOPRECEDE : 0, f->w.win));
    if (f->w.rank == ORIGIN)
        access_target(f, bad);
    told = check_fence(f, MPI_Win_fence(0, f->w.win), bad_names[bad]);
    check_memory(f, bad_names[bad]);
    for (int i = 0; i < PATIENCE && is_open(f, told); i++) {
        const int code = MPI_Win_fence(0, f->w.win);

        TL_CHECK(code == MPI_SUCCESS || (is_refusal(code) && f->w.rank == ORIGIN),
                 "%s: a later fence says %d", bad_names[bad], tl_class(code));
        told = told || code != MPI_SUCCESS;
    }
    TL_CHECK(told || f->w.rank != ORIGIN, "%s: the origin was never told", bad_names[bad]);
    settle(f);
    for (int i = 0; i < 3; i++) {
        TL_MPI(MPI_Win_fence(0, f->w.win));
        if (f->w.rank == ORIGIN)
            put(f, 128, 8);
        TL_MPI(MPI_Win_fence(0, f->w.win));
    }
}

/** Many errors, that a fence does not wait for, and then a flush, whose answer may be quicker than
 *  they are: behind it nothing is left to be told. */
static void fail_before_flush(const field_t *f)
{
    for (int i = 0; i < 20; i++) {
        TL_MPI(MPI_Win_fence(0, f->w.win));
        if (f->w.rank == ORIGIN)
            access_target(f, PUT_MANY);
        (void)check_fence(f, MPI_Win_fence(MPI_MODE_NOSUCCEED, f->w.win), "before a flush");
        check_memory(f, "before a flush");
        usleep(f->w.rank == ORIGIN ? 20000 : 0);
        settle(f);
        TL_MPI(MPI_Win_fence(0, f->w.win));
    }
}

/** A get that fails is the origin's alone, and at once. */
static void fail_to_get(const field_t *f)
{
    unsigned char *got = tl_alloc(BYTES);
    int code;

    for (int n = 8; n <= BYTES - GONE; n *= 1 << 8) {
        TL_MPI(MPI_Win_fence(0, f->w.win));
        if (f->w.rank == ORIGIN) {
            TL_MPI(MPI_Get(got, n, MPI_BYTE, TARGET, MPI_Aint_add(f->there, GONE), n, MPI_BYTE,
                           f->w.win));
        }
        code = MPI_Win_fence(0, f->w.win);
        TL_CHECK(f->w.rank == ORIGIN ? is_refusal(code) : code == MPI_SUCCESS,
                 "get of %d: a fence says %d", n, tl_class(code));
    }
    TL_MPI(MPI_Win_fence(0, f->w.win));
    free(got);
}

/* ---- post and start ---- */

/** One epoch from origin to target; returns what went wrong in it. */
static int post_start(const field_t *f, bool good, bad_t bad, bool test)
{
    MPI_Group group = tl_group_of(f->w.comm, f->w.rank == ORIGIN ? TARGET : ORIGIN);
    int code = MPI_SUCCESS, over = 0;

    if (f->w.rank == TARGET) {
        TL_MPI(MPI_Win_post(group, 0, f->w.win));
        while (test && !over && code == MPI_SUCCESS)
            code = MPI_Win_test(f->w.win, &over);
        if (!test)
            code = MPI_Win_wait(f->w.win);
    } else if (f->w.rank == ORIGIN) {
        TL_MPI(MPI_Win_start(group, 0, f->w.win));
        if (good)
            put(f, 128, 8);
        else
            access_target(f, bad);
        code = MPI_Win_complete(f->w.win);
    }
    MPI_Group_free(&group);
    return code;
}

static void fail_in_post_start(const field_t *f, bad_t bad)
{
    int code = post_start(f, false, bad, bad % 2 == 1);
    bool told = is_refusal(code);

    TL_CHECK(told || (code == MPI_SUCCESS && f->w.rank != TARGET), "%s: post and start: %d",
             bad_names[bad], tl_class(code));
    check_memory(f, bad_names[bad]);
    for (int i = 0; i < PATIENCE && is_open(f, told); i++) {
        code = post_start(f, true, bad, false);
        TL_CHECK(code == MPI_SUCCESS || (is_refusal(code) && f->w.rank == ORIGIN),
                 "%s: a later epoch says %d", bad_names[bad], tl_class(code));
        told = told || code != MPI_SUCCESS;
    }
    TL_CHECK(told || f->w.rank != ORIGIN, "%s: the origin was never told", bad_names[bad]);
    settle(f);
    TL_MPI(post_start(f, true, bad, true));
    MPI_Barrier(f->w.comm);
}

/* ---- freeing ---- */

/** Frees the window; how many times was an earlier error printed meanwhile? */
static int free_listening(MPI_Win *win)
{
    tl_listen();
    const int code = MPI_Win_free(win);
    const int n = tl_count(tl_heard(), "one-sided call failed");

    TL_MPI(code);
    TL_CHECK(*win == MPI_WIN_NULL, "the handle is still there");
    return n;
}

/** The origin frees the window at once, before the target has found the error. */
static int fail_and_free(field_t *f, bool fences)
{
    int code = MPI_SUCCESS;

    if (fences) {
        TL_MPI(MPI_Win_fence(0, f->w.win));
        if (f->w.rank == ORIGIN)
            access_target(f, PUT_FEW);
        else if (f->w.rank == TARGET)
            usleep(5000);
        code = MPI_Win_fence(0, f->w.win);
    } else if (f->w.rank == TARGET) {
        MPI_Group group = tl_group_of(f->w.comm, ORIGIN);

        TL_MPI(MPI_Win_post(group, 0, f->w.win));
        MPI_Group_free(&group);
        usleep(20000);
        code = MPI_Win_wait(f->w.win);
    } else {
        code = post_start(f, false, PUT_FEW, false);
    }
    return code;
}

/** Before all others: after some more texts none is printed. */
static void test_free(bool fences)
{
    field_t f = {.w = {.comm = MPI_COMM_WORLD, .rank = tl_rank(), .size = tl_size()}};
    int told, said;

    make_memory(&f);
    TL_MPI(MPI_Win_create_dynamic(MPI_INFO_NULL, f.w.comm, &f.w.win));
    TL_MPI(MPI_Win_set_errhandler(f.w.win, MPI_ERRORS_RETURN));
    TL_MPI(MPI_Win_attach(f.w.win, f.memory, GONE));
    MPI_Barrier(f.w.comm);
    told = fail_and_free(&f, fences) != MPI_SUCCESS;
    said = free_listening(&f.w.win);
    TL_CHECK(f.w.rank == TARGET || told + said == (f.w.rank == ORIGIN),
             "before MPI_Win_free %d errors, in it %d", told, said);
    TL_CHECK(f.w.rank != TARGET || told == 1, "the target was told %d errors", told);
    check_memory(&f, "an epoch before MPI_Win_free");
    free(f.memory);
    free(f.data);
}

int main(int argc, char **argv)
{
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    tl_need_ranks(2, 1 << 20);
    for (int i = 0; i < 6; i++)
        test_free(i % 2 == 0);

    field_t f = make_field();

    TL_MPI(MPI_Win_detach(f.w.win, f.memory + GONE));
    MPI_Barrier(f.w.comm);
    for (int i = 0; i < 3 * BADS; i++) {
        fail_in_fences(&f, (bad_t)(i % BADS));
        fail_in_post_start(&f, (bad_t)(i % BADS));
    }
    fail_before_flush(&f);
    fail_to_get(&f);
    end_field(&f);
    return tl_finish();
}
