/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 1-4 */
/* thorough */
/* windows: create allocate dynamic shared */
/**
 * @file
 * Every predefined operation with every predefined datatype that MPI allows for it, by
 * accumulate, get_accumulate, fetch_and_op and compare_and_swap, against MPI_Reduce_local.
 */
#include <stdlib.h>
#include <string.h>

#include "test/mpi/predefined.h"
#include "test/mpi/testlib.h"

/** Elements of an accumulate. */
#define N    5
#define CELL ((MPI_Aint)N * PREDEFINED_MAX)
#define SLOT ((MPI_Aint)CELLS * CELL)
/** Compare-and-swap: one cell whose comparison holds, one whose does not. */
#define SWAPPED_CELL (OPS * CALLS)
#define KEPT_CELL    (SWAPPED_CELL + 1)
#define CELLS        (OPS * CALLS + 2)

enum { ACCUMULATE, GET_ACCUMULATE, FETCH_AND_OP, CALLS };

static const char *const call_names[] = {"accumulate", "get_accumulate", "fetch_and_op"};

typedef struct operation {
    const char *name;
    MPI_Op op;
    unsigned classes; /**< of types that it is defined for */
} operation_t;

enum { OPS = 14 };

static operation_t operations[OPS];

/** The handles are no constants everywhere. */
static void list_operations(void)
{
    const unsigned integers = PREDEFINED_INTEGER | PREDEFINED_OTHER_INTEGER, any = ~0U;
    const unsigned numbers = integers | PREDEFINED_FLOAT, bits = integers | PREDEFINED_BYTE;
    const unsigned truth = PREDEFINED_INTEGER | PREDEFINED_LOGICAL;
    const unsigned sums = numbers | PREDEFINED_COMPLEX;
    const operation_t list[OPS] = {
        {"MAX", MPI_MAX, numbers},
        {"MIN", MPI_MIN, numbers},
        {"SUM", MPI_SUM, sums},
        {"PROD", MPI_PROD, sums},
        {"LAND", MPI_LAND, truth},
        {"LOR", MPI_LOR, truth},
        {"LXOR", MPI_LXOR, truth},
        {"BAND", MPI_BAND, bits},
        {"BOR", MPI_BOR, bits},
        {"BXOR", MPI_BXOR, bits},
        {"MINLOC", MPI_MINLOC, PREDEFINED_PAIR},
        {"MAXLOC", MPI_MAXLOC, PREDEFINED_PAIR},
        {"REPLACE", MPI_REPLACE, any},
        {"NO_OP", MPI_NO_OP, any},
    };

    memcpy(operations, list, sizeof(list));
}

/** What MPI_Compare_and_swap takes. */
static const unsigned swappable =
    PREDEFINED_INTEGER | PREDEFINED_OTHER_INTEGER | PREDEFINED_LOGICAL | PREDEFINED_BYTE;

/** What this rank does to one target, and what comes of it; laid out as the target's slot. */
typedef struct exchange {
    unsigned char origin[SLOT], result[SLOT], compare[2 * PREDEFINED_MAX];
} exchange_t;

static MPI_Aint cell_at(int op, int call)
{
    return (MPI_Aint)(op * CALLS + call) * CELL;
}

static bool applies(const predefined_t *type, int op, int call)
{
    if (operations[op].op == MPI_NO_OP && call == ACCUMULATE)
        return false;
    return (type->class & operations[op].classes) != 0;
}

/** inout = inout op in, as the target does it; false where this MPI has no such function. */
static bool apply(const predefined_t *type, int op, const void *in, void *inout, int count)
{
    if (operations[op].op == MPI_REPLACE) {
        predefined_copy(type, in, inout, count);
        return true;
    }
    if (operations[op].op == MPI_NO_OP)
        return true;
    return MPI_Reduce_local(in, inout, count, type->type, operations[op].op) == MPI_SUCCESS;
}

static bool supported(const predefined_t *type, int op)
{
    unsigned char in[PREDEFINED_MAX], inout[PREDEFINED_MAX];

    predefined_fill(type, in, 1, 1);
    predefined_fill(type, inout, 1, 2);
    return apply(type, op, in, inout, 1);
}

/** Values of a slot: those the target starts with, or those that the origin sends. */
static void fill_slot(const predefined_t *type, unsigned char *slot, int from, int to, bool sent)
{
    memset(slot, sent ? 0x77 : 0x66, (size_t)SLOT);
    for (int cell = 0; cell < CELLS; cell++) {
        uint64_t seed = tl_seed() + (uint64_t)(((cell * 8 + from) * 8 + to) * 2 + sent);

        predefined_fill(type, slot + cell * CELL, N, seed);
    }
}

static void issue_call(const tl_window_t *w, const predefined_t *type, int target, int op, int call,
                       exchange_t *x)
{
    MPI_Aint at = cell_at(op, call), disp = tl_disp(w, target, w->rank * SLOT + at);
    MPI_Op what = operations[op].op;
    bool reads = what == MPI_NO_OP;
    void *in = reads ? NULL : x->origin + at;
    int count = reads ? 0 : N;

    if (call == ACCUMULATE) {
        TL_MPI(MPI_Accumulate(in, N, type->type, target, disp, N, type->type, what, w->win));
    } else if (call == GET_ACCUMULATE) {
        TL_MPI(MPI_Get_accumulate(in, count, type->type, x->result + at, N, type->type, target,
                                  disp, N, type->type, what, w->win));
    } else {
        TL_MPI(MPI_Fetch_and_op(in, x->result + at, type->type, target, disp, what, w->win));
    }
}

