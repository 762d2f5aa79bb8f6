/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 1-4 */
/* windows: create allocate dynamic shared */
/**
 * @file
 * Errors in what is accessed: places outside the target's memory by offset, by length, by the
 * shape of the type and by arithmetic that wraps; signatures that do not match. An error may be
 * returned by the call, by the wait for its request or by the synchronisation that completes it.
 * Everywhere it is required that nothing outside the window is written and that the window works
 * afterwards; that the error is noticed, and its class, are quality. Arguments that name a case run
 * only that case.
 */
#include "test/mpi/rma.h"
#include "test/mpi/testlib.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** Longs in each rank's memory. */
#define LONGS 8
/** Longs in the buffers of the origin: more than the longest access asks for. */
#define ROOM 64

static long origin[ROOM], result[ROOM], compare;

/* ---- what must come of them ---- */

/** Which family of classes is right. */
typedef enum fault { NONE, RANGE, SIGNATURE } fault_t;

static bool class_fits(int class, fault_t fault)
{
    switch (fault) {
    case NONE:
        return class == MPI_SUCCESS;
    case RANGE:
        /* Open MPI itself answers negative displacements before any component is asked */
        return class == MPI_ERR_RMA_RANGE || class == MPI_ERR_DISP;
    default:
        return class == MPI_ERR_TYPE || class == MPI_ERR_TRUNCATE || class == MPI_ERR_ARG;
    }
}

static void check_fault(int code, fault_t fault, const char *what)
{
    static const char *const names[] = {"none", "range", "signature"};
    const int class = tl_class(code);

    TL_CHECK(class_fits(class, fault), "%s: error class %d where %s is right", what, class,
             names[fault]);
}

/** Flushes; an error told before is not told again. Returns the first. */
static int complete(int code, int target, MPI_Win win)
{
    int late = MPI_Win_flush(target, win);

    return code != MPI_SUCCESS ? code : late;
}

static rma_given_t access_of(const tl_window_t *w, MPI_Aint disp, int n)
{
    rma_given_t g = rma_plain(origin, result, n, MPI_LONG, tl_next(w), disp, w->win);

    g.compare = &compare;
    return g;
}

/** One access under a lock; its error, whenever it comes. */
static int one_access(const tl_window_t *w, rma_t call, MPI_Aint disp, int n)
{
    const rma_given_t g = access_of(w, disp, n);
    int code;

    TL_MPI(MPI_Win_lock(MPI_LOCK_SHARED, g.target, 0, w->win));
    code = complete(rma_call_and_wait(call, &g), g.target, w->win);
    TL_MPI(MPI_Win_unlock(g.target, w->win));
    return code;
}

static int put_beyond(const tl_window_t *w)
{
    const rma_given_t g = access_of(w, LONGS, 1);

    return rma_call(RMA_PUT, &g, NULL);
}

static tl_window_t make_window(tl_kind_t kind, int unit)
{
    tl_window_t w = tl_win_make(kind, LONGS * sizeof(long), unit, MPI_COMM_WORLD, MPI_INFO_NULL);

    TL_MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, w.rank, 0, w.win));
    memset(w.base, 0x33, (size_t)w.bytes);
    TL_MPI(MPI_Win_unlock(w.rank, w.win));
    memset(origin, 0x44, sizeof(origin));
    memset(result, 0x55, sizeof(result));
    MPI_Barrier(w.comm);
    return w;
}

/** Memory is as it was and the window of use; then the window goes. */
static void end_window(tl_window_t *w)
{
    long got = 0;

    MPI_Barrier(w->comm);
    TL_MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, w->rank, 0, w->win));
    TL_FILL(w->base, 0x33, (size_t)w->bytes, "a refused access changed the window");
    TL_MPI(MPI_Win_unlock(w->rank, w->win));
    MPI_Barrier(w->comm);
    origin[0] = 99;
    check_fault(one_access(w, RMA_PUT, tl_disp(w, tl_next(w), 0), 1), NONE, "put afterwards");
    check_fault(one_access(w, RMA_GET, tl_disp(w, tl_next(w), 0), 1), NONE, "get afterwards");
    got = result[0];
    TL_CHECK(got == 99, "got %ld", got);
    tl_win_free(w);
}

/* ---- bounds ---- */

/** 2^61: times 8 it is 2^64, which 64 bits hold as 0. */
#define WRAP (INT64_C(1) << 61)

static const struct {
    const char *name;
    int64_t disp; /**< in units of one long */
    int n;
} bad_places[] = {{"just past the end", LONGS, 1},
                  {"across the end", LONGS - 1, 2},
                  {"one too many", 0, LONGS + 1},
                  {"before the start", -1, 1},
                  {"across the start", -1, 2},
                  {"far away", INT64_C(1) << 40, 1},
                  {"wrapping to a good one", WRAP + 1, 1},
                  {"wrapping from below", 1 - WRAP, 1},
                  {"wrapping at the start", WRAP, LONGS},
                  {"the highest of all", INT64_MAX, 1},
                  {"the lowest of all", INT64_MIN, 1}};
