/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 1-4 */
/* windows: create allocate dynamic shared */
/* arguments: checked */
/* arguments: unchecked */
/**
 * @file
 * Types that MPI does not allow in MPI_Compare_and_swap and MPI_Fetch_and_op, and operations that
 * are not defined for a type: every predefined type, and what is made from each. The call itself
 * returns the error, the window's handler is called for it once, and nothing is moved. So it is
 * where Open MPI was told not to look at parameters, as some do for speed (unchecked).
 */
#include <stdlib.h>
#include <string.h>

#include "test/mpi/predefined.h"
#include "test/mpi/rma.h"
#include "test/mpi/testlib.h"

/** Bytes of a rank's memory for each origin. */
#define CELL ((MPI_Aint)(2 * PREDEFINED_MAX))

/** What a target's memory is filled with, and the origin's. */
enum { THERE = 0, NEW = 1, COMPARE = 2, NOTHING = 3 };

/** What MPI-4.1, 12.3.4, says of MPI_Compare_and_swap. MPI_CHAR is taken, too: programs use it. */
static const unsigned swappable =
    PREDEFINED_INTEGER | PREDEFINED_OTHER_INTEGER | PREDEFINED_LOGICAL | PREDEFINED_BYTE;

static unsigned char new_value[CELL], compared[CELL], result[CELL], there[CELL];

/* ---- the handler ----------------------------------------------------------------------------- */

static int calls, last_class;

static void handler(MPI_Win *win, int *code, ...)
{
    (void)win;
    calls++;
    last_class = tl_class(*code);
}

/* ---- checks ---------------------------------------------------------------------------------- */

/** Where this rank's cell is at a target. */
static MPI_Aint cell(const tl_window_t *w, int target)
{
    return tl_disp(w, target, w->rank * CELL);
}

static void begin(void)
{
    memset(new_value, NEW, sizeof(new_value));
    memset(compared, COMPARE, sizeof(compared));
    memset(result, NOTHING, sizeof(result));
    calls = 0;
    last_class = MPI_SUCCESS;
}

/** After a call that `code` is of: was it as wanted, and where it was refused, is all as it was? */
static void check(const tl_window_t *w, int target, int code, int want, const char *what,
                  const char *type)
{
    const int class = tl_class(code);

    TL_CHECK(class == want, "%s %s of %s at %d: class %d in place of %d", tl_kind_name(w->kind),
             what, type, target, class, want);
    TL_CHECK(calls == (class != MPI_SUCCESS) && last_class == class,
             "%s of %s: the handler was called %d times, class %d", what, type, calls, last_class);
    TL_MPI(MPI_Win_flush(target, w->win));
    if (class == MPI_SUCCESS)
        return;
    TL_FILL(result, NOTHING, sizeof(result), "%s of %s was refused and fetched", what, type);
    TL_MPI(
        MPI_Get(there, (int)CELL, MPI_BYTE, target, cell(w, target), (int)CELL, MPI_BYTE, w->win));
    TL_MPI(MPI_Win_flush(target, w->win));
    TL_FILL(there, THERE, sizeof(there), "%s of %s was refused and stored", what, type);
}

/** Sets memory back to what it was. */
static void restore(const tl_window_t *w, int target)
{
    memset(there, THERE, sizeof(there));
    TL_MPI(
        MPI_Put(there, (int)CELL, MPI_BYTE, target, cell(w, target), (int)CELL, MPI_BYTE, w->win));
    TL_MPI(MPI_Win_flush(target, w->win));
}

/* ---- calls ----------------------------------------------------------------------------------- */

static void swap(const tl_window_t *w, int target, MPI_Datatype type, const char *name, int want)
{
    begin();
    const int code =
        MPI_Compare_and_swap(new_value, compared, result, type, target, cell(w, target), w->win);
    check(w, target, code, want, "compare_and_swap", name);
}

