/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 1-4 */
/* windows: create allocate dynamic shared */
/**
 * @file
 * All ranks work on the same locations at once, on their own as on those of others, by every
 * accumulate call: no update may be lost, no fetched value seen twice. A word that is stored by the
 * processor is never seen half.
 */
#include <stdlib.h>
#include <string.h>

#include "test/mpi/testlib.h"

#define UPDATES     150
#define LINE        64
#define LEAST_START 1e9

/**
 * The memory of each rank: one location of each kind, and an array. Windows may be less aligned
 * than this, so it is read and written by memcpy.
 */
typedef struct shared_values {
    _Alignas(LINE) int64_t counter; /**< + 1 by every call there is */
    _Alignas(LINE) int64_t swapped; /**< + 1 by compare_and_swap, accumulate and fetch_and_op */
    _Alignas(LINE) int32_t word;
    _Alignas(LINE) int16_t half;
    int8_t byte; /**< in the same word as half */
    _Alignas(LINE) long double extended;
    struct {
        double value;
        int index;
    } least;
    _Alignas(LINE) double field[64]; /**< every second one is added to */
} shared_values_t;

#define AT(w, target, member) tl_disp((w), (target), offsetof(shared_values_t, member))

/** What this rank did to each target, and what it saw. */
typedef struct tally {
    int64_t counter, swapped, word, half, byte, extended, field;
    double least;
    int64_t *seen; /**< values fetched from `counter` */
    int seen_n;
    int64_t last; /**< of them */
} tally_t;

/** One more on the counter that every call works on; the value before comes back in *old. */
static void count_up(const tl_window_t *w, int target, int how, int64_t *old)
{
    static const int64_t one = 1;
    MPI_Aint disp = AT(w, target, counter);

    *old = -1;
    if (how == 0) {
        TL_MPI(MPI_Accumulate(&one, 1, MPI_INT64_T, target, disp, 1, MPI_INT64_T, MPI_SUM, w->win));
    } else if (how == 1) {
        TL_MPI(MPI_Fetch_and_op(&one, old, MPI_INT64_T, target, disp, MPI_SUM, w->win));
    } else {
        TL_MPI(MPI_Get_accumulate(&one, 1, MPI_INT64_T, old, 1, MPI_INT64_T, target, disp, 1,
                                  MPI_INT64_T, MPI_SUM, w->win));
    }
}

/** Values that one rank fetches from one location rise. */
static void note(tally_t *t, int64_t value, int target)
{
    if (value >= 0) {
        TL_CHECK(value > t->last, "fetched %ld after %ld from %d", (long)value, (long)t->last,
                 target);
        t->last = value;
        t->seen[t->seen_n++] = value;
    }
}

/** Adds one by compare_and_swap, against others that do the same or simply add. */
static void swap_up(const tl_window_t *w, int target)
{
    MPI_Aint disp = AT(w, target, swapped);
    int64_t expected = 0, found = 0;

    TL_MPI(MPI_Fetch_and_op(NULL, &expected, MPI_INT64_T, target, disp, MPI_NO_OP, w->win));
    TL_MPI(MPI_Win_flush(target, w->win));
    while (true) {
        int64_t wanted = expected + 1;

        TL_MPI(MPI_Compare_and_swap(&wanted, &expected, &found, MPI_INT64_T, target, disp, w->win));
        TL_MPI(MPI_Win_flush(target, w->win));
        if (found == expected || tl_failed() > 0)
            return;
        expected = found;
    }
}

/** Operations whose sums are looked at in the end only. */
static void add_others(const tl_window_t *w, int target, int what, tally_t *t)
{
    static const int32_t word = 3;
    static const int16_t half = 5;
    static const int8_t byte = 7;
    static const int64_t one = 1;
    static const long double extended = 0.5L;

    switch (what) {
    case 0:
        TL_MPI(MPI_Accumulate(&word, 1, MPI_INT32_T, target, AT(w, target, word), 1, MPI_INT32_T,
                              MPI_SUM, w->win));
        t->word++;
        break;
    case 1:
        TL_MPI(MPI_Accumulate(&half, 1, MPI_INT16_T, target, AT(w, target, half), 1, MPI_INT16_T,
                              MPI_SUM, w->win));
        t->half++;
        break;
    case 2:
        TL_MPI(MPI_Accumulate(&byte, 1, MPI_INT8_T, target, AT(w, target, byte), 1, MPI_INT8_T,
                              MPI_SUM, w->win));
        t->byte++;
        break;
    case 3:
        TL_MPI(MPI_Accumulate(&extended, 1, MPI_LONG_DOUBLE, target, AT(w, target, extended), 1,
                              MPI_LONG_DOUBLE, MPI_SUM, w->win));
        t->extended++;
        break;
    default:
        TL_MPI(MPI_Accumulate(&one, 1, MPI_INT64_T, target, AT(w, target, swapped), 1, MPI_INT64_T,
                              MPI_SUM, w->win));
        t->swapped++;
        break;
    }
}

