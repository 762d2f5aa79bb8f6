/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "test/mpi/progress_accesses.h"

#include <stdlib.h>

const char *const access_ops[OPS] = {
    "put",  "get",  "accumulate",  "get_accumulate", "fetch_and_op", "compare_and_swap",
    "rput", "rget", "raccumulate", "rget_accumulate"};

const amount_t access_amounts[AMOUNTS] = {{"short", 1, false},
                                          {"derived", 60, true},
                                          {"long", 20000, false},
                                          {"long_derived", 20000, true}};

/** Where the operation begins in the target's memory, behind the put before it. */
enum { PLACE = 8 };

access_t access_new(op_t op, const amount_t *amount, long base)
{
    access_t a = {.op = op, .amount = amount, .base = base, .request = MPI_REQUEST_NULL};

    a.origin = tl_alloc(ACCESS_BYTES);
    a.result = tl_alloc(ACCESS_BYTES);
    return a;
}

void access_free(access_t *a)
{
    free(a->origin);
    free(a->result);
}

/* ---- values of the i-th of all longs ---- */

static int step_of(const access_t *a)
{
    return a->amount->derived ? 2 : 1;
}

static long found(const access_t *a, int i)
{
    return a->base * 100000 + i;
}

static long given(const access_t *a, int i)
{
    return a->base * 7 + 3 * i + 1;
}

static long left(const access_t *a, int i)
{
    switch (a->op) {
    case GET:
    case RGET:
        return found(a, i);
    case PUT:
    case RPUT:
    case COMPARE_AND_SWAP:
        return given(a, i);
    default:
        return found(a, i) + given(a, i);
    }
}

/** Does the origin get what it has found? */
static bool returns(const access_t *a)
{
    return a->op != PUT && a->op != RPUT && a->op != ACCUMULATE && a->op != RACCUMULATE;
}

/* ---- the target ---- */

void access_prepare(const access_t *a, long *memory)
{
    for (int i = 0; i < PLACE; i++)
        memory[i] = 0;
    for (int i = 0; i < a->amount->longs * step_of(a); i++)
        memory[PLACE + i] = found(a, i);
}

bool access_arrived(const access_t *a, const volatile long *memory)
{
    return memory[PLACE] == left(a, 0);
}

void access_check_target(const access_t *a, const long *memory, bool second, const char *what)
{
    int wrong = 0;

    for (int i = 0; i < a->amount->longs * step_of(a); i++)
        wrong += memory[PLACE + i] != (i % step_of(a) == 0 ? left(a, i) : found(a, i));
    TL_CHECK(wrong == 0, "%s: %d longs at the target are wrong", what, wrong);
    TL_CHECK(memory[0] == (second ? a->base : 0), "%s: the put before it: %ld", what, memory[0]);
}

/* ---- the origin ---- */

void access_check_origin(const access_t *a, const char *what)
{
    int wrong = 0;

    for (int i = 0; returns(a) && i < a->amount->longs * step_of(a); i += step_of(a))
        wrong += a->result[i] != found(a, i);
    TL_CHECK(wrong == 0, "%s: %d longs at the origin are wrong", what, wrong);
}

void access_begin(access_t *a, const tl_window_t *w, int target, bool second)
{
    MPI_Aint at = tl_disp(w, target, PLACE * 8);
    const int n = a->amount->derived ? 1 : a->amount->longs;
    const long compare = found(a, 0);
    MPI_Datatype t = MPI_LONG;

    for (int i = 0; i < a->amount->longs * step_of(a); i++)
        a->origin[i] = given(a, i);
    /* The last of what MPI may not yet have read. */
    a->result[ACCESS_LONGS - 1] = compare;
    a->origin[ACCESS_LONGS - 1] = a->base;
    if (a->amount->derived) {
        MPI_Type_vector(a->amount->longs, 1, 2, MPI_LONG, &t);
        MPI_Type_commit(&t);
    }
    if (second) {
        TL_MPI(MPI_Put(&a->origin[ACCESS_LONGS - 1], 1, MPI_LONG, target, tl_disp(w, target, 0), 1,
                       MPI_LONG, w->win));
    }
#define ORIGIN a->origin, n, t
#define RESULT a->result, n, t
#define TARGET target, at, n, t
    switch (a->op) {
    case PUT:
        TL_MPI(MPI_Put(ORIGIN, TARGET, w->win));
        break;
    case GET:
        TL_MPI(MPI_Get(RESULT, TARGET, w->win));
        break;
    case ACCUMULATE:
        TL_MPI(MPI_Accumulate(ORIGIN, TARGET, MPI_SUM, w->win));
        break;
    case GET_ACCUMULATE:
        TL_MPI(MPI_Get_accumulate(ORIGIN, RESULT, TARGET, MPI_SUM, w->win));
        break;
    case FETCH_AND_OP:
        TL_MPI(MPI_Fetch_and_op(a->origin, a->result, t, target, at, MPI_SUM, w->win));
        break;
    case COMPARE_AND_SWAP:
        TL_MPI(MPI_Compare_and_swap(a->origin, &a->result[ACCESS_LONGS - 1], a->result, t, target,
                                    at, w->win));
        break;
    case RPUT:
        TL_MPI(MPI_Rput(ORIGIN, TARGET, w->win, &a->request));
        break;
    case RGET:
        TL_MPI(MPI_Rget(RESULT, TARGET, w->win, &a->request));
        break;
    case RACCUMULATE:
        TL_MPI(MPI_Raccumulate(ORIGIN, TARGET, MPI_SUM, w->win, &a->request));
        break;
    default:
        TL_MPI(MPI_Rget_accumulate(ORIGIN, RESULT, TARGET, MPI_SUM, w->win, &a->request));
        break;
    }
    if (a->amount->derived)
        MPI_Type_free(&t);
}
