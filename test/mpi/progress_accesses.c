/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "test/mpi/progress_accesses.h"

#include <stdlib.h>

const amount_t access_amounts[AMOUNTS] = {{"short", 1, false},
                                          {"derived", 60, true},
                                          {"long", 20000, false},
                                          {"long_derived", 20000, true}};

/** Where the operation begins in the target's memory, behind the put before it. */
enum { PLACE = 8 };

access_t access_new(rma_t op, const amount_t *amount, long base)
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
    if (!rma_writes(a->op))
        return found(a, i);
    return rma_has_op(a->op) ? found(a, i) + given(a, i) : given(a, i);
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

    for (int i = 0; rma_fetches(a->op) && i < a->amount->longs * step_of(a); i += step_of(a))
        wrong += a->result[i] != found(a, i);
    TL_CHECK(wrong == 0, "%s: %d longs at the origin are wrong", what, wrong);
}

void access_begin(access_t *a, const tl_window_t *w, int target, bool second)
{
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
    rma_given_t g = rma_plain(a->origin, a->result, a->amount->derived ? 1 : a->amount->longs, t,
                              target, tl_disp(w, target, PLACE * 8), w->win);

    g.compare = &a->result[ACCESS_LONGS - 1];
    TL_MPI(rma_call(a->op, &g, &a->request));
    if (a->amount->derived)
        MPI_Type_free(&t);
}
