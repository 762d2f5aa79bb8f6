/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 1-4 */
/* windows: create allocate dynamic */
/* methods: auto pack pipeline */
/**
 * @file
 * Long accumulates, which go through receive buffers of the target where the pipeline is chosen,
 * and short ones behind them, alone and in bursts, with nothing between them: those of one origin
 * take effect in program order, however they travel. Every origin has a slot of its own at every
 * target, with a model of what must be in it, and all add to one more slot.
 */
#include <stdlib.h>
#include <string.h>

#include "test/mpi/counter.h"
#include "test/mpi/testlib.h"

/** Integers of a slot, of most short operations, and short ones behind a long one. */
#define LONGS ((int)(tl_slow() ? 1 << 17 : 1 << 19))
#define FEW   6
#define BURST 48

typedef enum call { UPDATE, FETCH_ONE, FETCH_FEW, SWAP, CALLS } call_t;

/** A short operation: what it has, and what it must have found. */
typedef struct step {
    call_t call;
    MPI_Op op;
    int at, n;
    int64_t in[FEW], compare, got[FEW], expected[FEW];
} step_t;

/** My slot at one target. */
typedef struct slot {
    const tl_window_t *w;
    int target;
    int64_t *model, *source, *read;
    MPI_Datatype gaps; /**< every second integer of a slot */
    tl_rng_t rng;
} slot_t;

static MPI_Aint slot_bytes(void)
{
    return (MPI_Aint)LONGS * (MPI_Aint)sizeof(int64_t);
}

/** The location of integer `i` of the slot of `rank`; the slot behind all is everybody's. */
static MPI_Aint at(const tl_window_t *w, int target, int rank, int i)
{
    return tl_disp(w, target, rank * slot_bytes() + i * (MPI_Aint)sizeof(int64_t));
}

static MPI_Aint mine(const slot_t *s, int i)
{
    return at(s->w, s->target, s->w->rank, i);
}

static void update(int64_t *to, MPI_Op op, int64_t value)
{
    if (op == MPI_REPLACE)
        *to = value;
    else if (op == MPI_SUM)
        *to += value;
}

/** All of the slot, or every second integer of it. `source` must not change before a flush. */
static void long_one(slot_t *s, int64_t *source, MPI_Op op, bool strided)
{
    const int n = strided ? LONGS / 2 : LONGS, step = strided ? 2 : 1;
    const int64_t first = tl_range(&s->rng, -1000, 1000) * LONGS;

    for (int i = 0; i < n; i++) {
        source[i] = first + i;
        update(&s->model[i * step], op, source[i]);
    }
    TL_MPI(MPI_Accumulate(source, n, MPI_INT64_T, s->target, mine(s, 0), strided ? 1 : n,
                          strided ? s->gaps : MPI_INT64_T, op, s->w->win));
}

/** Mostly near the end of the slot, which a long operation reaches last. */
static int some_place(slot_t *s, int n)
{
    const int span = tl_range(&s->rng, 0, 3) == 0 ? LONGS - n : 16;

    return LONGS - n - (int)tl_range(&s->rng, 0, span);
}

static void model_step(slot_t *s, step_t *t)
{
    for (int i = 0; i < t->n; i++) {
        int64_t *to = &s->model[t->at + i];

        t->expected[i] = *to;
        if (t->call != SWAP)
            update(to, t->op, t->in[i]);
        else if (*to == t->compare)
            *to = t->in[i];
    }
}

static void issue(slot_t *s, step_t *t)
{
    const MPI_Aint disp = mine(s, t->at);
    const MPI_Win win = s->w->win;

    if (t->call == UPDATE) {
        TL_MPI(MPI_Accumulate(t->in, t->n, MPI_INT64_T, s->target, disp, t->n, MPI_INT64_T, t->op,
                              win));
    } else if (t->call == FETCH_ONE) {
        TL_MPI(MPI_Fetch_and_op(t->in, t->got, MPI_INT64_T, s->target, disp, t->op, win));
    } else if (t->call == FETCH_FEW) {
        TL_MPI(MPI_Get_accumulate(t->in, t->n, MPI_INT64_T, t->got, t->n, MPI_INT64_T, s->target,
                                  disp, t->n, MPI_INT64_T, t->op, win));
    } else {
        TL_MPI(MPI_Compare_and_swap(t->in, &t->compare, t->got, MPI_INT64_T, s->target, disp, win));
    }
}