static void fetch(const tl_window_t *w, int target, MPI_Datatype type, MPI_Op op, const char *name,
                  int want)
{
    begin();
    const int code = MPI_Fetch_and_op(new_value, result, type, target, cell(w, target), op, w->win);
    check(w, target, code, want, "fetch_and_op", name);
    if (code == MPI_SUCCESS)
        restore(w, target);
}

/** The same by the calls that take types that are made of predefined ones. */
static void accumulate(const tl_window_t *w, int target, MPI_Datatype type, MPI_Op op,
                       const char *name, int want)
{
    rma_given_t g = rma_plain(new_value, result, 1, type, target, cell(w, target), w->win);
    MPI_Request r = MPI_REQUEST_NULL;

    g.op = op;
    for (rma_t call = RMA_PUT; call < RMA_CALLS; call++) {
        if (!rma_has_op(call) || rma_is_single(call) || (op == MPI_NO_OP && !rma_fetches(call)))
            continue;
        begin();
        check(w, target, rma_call(call, &g, &r), want, rma_names[call], name);
        TL_MPI(MPI_Wait(&r, MPI_STATUS_IGNORE));
        restore(w, target);
    }
}

/* ---- tables ---------------------------------------------------------------------------------- */

static void own_operation(void *in, void *inout, int *n, MPI_Datatype *type)
{
    (void)in, (void)inout, (void)n, (void)type;
    TL_CHECK(false, "an operation of the program was called");
}

static MPI_Op own;
/** Open MPI does not look at parameters. */
static bool unchecked;

/** Has this MPI a function for it? As its reductions say, which look at that before all else, if
 *  they look at parameters. */
static bool reduces(const predefined_t *type, MPI_Op op)
{
    unsigned char in[PREDEFINED_MAX] = {0}, inout[PREDEFINED_MAX] = {0};

    if (unchecked)
        return op == MPI_MAX || op == MPI_SUM ||
               (type->class == PREDEFINED_INTEGER && op != MPI_MINLOC);
    return MPI_Reduce_local(in, inout, 1, type->type, op) == MPI_SUCCESS;
}

static void try_operations(const tl_window_t *w, int target, const predefined_t *type,
                           MPI_Datatype twice)
{
    const MPI_Op ops[] = {MPI_MAX,  MPI_SUM,    MPI_LAND,    MPI_BOR,
                          MPI_LXOR, MPI_MINLOC, MPI_REPLACE, MPI_NO_OP};

    for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
        const bool moves = ops[i] == MPI_REPLACE || ops[i] == MPI_NO_OP;
        const int want = moves || reduces(type, ops[i]) ? MPI_SUCCESS : MPI_ERR_OP;

        fetch(w, target, type->type, ops[i], type->name, want);
        accumulate(w, target, type->type, ops[i], type->name, want);
        accumulate(w, target, twice, ops[i], type->name, want);
    }
    fetch(w, target, type->type, own, type->name, MPI_ERR_OP);
    accumulate(w, target, type->type, own, type->name, MPI_ERR_OP);
}

static void try_made(const tl_window_t *w, int target, MPI_Datatype made, const char *name)
{
    swap(w, target, made, name, MPI_ERR_TYPE);
    fetch(w, target, made, MPI_SUM, name, MPI_ERR_TYPE);
    fetch(w, target, made, MPI_REPLACE, name, MPI_ERR_TYPE);
    fetch(w, target, made, MPI_NO_OP, name, MPI_ERR_TYPE);
}

static void try_type(const tl_window_t *w, int target, const predefined_t *type)
{
    MPI_Datatype same, one, two;

    MPI_Type_dup(type->type, &same);
    MPI_Type_contiguous(1, type->type, &one);
    MPI_Type_commit(&one);
    MPI_Type_contiguous(2, type->type, &two);
    MPI_Type_commit(&two);
    swap(w, target, type->type, type->name,
         (type->class & swappable) != 0 || type->type == MPI_CHAR ? MPI_SUCCESS : MPI_ERR_TYPE);
    if (!unchecked || type->class == PREDEFINED_INTEGER || type->class == PREDEFINED_FLOAT)
        try_operations(w, target, type, two);
    try_made(w, target, same, type->name);
    try_made(w, target, one, type->name);
    MPI_Type_free(&same);
    MPI_Type_free(&one);
    MPI_Type_free(&two);
}