static void issue_swaps(const tl_window_t *w, const predefined_t *type, int target, exchange_t *x)
{
    unsigned char *slot = tl_alloc((size_t)SLOT);

    fill_slot(type, slot, w->rank, target, false);
    memcpy(x->compare, slot + SWAPPED_CELL * CELL, PREDEFINED_MAX);
    memcpy(x->compare + PREDEFINED_MAX, slot + KEPT_CELL * CELL, PREDEFINED_MAX);
    x->compare[PREDEFINED_MAX] ^= 1;
    for (int i = 0; i < 2; i++) {
        MPI_Aint at = (SWAPPED_CELL + i) * CELL;

        TL_MPI(MPI_Compare_and_swap(x->origin + at, x->compare + i * PREDEFINED_MAX, x->result + at,
                                    type->type, target, tl_disp(w, target, w->rank * SLOT + at),
                                    w->win));
    }
    free(slot);
}

static void issue_all(const tl_window_t *w, const predefined_t *type, exchange_t *x)
{
    for (int target = 0; target < w->size; target++) {
        for (int op = 0; op < OPS; op++) {
            for (int call = 0; supported(type, op) && call < CALLS; call++)
                if (applies(type, op, call))
                    issue_call(w, type, target, op, call, &x[target]);
        }
        if (type->class & swappable)
            issue_swaps(w, type, target, &x[target]);
    }
}

/** Old values came back; cells without a result are as they were. */
static void check_results(const tl_window_t *w, const predefined_t *type, int target,
                          const exchange_t *x)
{
    unsigned char *old = tl_alloc((size_t)SLOT);

    fill_slot(type, old, w->rank, target, false);
    for (int op = 0; op < OPS; op++) {
        for (int call = GET_ACCUMULATE; supported(type, op) && call < CALLS; call++) {
            MPI_Aint at = cell_at(op, call);
            int count = call == FETCH_AND_OP ? 1 : N;

            if (applies(type, op, call)) {
                TL_CHECK(predefined_equal(type, x->result + at, old + at, count),
                         "%s %s %s of %s from %d", tl_kind_name(w->kind), call_names[call],
                         operations[op].name, type->name, target);
            }
        }
    }
    for (int i = 0; i < 2 && (type->class & swappable); i++) {
        MPI_Aint at = (SWAPPED_CELL + i) * CELL;

        TL_CHECK(predefined_equal(type, x->result + at, old + at, 1),
                 "%s compare_and_swap of %s from %d", tl_kind_name(w->kind), type->name, target);
    }
    free(old);
}

/** My memory after one origin's calls: the values, and everything between them. */
static void check_window(const tl_window_t *w, const predefined_t *type, int origin)
{
    unsigned char *want = tl_alloc((size_t)SLOT), *sent = tl_alloc((size_t)SLOT);
    const unsigned char *got = w->base + origin * SLOT;

    fill_slot(type, want, origin, w->rank, false);
    fill_slot(type, sent, origin, w->rank, true);
    for (int op = 0; op < OPS; op++) {
        for (int call = 0; supported(type, op) && call < CALLS; call++) {
            MPI_Aint at = cell_at(op, call);

            if (applies(type, op, call)) {
                apply(type, op, sent + at, want + at, call == FETCH_AND_OP ? 1 : N);
                TL_CHECK(predefined_equal(type, got + at, want + at, N), "%s %s %s of %s by %d",
                         tl_kind_name(w->kind), call_names[call], operations[op].name, type->name,
                         origin);
            }
        }
    }
    if (type->class & swappable) {
        predefined_copy(type, sent + SWAPPED_CELL * CELL, want + SWAPPED_CELL * CELL, 1);
        TL_CHECK(predefined_equal(type, got + SWAPPED_CELL * CELL, want + SWAPPED_CELL * CELL, 2) &&
                     predefined_equal(type, got + KEPT_CELL * CELL, want + KEPT_CELL * CELL, 2),
                 "%s compare_and_swap of %s by %d", tl_kind_name(w->kind), type->name, origin);
    }
    for (int cell = 0; cell < CELLS; cell++) {
        TL_CHECK(
            predefined_gaps_equal(type, got + cell * CELL, want + cell * CELL, N, (size_t)CELL),
            "%s bytes between %ss changed by %d", tl_kind_name(w->kind), type->name, origin);
    }
    free(want);
    free(sent);
}

static void try_type(const tl_window_t *w, const predefined_t *type, tl_sync_t sync, exchange_t *x)
{
    for (int r = 0; r < w->size; r++) {
        fill_slot(type, w->base + r * SLOT, r, w->rank, false);
        fill_slot(type, x[r].origin, w->rank, r, true);
        memset(x[r].result, 0x55, (size_t)SLOT);
    }
    tl_begin(w, sync);
    issue_all(w, type, x);
    tl_end(w, sync);
    for (int r = 0; r < w->size; r++) {
        check_results(w, type, r, &x[r]);
        check_window(w, type, r);
    }
    MPI_Barrier(w->comm);
}

int main(int argc, char **argv)
{
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    list_operations();
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind)) {
        tl_window_t w = tl_win_make(kind, tl_size() * SLOT, 1, MPI_COMM_WORLD, MPI_INFO_NULL);
        exchange_t *x = tl_alloc((size_t)w.size * sizeof(*x));
        predefined_t type;

        for (int i = 0; predefined_get(i, &type); i++)
            try_type(&w, &type, (tl_sync_t)(i % TL_SYNCS), x);
        free(x);
        tl_win_free(&w);
    }
    return tl_finish();
}