/** A derived type on one of two sides or on both, all elements in one call. */
static void add_field(const tl_window_t *w, int target, MPI_Datatype every_second, int i,
                      tally_t *t)
{
    static double ones[64];

    MPI_Datatype origin = i % 2 ? MPI_DOUBLE : every_second;

    for (int k = 0; ones[0] == 0 && k < 64; k++)
        ones[63 - k] = 1;
    TL_MPI(MPI_Accumulate(ones, i % 2 ? 32 : 1, origin, target, AT(w, target, field), 1,
                          every_second, MPI_SUM, w->win));
    t->field++;
}

static void note_least(const tl_window_t *w, int target, int i, tally_t *t)
{
    struct {
        double value;
        int index;
    } mine = {100000.0 - w->size * i - w->rank, w->rank};

    TL_MPI(MPI_Accumulate(&mine, 1, MPI_DOUBLE_INT, target, AT(w, target, least), 1, MPI_DOUBLE_INT,
                          MPI_MINLOC, w->win));
    TL_MPI(MPI_Win_flush_local(target, w->win));
    t->least = mine.value < t->least ? mine.value : t->least;
}

/** One epoch of lock_all in which all ranks update all ranks, themselves included. */
static void hammer(const tl_window_t *w, MPI_Datatype every_second, tally_t *tallies, int updates)
{
    tl_rng_t rng = tl_rng(tl_seed(), (uint64_t)w->rank);

    for (int i = 0; i < updates; i++) {
        int target = (int)tl_range(&rng, 0, w->size - 1);
        tally_t *t = &tallies[target];
        int64_t old;

        count_up(w, target, (int)tl_range(&rng, 0, 2), &old);
        t->counter++;
        add_others(w, target, i % 5, t);
        add_field(w, target, every_second, i, t);
        if (i % 7 == 0)
            note_least(w, target, i, t);
        if (i % 3 == 0) {
            swap_up(w, target);
            t->swapped++;
        }
        TL_MPI(MPI_Win_flush(target, w->win));
        note(t, old, target);
    }
}

/** Fence and post-start: many calls to everybody in one epoch, results afterwards. */
static void hammer_actively(const tl_window_t *w, tl_sync_t sync, tally_t *tallies, int updates)
{
    int64_t *old = tl_alloc((size_t)updates * (size_t)w->size * sizeof(*old));

    tl_begin(w, sync);
    for (int i = 0; i < updates; i++) {
        for (int t = 0; t < w->size; t++) {
            count_up(w, t, i % 3, &old[i * w->size + t]);
            add_others(w, t, i % 5, &tallies[t]);
        }
    }
    tl_end(w, sync);
    for (int i = 0; i < updates; i++) {
        for (int t = 0; t < w->size; t++) {
            tallies[t].counter++;
            note(&tallies[t], old[i * w->size + t], t);
        }
    }
    free(old);
}

/** No value was fetched twice, by whomever, and all are below the total. */
static void check_distinct(const tl_window_t *w, const tally_t *t, int target, int64_t total)
{
    unsigned char *times = tl_alloc((size_t)total);
    int repeated = 0, beyond = 0;

    for (int i = 0; i < t->seen_n; i++)
        if (t->seen[i] < total)
            times[t->seen[i]]++;
        else
            beyond++;
    MPI_Allreduce(MPI_IN_PLACE, times, (int)total, MPI_UNSIGNED_CHAR, MPI_SUM, w->comm);
    for (int64_t i = 0; i < total; i++)
        repeated += times[i] > 1;
    TL_CHECK(repeated == 0 && beyond == 0, "%d values of rank %d fetched twice, %d too large",
             repeated, target, beyond);
    free(times);
}

static void check_sums(const tl_window_t *w, const tally_t *sum)
{
    shared_values_t *mine = tl_alloc(sizeof(*mine));
    int wrong = 0;

    memcpy(mine, w->base, sizeof(*mine));
    TL_CHECK(mine->counter == sum->counter, "counter %ld, not %ld", (long)mine->counter,
             (long)sum->counter);
    TL_CHECK(mine->swapped == sum->swapped, "swapped %ld, not %ld", (long)mine->swapped,
             (long)sum->swapped);
    TL_CHECK(mine->word == 3 * sum->word, "word %d", mine->word);
    TL_CHECK(mine->half == (int16_t)(5 * sum->half), "half %d", mine->half);
    TL_CHECK(mine->byte == (int8_t)(7 * sum->byte), "byte %d", mine->byte);
    TL_CHECK(mine->extended == 0.5L * (long double)sum->extended, "long double %Lg",
             mine->extended);
    TL_CHECK(mine->least.value == sum->least, "least %g, not %g", mine->least.value, sum->least);
    for (int i = 0; i < 64; i++)
        wrong += mine->field[i] != (i % 2 == 0 ? (double)sum->field : 0);
    TL_CHECK(wrong == 0, "%d of 64 doubles wrong; the first %g of %ld", wrong, mine->field[0],
             (long)sum->field);
    free(mine);
}

