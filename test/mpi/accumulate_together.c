/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-4 */
/* windows: create allocate dynamic shared */
/* threads: multiple */
/**
 * @file
 * All ranks, with two threads each, update memory of rank 0 at the same time: the same elements and
 * their own, contiguous and strided, by all calls mixed. Nothing may be lost, and what is fetched
 * must have been there. With every wish for the granularity of locks. Every operation on every
 * type: accumulate_ops.
 */
#include <complex.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "test/mpi/rma.h"
#include "test/mpi/testlib.h"

enum { THREADS = 2, ELEMENTS = 12, TIMES = 3, ROUNDS = 4 };

/** How the elements lie at the target. */
typedef enum shape { PLAIN, STRIDED, SHAPES } shape_t;

static const char *const shape_names[] = {"plain", "strided"};

/** Bytes from one element to the next. */
static MPI_Aint step_of(shape_t shape, MPI_Aint extent)
{
    return shape == STRIDED ? 3 * extent : extent;
}

#define BYTES ((MPI_Aint)(3 * ELEMENTS * sizeof(value_t)))

static MPI_Datatype type_of(shape_t shape, MPI_Datatype element, MPI_Aint extent)
{
    MPI_Datatype type;

    MPI_Type_create_hvector(ELEMENTS, 1, step_of(shape, extent), element, &type);
    MPI_Type_commit(&type);
    return type;
}

/** Rank 0 has elements that all add to, and behind them those of each thread. */
typedef struct mixer {
    const tl_window_t *w;
    MPI_Datatype element;
    shape_t shape;
    int number; /**< of the thread, among all of all ranks */
} mixer_t;

/** A value as both types have it. */
typedef union value {
    int64_t integer;
    double floating;
} value_t;

static value_t value_of(const mixer_t *x, int64_t n)
{
    return x->element == MPI_INT64_T ? (value_t){.integer = n} : (value_t){.floating = (double)n};
}

static int64_t number_of(const mixer_t *x, value_t v)
{
    return x->element == MPI_INT64_T ? v.integer : (int64_t)v.floating;
}

static MPI_Aint place(const mixer_t *x, int i)
{
    return tl_disp(x->w, 0, i * step_of(x->shape, sizeof(value_t)));
}

static void add_to_all(const mixer_t *x, MPI_Datatype target, bool fetch)
{
    const MPI_Aint at = place(x, 0);
    value_t ones[ELEMENTS], got[ELEMENTS];

    for (int i = 0; i < ELEMENTS; i++)
        ones[i] = value_of(x, 1);
    if (fetch)
        TL_MPI(MPI_Get_accumulate(ones, ELEMENTS, x->element, got, ELEMENTS, x->element, 0, at, 1,
                                  target, MPI_SUM, x->w->win));
    else
        TL_MPI(MPI_Accumulate(ones, ELEMENTS, x->element, 0, at, 1, target, MPI_SUM, x->w->win));
    if (fetch)
        TL_MPI(MPI_Win_flush(0, x->w->win));
    else
        TL_MPI(MPI_Win_flush_local(0, x->w->win));
}

/** Adds one to one element, by that call; returns what was there, or -1. */
static int64_t add_to_one(const mixer_t *x, int i, rma_t call)
{
    value_t one = value_of(x, 1), got = value_of(x, -1);
    const rma_given_t g = rma_plain(&one, &got, 1, x->element, 0, place(x, i), x->w->win);

    TL_MPI(rma_call_and_wait(call, &g));
    TL_MPI(rma_fetches(call) ? MPI_Win_flush(0, g.win) : MPI_Win_flush_local(0, g.win));
    return number_of(x, got);
}

/** The same by compare and swap, until it has worked. */
static void swap_one(const mixer_t *x, int i)
{
    int64_t seen, next, was = 0;

    do {
        seen = was;
        next = seen + 1;
        TL_MPI(MPI_Compare_and_swap(&next, &seen, &was, MPI_INT64_T, 0, place(x, i), x->w->win));
        TL_MPI(MPI_Win_flush(0, x->w->win));
    } while (was != seen);
}

/** Every element gets ROUNDS from each thread in one way or another. */
static void *mix(void *arg)
{
    static const rma_t calls[] = {RMA_FETCH_AND_OP, RMA_ACCUMULATE, RMA_GET_ACCUMULATE,
                                  RMA_RGET_ACCUMULATE, RMA_RACCUMULATE};

    const mixer_t *x = arg;
    MPI_Datatype target = type_of(x->shape, x->element, sizeof(value_t));
    int64_t last[ELEMENTS];

    for (int i = 0; i < ELEMENTS; i++)
        last[i] = -1;
    for (int k = 0; k < ROUNDS; k++) {
        if ((k + x->number) % 2 == 0) {
            add_to_all(x, target, k % 4 < 2);
            continue;
        }
        for (int i = 0; i < ELEMENTS; i++) {
            if (x->element == MPI_INT64_T && i % 6 == 5) {
                swap_one(x, i);
                continue;
            }
            const int64_t was = add_to_one(x, i, calls[(i + k / 2) % 5]);

            if (was < 0)
                continue;
            TL_CHECK(was > last[i], "%ld after %ld at %d", (long)was, (long)last[i], i);
            last[i] = was;
        }
    }
    MPI_Type_free(&target);
    return NULL;
}

static void run_mixed(const tl_window_t *w, MPI_Datatype element, shape_t shape)
{
    mixer_t mixers[THREADS];
    pthread_t threads[THREADS];

    MPI_Barrier(w->comm);
    TL_MPI(MPI_Win_lock_all(0, w->win));
    memset(w->base, 0, (size_t)w->bytes);
    TL_MPI(MPI_Win_sync(w->win));
    MPI_Barrier(w->comm);
    for (int i = 0; i < THREADS; i++) {
        mixers[i] = (mixer_t){w, element, shape, w->rank * THREADS + i};
        if (pthread_create(&threads[i], NULL, mix, &mixers[i]) != 0)
            tl_die("no thread");
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    TL_MPI(MPI_Win_unlock_all(w->win));
    MPI_Barrier(w->comm);
    for (int i = 0; i < ELEMENTS && w->rank == 0; i++) {
        value_t v;

        memcpy(&v, w->base + i * step_of(shape, sizeof(value_t)), sizeof(v));
        TL_CHECK(number_of(&mixers[0], v) == ROUNDS * THREADS * w->size, "%s, %s: %ld at %d",
                 element == MPI_DOUBLE ? "double" : "int64", shape_names[shape],
                 (long)number_of(&mixers[0], v), i);
    }
}

int main(int argc, char **argv)
{
    static const char *const wishes[] = {NULL, "64", "4096"};

    tl_init(&argc, &argv, MPI_THREAD_MULTIPLE);
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind)) {
        /* Wishes count where memory is mapped. */
        const size_t n =
            kind == TL_ALLOCATE || kind == TL_SHARED ? sizeof(wishes) / sizeof(wishes[0]) : 1;

        for (size_t i = 0; i < n; i++) {
            MPI_Info info;

            MPI_Info_create(&info);
            if (wishes[i] != NULL)
                MPI_Info_set(info, "mpi_accumulate_granularity", wishes[i]);
            tl_window_t w = tl_win_make(kind, BYTES, 1, MPI_COMM_WORLD, info);

            for (shape_t shape = PLAIN; shape < SHAPES; shape++) {
                run_mixed(&w, MPI_INT64_T, shape);
                run_mixed(&w, MPI_DOUBLE, shape);
            }
            MPI_Info_free(&info);
            tl_win_free(&w);
        }
    }
    return tl_finish();
}