static void short_one(slot_t *s, step_t *t, call_t call)
{
    const bool one = call == FETCH_ONE || call == SWAP;
    const MPI_Op ops[] = {MPI_REPLACE, MPI_SUM, MPI_NO_OP};

    memset(t, 0, sizeof(*t));
    t->call = call;
    t->op = ops[tl_range(&s->rng, 0, call == UPDATE ? 1 : 2)];
    t->n = one ? 1 : (int)tl_range(&s->rng, 1, FEW);
    t->at = some_place(s, t->n);
    t->compare = s->model[t->at] + tl_range(&s->rng, 0, 1);
    for (int i = 0; i < t->n; i++)
        t->in[i] = tl_range(&s->rng, -1000, 1000);
    model_step(s, t);
    issue(s, t);
}

static void check_steps(const slot_t *s, const step_t *steps, int n)
{
    for (int i = 0; i < n; i++) {
        if (steps[i].call != UPDATE) {
            TL_BYTES(steps[i].got, steps[i].expected, (size_t)steps[i].n * sizeof(int64_t),
                     "fetched by call %d of a burst, number %d, on %d", (int)steps[i].call, i,
                     s->target);
        }
    }
}

static void check_slot(const slot_t *s, const char *what)
{
    TL_MPI(MPI_Get_accumulate(NULL, 0, MPI_BYTE, s->read, LONGS, MPI_INT64_T, s->target, mine(s, 0),
                              LONGS, MPI_INT64_T, MPI_NO_OP, s->w->win));
    TL_MPI(MPI_Win_flush(s->target, s->w->win));
    TL_BYTES(s->read, s->model, (size_t)slot_bytes(), "%s on %d", what, s->target);
}

/** One short operation of each call behind a long one. */
static void one_behind(slot_t *s, MPI_Op op, bool strided)
{
    step_t *t = tl_alloc(sizeof(*t));

    for (call_t call = UPDATE; call < CALLS; call++) {
        long_one(s, s->source, op, strided);
        short_one(s, t, call);
        TL_MPI(MPI_Win_flush(s->target, s->w->win));
        check_steps(s, t, 1);
    }
    check_slot(s, "a short one behind a long one");
    free(t);
}

/** A burst behind a long one, another long one behind that, and a burst again. */
static void bursts_behind(slot_t *s, MPI_Op op, bool strided, bool one_call)
{
    step_t *t = tl_alloc(2 * BURST * sizeof(*t));
    int64_t *second = tl_alloc((size_t)slot_bytes());
    int done = 0;

    long_one(s, s->source, op, strided);
    while (done < BURST)
        short_one(s, &t[done++], one_call ? FETCH_ONE : (call_t)tl_range(&s->rng, 0, CALLS - 1));
    long_one(s, second, MPI_SUM, !strided);
    while (done < 2 * BURST)
        short_one(s, &t[done++], one_call ? UPDATE : (call_t)tl_range(&s->rng, 0, CALLS - 1));
    TL_MPI(MPI_Win_flush(s->target, s->w->win));
    check_steps(s, t, done);
    check_slot(s, "bursts between long ones");
    free(second);
    free(t);
}

/** Elements of 12 bytes with gaps, which no slot holds a whole number of. */
static void odd_elements(slot_t *s)
{
    typedef struct pair {
        double value;
        int index;
    } pair_t;
    const int n = (int)(slot_bytes() / (MPI_Aint)sizeof(pair_t));
    pair_t *from = tl_alloc((size_t)slot_bytes()), *got = tl_alloc((size_t)slot_bytes());
    const pair_t last = {.value = -1, .index = -1};
    int wrong = 0;

    for (int i = 0; i < n; i++)
        from[i] = (pair_t){.value = i + s->w->rank, .index = i};
    TL_MPI(MPI_Accumulate(from, n, MPI_DOUBLE_INT, s->target, mine(s, 0), n, MPI_DOUBLE_INT,
                          MPI_REPLACE, s->w->win));
    TL_MPI(MPI_Accumulate(from + 1, n - 1, MPI_DOUBLE_INT, s->target, mine(s, 0), n - 1,
                          MPI_DOUBLE_INT, MPI_MAXLOC, s->w->win));
    TL_MPI(MPI_Accumulate(&last, 1, MPI_DOUBLE_INT, s->target,
                          mine(s, (n - 1) * (int)(sizeof(pair_t) / sizeof(int64_t))), 1,
                          MPI_DOUBLE_INT, MPI_REPLACE, s->w->win));
    TL_MPI(MPI_Get_accumulate(NULL, 0, MPI_BYTE, got, n, MPI_DOUBLE_INT, s->target, mine(s, 0), n,
                              MPI_DOUBLE_INT, MPI_NO_OP, s->w->win));
    TL_MPI(MPI_Win_flush(s->target, s->w->win));
    for (int i = 0; i < n; i++) {
        const pair_t *want = i == n - 1 ? &last : &from[i + 1];

        wrong += got[i].value != want->value || got[i].index != want->index;
    }
    TL_CHECK(wrong == 0, "%d of %d pairs are wrong on %d", wrong, n, s->target);
    free(from);
    free(got);
}