/** Everybody's tallies of one target together. */
static tally_t add_tallies(const tl_window_t *w, const tally_t *t)
{
    int64_t mine[] = {t->counter, t->swapped, t->word, t->half, t->byte, t->extended, t->field};
    int64_t sum[7];
    double least;

    MPI_Allreduce(mine, sum, 7, MPI_INT64_T, MPI_SUM, w->comm);
    MPI_Allreduce(&t->least, &least, 1, MPI_DOUBLE, MPI_MIN, w->comm);
    return (tally_t){.counter = sum[0],
                     .swapped = sum[1],
                     .word = sum[2],
                     .half = sum[3],
                     .byte = sum[4],
                     .extended = sum[5],
                     .field = sum[6],
                     .least = least};
}

static void check_all(const tl_window_t *w, const tally_t *tallies)
{
    for (int target = 0; target < w->size; target++) {
        tally_t sum = add_tallies(w, &tallies[target]);

        if (target == w->rank)
            check_sums(w, &sum);
        check_distinct(w, &tallies[target], target, sum.counter);
    }
}

/** What rank 0 stores into a word while others get it, with half a word before it: none is torn. */
static void try_tearing(tl_kind_t kind)
{
    enum { GETS = 300, STORES = 500000 };
    tl_window_t w = tl_win_make(kind, 64, 1, MPI_COMM_WORLD, MPI_INFO_NULL);
    int at = 16 - (int)((uintptr_t)w.base % sizeof(int64_t)), ended = 0, torn = 0;
    volatile int64_t *word = (volatile int64_t *)(void *)(w.base + at);
    _Alignas(8) unsigned char got[12];

    MPI_Bcast(&at, 1, MPI_INT, 0, w.comm);
    tl_begin(&w, TL_LOCK_ALL);
    while (w.rank == 0 && ended < w.size - 1) {
        int flag;

        for (int i = 0; i < STORES; i++)
            *word = -(i % 2);
        MPI_Iprobe(MPI_ANY_SOURCE, 0, w.comm, &flag, MPI_STATUS_IGNORE);
        if (flag)
            MPI_Recv(NULL, 0, MPI_BYTE, MPI_ANY_SOURCE, 0, w.comm, MPI_STATUS_IGNORE);
        ended += flag;
    }
    for (int i = 0; w.rank > 0 && i < GETS; i++) {
        int64_t value;

        TL_MPI(MPI_Get(got, 12, MPI_BYTE, 0, tl_disp(&w, 0, at - 4), 12, MPI_BYTE, w.win));
        TL_MPI(MPI_Win_flush(0, w.win));
        memcpy(&value, got + 4, sizeof(value));
        torn += value != 0 && value != -1;
    }
    TL_CHECK(torn == 0, "%d of %d are torn", torn, GETS);
    if (w.rank > 0)
        MPI_Send(NULL, 0, MPI_BYTE, 0, 0, w.comm);
    tl_end(&w, TL_LOCK_ALL);
    tl_win_free(&w);
}

static void try_kind(tl_kind_t kind)
{
    tl_window_t w = tl_win_make(kind, sizeof(shared_values_t), 1, MPI_COMM_WORLD, MPI_INFO_NULL);
    tally_t *tallies = tl_alloc((size_t)w.size * sizeof(*tallies));
    int updates = UPDATES * tl_factor();
    MPI_Datatype every_second;

    MPI_Type_vector(32, 1, 2, MPI_DOUBLE, &every_second);
    MPI_Type_commit(&every_second);
    memcpy(w.base + offsetof(shared_values_t, least.value), &(double){LEAST_START}, sizeof(double));
    for (int t = 0; t < w.size; t++) {
        tallies[t].seen = tl_alloc((size_t)updates * 3 * sizeof(int64_t));
        tallies[t].last = -1;
        tallies[t].least = LEAST_START;
    }
    tl_begin(&w, TL_LOCK_ALL);
    hammer(&w, every_second, tallies, updates);
    tl_end(&w, TL_LOCK_ALL);
    hammer_actively(&w, TL_FENCE, tallies, updates / 3);
    hammer_actively(&w, TL_PSCW, tallies, updates / 3);
    hammer_actively(&w, TL_LOCK, tallies, updates / 3);
    check_all(&w, tallies);
    for (int t = 0; t < w.size; t++)
        free(tallies[t].seen);
    free(tallies);
    MPI_Type_free(&every_second);
    tl_win_free(&w);
}

int main(int argc, char **argv)
{
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind))
        try_kind(kind);
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind))
        try_tearing(kind);
    return tl_finish();
}