enum { BAD_PLACES = sizeof(bad_places) / sizeof(bad_places[0]) };

static void case_bounds(tl_kind_t kind)
{
    if (kind == TL_DYNAMIC)
        return;
    tl_window_t w = make_window(kind, sizeof(long));
    for (rma_t a = 0; a < RMA_CALLS; a++) {
        for (int p = 0; p < BAD_PLACES; p++) {
            char what[100];

            if (rma_is_single(a) && bad_places[p].disp >= 0 && bad_places[p].disp < LONGS)
                continue;
            snprintf(what, sizeof(what), "%s %s", rma_names[a], bad_places[p].name);
            check_fault(one_access(&w, a, bad_places[p].disp, bad_places[p].n), RANGE, what);
        }
    }
    end_window(&w);
}

/** Accesses that touch the bounds from within, and empty ones anywhere near, are good. */
static void case_within(tl_kind_t kind)
{
    tl_window_t w = make_window(kind, sizeof(long));
    int target = tl_next(&w);

    memset(origin, 0x33, sizeof(origin));
    check_fault(one_access(&w, RMA_PUT, tl_disp(&w, target, 0), LONGS), NONE, "all of it");
    check_fault(one_access(&w, RMA_PUT, tl_disp(&w, target, 8 * (LONGS - 1)), 1), NONE, "the last");
    check_fault(one_access(&w, RMA_GET, tl_disp(&w, target, 8 * LONGS), 0), NONE,
                "none at the end");
    end_window(&w);
}

/** Memory of 0 bytes at the target has no good place; its neighbours have. */
static void case_no_memory(tl_kind_t kind)
{
    if (kind == TL_DYNAMIC)
        return;
    tl_window_t w = tl_win_make(kind, 0, 1, MPI_COMM_WORLD, MPI_INFO_NULL);
    for (rma_t a = 0; a < RMA_CALLS; a++)
        check_fault(one_access(&w, a, 0, 1), RANGE, rma_names[a]);
    tl_win_free(&w);
}

/** The same errors in epochs of the other kinds, told at their ends at the latest. */
static void case_active(tl_kind_t kind)
{
    if (kind == TL_DYNAMIC)
        return;
    tl_window_t w = make_window(kind, sizeof(long));
    int code, late;

    TL_MPI(MPI_Win_fence(0, w.win));
    code = put_beyond(&w);
    late = MPI_Win_fence(MPI_MODE_NOSUCCEED, w.win);
    check_fault(code ? code : late, RANGE, "put and fence");
    tl_begin_ring(&w);
    code = put_beyond(&w);
    late = MPI_Win_complete(w.win);
    check_fault(code ? code : late, RANGE, "put and complete");
    TL_MPI(MPI_Win_wait(w.win));
    TL_MPI(MPI_Win_lock_all(0, w.win));
    code = put_beyond(&w);
    late = MPI_Win_unlock_all(w.win);
    check_fault(code ? code : late, RANGE, "put and unlock_all");
    end_window(&w);
}

/* ---- shapes ---- */

/** Puts, gets and adds `count` of `type` at byte `disp`, `bytes` in all. The type is freed. */
static void try_type(const tl_window_t *w, MPI_Datatype type, int count, MPI_Aint disp, int bytes,
                     fault_t fault, const char *what)
{
    int target = tl_next(w), code;
    unsigned char *data = tl_alloc((size_t)bytes);

    memset(data, 0x33, (size_t)bytes);
    MPI_Type_commit(&type);
    TL_MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, w->win));
    code = MPI_Put(data, bytes, MPI_BYTE, target, disp, count, type, w->win);
    check_fault(complete(code, target, w->win), fault, what);
    code = MPI_Get(data, bytes, MPI_BYTE, target, disp, count, type, w->win);
    check_fault(complete(code, target, w->win), fault, what);
    code = MPI_Accumulate(data, bytes, MPI_BYTE, target, disp, count, type, MPI_REPLACE, w->win);
    check_fault(complete(code, target, w->win), fault, what);
    TL_MPI(MPI_Win_unlock(target, w->win));
    MPI_Type_free(&type);
    free(data);
}

static MPI_Datatype vector_of(int blocks, int block, MPI_Aint stride)
{
    MPI_Datatype type;

    MPI_Type_create_hvector(blocks, block, stride, MPI_BYTE, &type);
    return type;
}