/** All add to the same integers of rank 0, long and short ones. */
static void together(const tl_window_t *w)
{
    int64_t *ones = tl_alloc((size_t)slot_bytes()), *got = tl_alloc((size_t)slot_bytes());
    int wrong = 0;

    for (int i = 0; i < LONGS; i++)
        ones[i] = 1;
    TL_MPI(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, w->win));
    for (int round = 0; round < 3; round++) {
        TL_MPI(MPI_Accumulate(ones, LONGS, MPI_INT64_T, 0, at(w, 0, w->size, 0), LONGS, MPI_INT64_T,
                              MPI_SUM, w->win));
        for (int i = 0; i < BURST; i++) {
            TL_MPI(MPI_Accumulate(ones, 1, MPI_INT64_T, 0, at(w, 0, w->size, LONGS - 1), 1,
                                  MPI_INT64_T, MPI_SUM, w->win));
        }
    }
    TL_MPI(MPI_Win_unlock(0, w->win));
    TL_MPI(MPI_Barrier(w->comm));
    TL_MPI(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, w->win));
    TL_MPI(MPI_Get(got, LONGS, MPI_INT64_T, 0, at(w, 0, w->size, 0), LONGS, MPI_INT64_T, w->win));
    TL_MPI(MPI_Win_unlock(0, w->win));
    for (int i = 0; i < LONGS; i++)
        wrong += got[i] != 3 * w->size + (i == LONGS - 1 ? 3 * BURST * w->size : 0);
    TL_CHECK(wrong == 0, "%d of %d sums are wrong", wrong, LONGS);
    free(ones);
    free(got);
}

static void try_target(const tl_window_t *w, int target)
{
    slot_t s = {.w = w, .target = target, .rng = tl_rng(tl_seed(), (uint64_t)w->rank)};

    s.model = tl_alloc((size_t)slot_bytes());
    s.source = tl_alloc((size_t)slot_bytes());
    s.read = tl_alloc((size_t)slot_bytes());
    TL_MPI(MPI_Type_vector(LONGS / 2, 1, 2, MPI_INT64_T, &s.gaps));
    TL_MPI(MPI_Type_commit(&s.gaps));
    TL_MPI(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, w->win));
    for (int strided = 0; strided < 2; strided++) {
        one_behind(&s, MPI_REPLACE, strided);
        one_behind(&s, MPI_SUM, strided);
        bursts_behind(&s, MPI_REPLACE, strided, true);
        bursts_behind(&s, MPI_SUM, strided, false);
    }
    odd_elements(&s);
    TL_MPI(MPI_Win_unlock(target, w->win));
    TL_MPI(MPI_Type_free(&s.gaps));
    free(s.model);
    free(s.source);
    free(s.read);
}

/** Where the pipeline is forced, something must have gone that way, or nothing was tested. */
static bool must_move(tl_kind_t kind)
{
    const char *method = getenv("OMPI_MCA_osc_nicstride_method");
    const char *node = getenv("OMPI_MCA_osc_nicstride_node");

    return method != NULL && strcmp(method, "pipeline") == 0 && kind != TL_ALLOCATE &&
           tl_size() > 1 && (node == NULL || strcmp(node, "0") != 0);
}

static void try_kind(tl_kind_t kind)
{
    tl_window_t w =
        tl_win_make(kind, (tl_size() + 1) * slot_bytes(), 1, MPI_COMM_WORLD, MPI_INFO_NULL);
    const bool one_host = tl_one_host();
    counter_t *moved = counter_begin("osc_nicstride_ops_pipeline");

    /* All at the same target, then each at another. */
    try_target(&w, 0);
    try_target(&w, (w.rank + 1) % w.size);
    if (moved != NULL && one_host && must_move(kind))
        TL_CHECK(counter_read(moved) > 0, "nothing went through slots");
    together(&w);
    counter_end(moved);
    tl_win_free(&w);
}

int main(int argc, char **argv)
{
    int provided;

    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind))
        try_kind(kind);
    MPI_T_finalize();
    return tl_finish();
}