/** Types without a place in the table. */
static void try_others(const tl_window_t *w, int target)
{
    MPI_Datatype integer, real;

    swap(w, target, MPI_PACKED, "PACKED", MPI_ERR_TYPE);
    fetch(w, target, MPI_PACKED, MPI_SUM, "PACKED", MPI_ERR_OP);
    try_made(w, target, MPI_DATATYPE_NULL, "DATATYPE_NULL");
    TL_MPI(MPI_Type_create_f90_integer(9, &integer));
    TL_MPI(MPI_Type_create_f90_real(6, 30, &real));
    swap(w, target, integer, "f90_integer", MPI_SUCCESS);
    swap(w, target, real, "f90_real", MPI_ERR_TYPE);
    fetch(w, target, integer, MPI_SUM, "f90_integer", MPI_SUCCESS);
    fetch(w, target, real, MPI_SUM, "f90_real", MPI_SUCCESS);
    fetch(w, target, real, MPI_BAND, "f90_real", MPI_ERR_OP);
}

/** Refused whatever the type is, and a type of two kinds whatever the operation is. */
static void try_nothing(const tl_window_t *w, int target)
{
    const MPI_Aint places[] = {0, 4};
    const MPI_Datatype both[] = {MPI_INT, MPI_FLOAT};
    const int ones[] = {1, 1};
    rma_given_t g = rma_plain(new_value, result, 1, MPI_INT, target, cell(w, target), w->win);
    MPI_Request r = MPI_REQUEST_NULL;
    MPI_Datatype mixed;

    MPI_Type_create_struct(2, ones, places, both, &mixed);
    MPI_Type_commit(&mixed);
    /* Open MPI calls it an argument. */
    if (unchecked)
        accumulate(w, target, mixed, MPI_SUM, "int and float", MPI_ERR_TYPE);
    fetch(w, target, MPI_INT, MPI_OP_NULL, "INT and no operation", MPI_ERR_OP);
    g.op = MPI_NO_OP;
    begin();
    check(w, target, rma_call(RMA_ACCUMULATE, &g, NULL), MPI_ERR_OP, "accumulate", "nothing");
    begin();
    check(w, target, rma_call(RMA_RACCUMULATE, &g, &r), MPI_ERR_OP, "raccumulate", "nothing");
    MPI_Type_free(&mixed);
}

static void try_target(const tl_window_t *w, int target)
{
    predefined_t type;

    TL_MPI(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, w->win));
    for (int i = 0; predefined_get(i, &type); i++)
        try_type(w, target, &type);
    try_others(w, target);
    try_nothing(w, target);
    TL_MPI(MPI_Win_unlock(target, w->win));
}

int main(int argc, char **argv)
{
    MPI_Errhandler mine;

    for (int i = 1; i < argc; i++)
        unchecked = unchecked || strcmp(argv[i], "unchecked") == 0;
    if (unchecked && setenv("OMPI_MCA_mpi_param_check", "0", 1) != 0)
        return TL_EXIT_FAILED;
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    MPI_Op_create(own_operation, 1, &own);
    MPI_Win_create_errhandler(handler, &mine);
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind)) {
        tl_window_t w = tl_win_make(kind, tl_size() * CELL, 1, MPI_COMM_WORLD, MPI_INFO_NULL);

        memset(w.base, THERE, (size_t)(w.size * CELL));
        MPI_Win_set_errhandler(w.win, mine);
        MPI_Barrier(w.comm);
        try_target(&w, (w.rank + 1) % w.size);
        try_target(&w, w.rank);
        MPI_Win_set_errhandler(w.win, MPI_ERRORS_RETURN);
        MPI_Barrier(w.comm);
        tl_win_free(&w);
    }
    MPI_Errhandler_free(&mine);
    MPI_Op_free(&own);
    return tl_finish();
}