static MPI_Datatype block_at(MPI_Aint place)
{
    MPI_Datatype type;
    int one = 1;

    MPI_Type_create_hindexed(1, &one, &place, MPI_BYTE, &type);
    return type;
}

static MPI_Datatype byte_of_extent(MPI_Aint extent)
{
    MPI_Datatype type;

    MPI_Type_create_resized(MPI_BYTE, 0, extent, &type);
    return type;
}

/** The window has 64 bytes; what counts is the bytes a type touches, not what its extent says. */
static void case_shapes(tl_kind_t kind)
{
    if (kind == TL_DYNAMIC)
        return;
    tl_window_t w = make_window(kind, 1);
    try_type(&w, vector_of(4, 4, 20), 1, 0, 16, NONE, "vector that just fits");
    try_type(&w, vector_of(4, 4, 20), 1, 1, 16, RANGE, "vector out by one byte");
    try_type(&w, vector_of(2, 4, 20), 2, 16, 16, NONE, "two vectors that just fit");
    try_type(&w, vector_of(2, 4, 20), 2, 17, 16, RANGE, "the second vector out by one byte");
    try_type(&w, vector_of(3, 1, -8), 1, 16, 3, NONE, "downward vector that just fits");
    try_type(&w, vector_of(3, 1, -8), 1, 15, 3, RANGE, "downward vector out by one byte");
    try_type(&w, block_at(-8), 1, 8, 1, NONE, "negative lower bound that just fits");
    try_type(&w, block_at(-8), 1, 7, 1, RANGE, "negative lower bound out by one byte");
    try_type(&w, block_at(-8), 1, 71, 1, NONE, "negative lower bound from past the end");
    try_type(&w, block_at(-8), 1, 72, 1, RANGE, "negative lower bound past the end");
    try_type(&w, block_at(64), 1, 0, 1, RANGE, "block past the end");
    try_type(&w, block_at(INT64_MAX - 8), 1, 63, 1, RANGE, "block at the highest place");
    try_type(&w, byte_of_extent(1000), 1, 63, 1, NONE, "an extent larger than the window");
    try_type(&w, byte_of_extent(1000), 2, 0, 2, RANGE, "two such");
    try_type(&w, byte_of_extent(-1), 64, 63, 64, NONE, "a negative extent");
    try_type(&w, byte_of_extent(-1), 65, 63, 65, RANGE, "a negative extent out by one");
    try_type(&w, byte_of_extent(INT64_C(1) << 62), 5, 8, 5, RANGE, "extents that wrap");
    end_window(&w);
}

/* ---- signatures ---- */

static void try_signature(const tl_window_t *w, int n, MPI_Datatype type, int target_n,
                          MPI_Datatype target_type, bool also_put)
{
    int t = tl_next(w), code;

    TL_MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, t, 0, w->win));
    if (also_put) {
        code = MPI_Put(origin, n, type, t, tl_disp(w, t, 0), target_n, target_type, w->win);
        check_fault(complete(code, t, w->win), SIGNATURE, "put");
        code = MPI_Get(result, target_n, target_type, t, tl_disp(w, t, 0), n, type, w->win);
        check_fault(complete(code, t, w->win), SIGNATURE, "get");
    }
    code = MPI_Accumulate(origin, n, type, t, tl_disp(w, t, 0), target_n, target_type, MPI_SUM,
                          w->win);
    check_fault(complete(code, t, w->win), SIGNATURE, "accumulate");
    code = MPI_Get_accumulate(origin, n, type, result, target_n, target_type, t, tl_disp(w, t, 0),
                              target_n, target_type, MPI_SUM, w->win);
    check_fault(complete(code, t, w->win), SIGNATURE, "get_accumulate");
    TL_MPI(MPI_Win_unlock(t, w->win));
}

/** More data than room; for accumulates also elements that differ, of equal size. */
static void case_signatures(tl_kind_t kind)
{
    tl_window_t w = make_window(kind, sizeof(long));

    try_signature(&w, 2, MPI_LONG, 1, MPI_LONG, true);
    try_signature(&w, 3, MPI_INT, 1, MPI_LONG, true);
    try_signature(&w, 2, MPI_INT, 1, MPI_LONG, false);
    try_signature(&w, 1, MPI_DOUBLE, 1, MPI_LONG, false);
    end_window(&w);
}

/* ---- more or less data than room ---- */

#define REFUSED(call) TL_MPI_ERROR(call, MPI_ERR_TYPE)

/** Data that do not fit, by one element, in each place where there can be more. To nobody anything
 *  may go. */
