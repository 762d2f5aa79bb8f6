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
 * their own, contiguous, strided and not aligned, with every pair of operation and type whose
 * result does not depend on the order, and by all calls mixed. Nothing may be lost, and what is
 * fetched must have been there. With every wish for the granularity of locks.
 */
#include <complex.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "test/mpi/testlib.h"

enum { THREADS = 2, ELEMENTS = 12, WIDEST = 32, TIMES = 3, ROUNDS = 4 };

/** How the elements lie at the target. */
typedef enum shape { PLAIN, STRIDED, ODD, SHAPES } shape_t;

static const char *const shape_names[] = {"plain", "strided", "odd"};

/** Bytes from one element to the next. An odd place takes one byte more at its beginning. */
static MPI_Aint step_of(shape_t shape, MPI_Aint extent)
{
    return shape == STRIDED ? 3 * extent : extent;
}

#define BYTES ((MPI_Aint)(3 * ELEMENTS * WIDEST + 64))

static MPI_Datatype type_of(shape_t shape, MPI_Datatype element, MPI_Aint extent)
{
    MPI_Datatype type;

    MPI_Type_create_hvector(ELEMENTS, 1, step_of(shape, extent), element, &type);
    MPI_Type_commit(&type);
    return type;
}

/* ---- every pair ---- */

/** An operation on a type: each update is with the same value. */
typedef struct pair {
    const char *name;
    MPI_Datatype type;
    MPI_Op op;
    size_t size;
    const void *start, *value;
    const void *end; /**< after any number of updates; NULL: it is the start and their number */
} pair_t;

#define SOME(T, v)                                                                                 \
    &(const T)                                                                                     \
    {                                                                                              \
        v                                                                                          \
    }