static void case_too_long(tl_kind_t kind)
{
    tl_window_t w = make_window(kind, sizeof(long));
    const int t = tl_next(&w);
    rma_given_t g = access_of(&w, tl_disp(&w, t, 0), 2);
    MPI_Request r = MPI_REQUEST_NULL;

    TL_MPI(MPI_Win_lock_all(0, w.win));
    g.origin.n = 3;
    for (rma_t call = RMA_PUT; call < RMA_CALLS; call++)
        if (rma_writes(call) && !rma_is_single(call))
            REFUSED(rma_call(call, &g, &r));
    g.origin.n = 1;
    g.n = 3;
    for (rma_t call = RMA_PUT; call < RMA_CALLS; call++)
        if (rma_fetches(call) && !rma_is_single(call))
            REFUSED(rma_call(call, &g, &r));
    g.origin = (rma_data_t){NULL, 0, MPI_LONG};
    g.op = MPI_NO_OP;
    REFUSED(rma_call(RMA_GET_ACCUMULATE, &g, NULL));
    TL_MPI(MPI_Put(origin, 3, MPI_LONG, MPI_PROC_NULL, 0, 2, MPI_LONG, w.win));
    TL_MPI(MPI_Get(result, 2, MPI_LONG, MPI_PROC_NULL, 0, 3, MPI_LONG, w.win));
    TL_MPI(MPI_Win_unlock_all(w.win));
    TL_FILL(origin, 0x44, sizeof(origin), "what was to be sent has changed");
    TL_FILL(result, 0x55, sizeof(result), "something was fetched");
    end_window(&w);
}

/** With less data than room all that is named must be in the window; of a dynamic one what is
 *  written. */
static void case_named_beyond(tl_kind_t kind)
{
    tl_window_t w = make_window(kind, sizeof(long));
    const int t = tl_next(&w);
    const MPI_Aint last = tl_disp(&w, t, (LONGS - 1) * (MPI_Aint)sizeof(long));
    int code;

    memset(origin, 0x33, sizeof(origin));
    TL_MPI(MPI_Win_lock(MPI_LOCK_SHARED, t, 0, w.win));
    code = MPI_Put(origin, 1, MPI_LONG, t, last, 2, MPI_LONG, w.win);
    check_fault(complete(code, t, w.win), kind == TL_DYNAMIC ? NONE : RANGE, "room beyond the end");
    TL_MPI(MPI_Win_unlock(t, w.win));
    end_window(&w);
}

/* ---- operations and types that do not go together ---- */

static void add_up(void *in, void *inout, int *n, MPI_Datatype *type)
{
    (void)in, (void)inout, (void)n, (void)type;
    TL_CHECK(false, "an operation of the program was called");
}

/** MPI itself looks at neither the operation nor the type of these two calls. */
static void try_single(const tl_window_t *w, int t, MPI_Op own, MPI_Datatype longs)
{
    const MPI_Op ops[] = {MPI_BAND, MPI_MAXLOC, own};
    MPI_Datatype pair;
    int code;

    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    TL_MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, t, 0, w->win));
    for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
        code = MPI_Fetch_and_op(origin, result, MPI_DOUBLE, t, tl_disp(w, t, 0), ops[i], w->win);
        TL_MPI_ERROR(complete(code, t, w->win), MPI_ERR_OP);
    }
    code = MPI_Compare_and_swap(origin, result, result, longs, t, tl_disp(w, t, 0), w->win);
    TL_MPI_ERROR(complete(code, t, w->win), MPI_ERR_TYPE);
    code = MPI_Compare_and_swap(origin, result, result, pair, t, tl_disp(w, t, 0), w->win);
    TL_MPI_ERROR(complete(code, t, w->win), MPI_ERR_TYPE);
    TL_MPI(MPI_Win_unlock(t, w->win));
    MPI_Type_free(&pair);
}

static void case_operations(tl_kind_t kind)
{
    tl_window_t w = make_window(kind, sizeof(long));
    MPI_Datatype longs;
    MPI_Op own;

    MPI_Op_create(add_up, 1, &own);
    MPI_Type_contiguous(LONGS, MPI_LONG, &longs);
    MPI_Type_commit(&longs);
    try_single(&w, tl_next(&w), own, longs);
    try_single(&w, w.rank, own, longs);
    MPI_Type_free(&longs);
    MPI_Op_free(&own);
    end_window(&w);
}

static const struct {
    const char *name;
    void (*run)(tl_kind_t);
} cases[] = {{"bounds", case_bounds},        {"within", case_within},
             {"no_memory", case_no_memory},  {"active", case_active},
             {"shapes", case_shapes},        {"signatures", case_signatures},
             {"too_long", case_too_long},    {"named_beyond", case_named_beyond},
             {"operations", case_operations}};

int main(int argc, char **argv)
{
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind)) {
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
            if (tl_asked_for(cases[i].name, argc, argv))
                cases[i].run(kind);
    }
    return tl_finish();
}