#define INTEGER(T, type)                                                                           \
    {#T " sum", type, MPI_SUM, sizeof(T), SOME(T, 0), SOME(T, 1), NULL},                           \
        {#T " prod", type, MPI_PROD, sizeof(T), SOME(T, 7), SOME(T, 1), SOME(T, 7)},               \
        {#T " max", type, MPI_MAX, sizeof(T), SOME(T, 3), SOME(T, 9), SOME(T, 9)},                 \
        {#T " min", type, MPI_MIN, sizeof(T), SOME(T, 9), SOME(T, 3), SOME(T, 3)},                 \
        {#T " band", type, MPI_BAND, sizeof(T), SOME(T, 0x7e), SOME(T, 0x5a), SOME(T, 0x5a)},      \
        {#T " bor", type, MPI_BOR, sizeof(T), SOME(T, 0x41), SOME(T, 0x12), SOME(T, 0x53)},        \
        {#T " land", type, MPI_LAND, sizeof(T), SOME(T, 5), SOME(T, 2), SOME(T, 1)},               \
        {#T " lor", type, MPI_LOR, sizeof(T), SOME(T, 0), SOME(T, 2), SOME(T, 1)},                 \
    {                                                                                              \
#T " replace", type, MPI_REPLACE, sizeof(T), SOME(T, 0), SOME(T, 77), SOME(T, 77)          \
    }
#define FLOATING(T, type)                                                                          \
    {#T " sum", type, MPI_SUM, sizeof(T), SOME(T, 0), SOME(T, 1), NULL},                           \
        {#T " prod", type, MPI_PROD, sizeof(T), SOME(T, 7), SOME(T, 1), SOME(T, 7)},               \
        {#T " max", type, MPI_MAX, sizeof(T), SOME(T, 3), SOME(T, 9), SOME(T, 9)},                 \
        {#T " min", type, MPI_MIN, sizeof(T), SOME(T, 9), SOME(T, 3), SOME(T, 3)},                 \
    {                                                                                              \
#T " replace", type, MPI_REPLACE, sizeof(T), SOME(T, 0), SOME(T, 77), SOME(T, 77)          \
    }

typedef double _Complex complex_t;
typedef struct double_int {
    double value;
    int index;
} double_int_t;
typedef struct two_int {
    int value, index;
} two_int_t;

/** All pairs, in `list`; how many? The handles are no constants. */
static size_t all_pairs(const pair_t **list)
{
    const pair_t pairs[] = {
        INTEGER(int8_t, MPI_INT8_T),
        INTEGER(uint8_t, MPI_UINT8_T),
        INTEGER(int16_t, MPI_INT16_T),
        INTEGER(uint16_t, MPI_UINT16_T),
        INTEGER(int32_t, MPI_INT32_T),
        INTEGER(uint32_t, MPI_UINT32_T),
        INTEGER(int64_t, MPI_INT64_T),
        INTEGER(uint64_t, MPI_UINT64_T),
        INTEGER(long, MPI_LONG),
        FLOATING(float, MPI_FLOAT),
        FLOATING(double, MPI_DOUBLE),
        {"complex sum", MPI_C_DOUBLE_COMPLEX, MPI_SUM, sizeof(complex_t), SOME(complex_t, 0),
         SOME(complex_t, 1), NULL},
        {"bool lor", MPI_C_BOOL, MPI_LOR, sizeof(bool), SOME(bool, false), SOME(bool, true),
         SOME(bool, true)},
        {"2int maxloc", MPI_2INT, MPI_MAXLOC, sizeof(two_int_t), &(const two_int_t){1, 8},
         &(const two_int_t){5, 6}, &(const two_int_t){5, 6}},
    };
    pair_t *copy = tl_alloc(sizeof(pairs));

    /* What they point at lives as long as this function. */
    memcpy(copy, pairs, sizeof(pairs));
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        unsigned char *values = tl_alloc(3 * WIDEST);
        const void *from[] = {pairs[i].start, pairs[i].value, pairs[i].end};

        for (int k = 0; k < 3; k++)
            if (from[k] != NULL)
                memcpy(values + k * WIDEST, from[k], pairs[i].size);
        copy[i].start = values;
        copy[i].value = values + WIDEST;
        copy[i].end = from[2] != NULL ? values + 2 * WIDEST : NULL;
    }
    *list = copy;
    return sizeof(pairs) / sizeof(pairs[0]);
}

static void free_pairs(const pair_t *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free((void *)(uintptr_t)list[i].start);
    free((void *)(uintptr_t)list);
}

/** So many ones, as the type has them. */
static void count_in(const pair_t *p, int n, void *to)
{
    memset(to, 0, p->size);
    if (p->type == MPI_FLOAT)
        *(float *)to = (float)n;
    else if (p->type == MPI_DOUBLE)
        *(double *)to = n;
    else if (p->type == MPI_C_DOUBLE_COMPLEX)
        *(complex_t *)to = n;
    else
        memcpy(to, &(uint64_t){(uint64_t)n}, p->size); /* little-endian, as all machines here */
}

static void run_pair(const tl_window_t *w, const pair_t *p, shape_t shape)
{
    const MPI_Aint extent = (MPI_Aint)p->size, begin = shape == ODD ? 1 : 0;
    MPI_Datatype target = type_of(shape, p->type, extent);
    _Alignas(16) unsigned char values[ELEMENTS * WIDEST], want[WIDEST];

    for (int i = 0; i < ELEMENTS; i++)
        memcpy(values + (size_t)i * p->size, p->value, p->size);
    TL_MPI(MPI_Win_fence(0, w->win));
    for (int i = 0; i < ELEMENTS && w->rank == 0; i++)
        memcpy(w->base + begin + i * step_of(shape, extent), p->start, p->size);
    TL_MPI(MPI_Win_fence(0, w->win));
    for (int i = 0; i < TIMES; i++)
        TL_MPI(MPI_Accumulate(values, ELEMENTS, p->type, 0, tl_disp(w, 0, begin), 1, target, p->op,
                              w->win));
    TL_MPI(MPI_Win_fence(0, w->win));
    if (p->end != NULL)
        memcpy(want, p->end, p->size);
    else
        count_in(p, TIMES * w->size, want);
    for (int i = 0; i < ELEMENTS && w->rank == 0; i++)
        TL_CHECK(memcmp(w->base + begin + i * step_of(shape, extent), want, p->size) == 0,
                 "%s, %s: element %d", p->name, shape_names[shape], i);
    MPI_Type_free(&target);
}

static void run_pairs(const tl_window_t *w)
{
    const pair_t *list;
    const size_t n = all_pairs(&list);

    for (size_t i = 0; i < n; i++)
        for (shape_t shape = PLAIN; shape < SHAPES; shape++)
            /* Not all functions of Open MPI take elements that are not aligned. */
            run_pair(w, &list[i], shape);
    free_pairs(list, n);
}

/* ---- all calls ---- */

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
static int64_t add_to_one(const mixer_t *x, int i, int call)
{
    const MPI_Aint at = place(x, i);
    const value_t one = value_of(x, 1);
    MPI_Win win = x->w->win;
    value_t got = value_of(x, -1);
    MPI_Request request;

    switch (call) {
    case 0:
        TL_MPI(MPI_Fetch_and_op(&one, &got, x->element, 0, at, MPI_SUM, win));
        break;
    case 1:
        TL_MPI(MPI_Accumulate(&one, 1, x->element, 0, at, 1, x->element, MPI_SUM, win));
        break;
    case 2:
        TL_MPI(MPI_Get_accumulate(&one, 1, x->element, &got, 1, x->element, 0, at, 1, x->element,
                                  MPI_SUM, win));
        break;
    case 3:
        TL_MPI(MPI_Rget_accumulate(&one, 1, x->element, &got, 1, x->element, 0, at, 1, x->element,
                                   MPI_SUM, win, &request));
        TL_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
        break;
    default:
        TL_MPI(MPI_Raccumulate(&one, 1, x->element, 0, at, 1, x->element, MPI_SUM, win, &request));
        TL_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
    TL_MPI(call == 1 ? MPI_Win_flush_local(0, win) : MPI_Win_flush(0, win));
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
            const int64_t was = add_to_one(x, i, (i + k / 2) % 5);

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
    static const char *const wishes[4] = {NULL, "8", "64", "4096"};

    tl_init(&argc, &argv, MPI_THREAD_MULTIPLE);
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind)) {
        /* Wishes count where memory is mapped. */
        const size_t n = kind == TL_ALLOCATE || kind == TL_SHARED ? 4 : 1;

        for (size_t i = 0; i < n; i++) {
            MPI_Info info;

            MPI_Info_create(&info);
            if (wishes[i] != NULL)
                MPI_Info_set(info, "mpi_accumulate_granularity", wishes[i]);
            tl_window_t w = tl_win_make(kind, BYTES, 1, MPI_COMM_WORLD, info);

            run_pairs(&w);
            for (shape_t shape = PLAIN; shape < ODD; shape++) {
                run_mixed(&w, MPI_INT64_T, shape);
                run_mixed(&w, MPI_DOUBLE, shape);
            }
            MPI_Info_free(&info);
            tl_win_free(&w);
        }
    }
    return tl_finish();
}
