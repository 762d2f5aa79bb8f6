/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 1-4 */
/* windows: create allocate dynamic shared */
/**
 * @file
 * Many short operations of all kinds between two synchronisations, to all ranks by turns: those of
 * one origin travel together and must be done in their order, none lost and none twice, whatever
 * comes between them. Each rank has a part of each target for itself, so that what must be there is
 * known.
 */
#include "test/mpi/counter.h"
#include "test/mpi/testlib.h"

#include <stdlib.h>
#include <string.h>

/** Longs of one origin at one target. The first ones are for its accumulates, all others for its
 *  transfers. */
enum { LONGS = 600, COUNTERS = 3, OPERATIONS = 700, ROUNDS = 12, LONGEST = 200 };

/** What this rank has at one target, as it must be. */
typedef struct part {
    long now[LONGS];
    bool busy[LONGS]; /**< touched since the last synchronisation: MPI allows no second transfer */
} part_t;

/** What an operation brings, to be compared behind the synchronisation. */
typedef struct expected {
    long *result;
    long value;
} expected_t;

static part_t *part;
static expected_t expected[OPERATIONS];
static long results[OPERATIONS][LONGEST];
static long sources[OPERATIONS][LONGEST]; /* not to be changed before the synchronisation */

static MPI_Aint at(const tl_window_t *w, int target, int i)
{
    return tl_disp(w, target, ((MPI_Aint)w->rank * LONGS + i) * (MPI_Aint)sizeof(long));
}

/** Longs of the target that nothing has touched: where they are, and as a type. */
typedef struct stretch {
    int n, first, place[LONGEST]; /**< places count from the first */
    MPI_Datatype type;
} stretch_t;

/** One after another, at equal distances, or with gaps of all lengths; false where none was found.
 */
static bool find_stretch(tl_rng_t *rng, part_t *p, stretch_t *s)
{
    const int shape = (int)tl_range(rng, 0, 2);
    const int longest = tl_range(rng, 0, 3) > 0 ? 4 : LONGEST;
    int span = 0;

    s->n = (int)tl_range(rng, 1, longest);
    for (int i = 0; i < s->n; i++) {
        s->place[i] = span;
        span += shape == 0 ? 1 : shape == 1 ? 2 : (int)tl_range(rng, 1, 3);
    }
    s->first = (int)tl_range(rng, COUNTERS, LONGS - 1);
    if (s->first + span > LONGS)
        return false;
    for (int i = 0; i < s->n; i++)
        if (p->busy[s->first + s->place[i]])
            return false;
    for (int i = 0; i < s->n; i++)
        p->busy[s->first + s->place[i]] = true;
    if (shape == 1)
        TL_MPI(MPI_Type_vector(s->n, 1, 2, MPI_LONG, &s->type));
    else if (shape == 2)
        TL_MPI(MPI_Type_create_indexed_block(s->n, 1, s->place, MPI_LONG, &s->type));
    else
        TL_MPI(MPI_Type_contiguous(s->n, MPI_LONG, &s->type));
    TL_MPI(MPI_Type_commit(&s->type));
    return true;
}

static void put(const tl_window_t *w, tl_rng_t *rng, int target, int op)
{
    part_t *p = &part[target];
    stretch_t s;

    if (!find_stretch(rng, p, &s))
        return;
    for (int i = 0; i < s.n; i++)
        p->now[s.first + s.place[i]] = sources[op][i] = (long)tl_random(rng);
    TL_MPI(MPI_Put(sources[op], s.n, MPI_LONG, target, at(w, target, s.first), 1, s.type, w->win));
    TL_MPI(MPI_Type_free(&s.type));
}

static void get(const tl_window_t *w, tl_rng_t *rng, int target, int op)
{
    part_t *p = &part[target];
    stretch_t s;

    if (!find_stretch(rng, p, &s))
        return;
    TL_MPI(MPI_Get(results[op], s.n, MPI_LONG, target, at(w, target, s.first), 1, s.type, w->win));
    TL_MPI(MPI_Type_free(&s.type));
    expected[op] = (expected_t){&results[op][s.n - 1], p->now[s.first + s.place[s.n - 1]]};
}

static MPI_Datatype first_and_third;

/** Accumulates of one origin to one place are done in their order, so each knows what it finds. */
static void accumulate(const tl_window_t *w, tl_rng_t *rng, int target, int op)
{
    part_t *p = &part[target];
    const MPI_Aint disp = at(w, target, 0);
    long *value = sources[op];

    value[0] = (long)tl_range(rng, 1, 1000);
    value[1] = p->now[0];
    switch (tl_range(rng, 0, 5)) {
    case 0:
        /* Too long to go inline: it must not overtake what waits, nor be overtaken. */
        TL_MPI(
            MPI_Accumulate(value, 2, MPI_LONG, target, disp, 1, first_and_third, MPI_SUM, w->win));
        p->now[0] += value[0];
        p->now[2] += value[1];
        return;
    case 5:
        TL_MPI(MPI_Accumulate(value, 1, MPI_LONG, target, disp, 1, MPI_LONG, MPI_SUM, w->win));
        p->now[0] += value[0];
        return;
    case 1:
        TL_MPI(MPI_Accumulate(value, 1, MPI_LONG, target, disp, 1, MPI_LONG, MPI_REPLACE, w->win));
        p->now[0] = value[0];
        return;
    case 2:
        TL_MPI(MPI_Fetch_and_op(value, results[op], MPI_LONG, target, disp, MPI_SUM, w->win));
        expected[op] = (expected_t){results[op], p->now[0]};
        p->now[0] += value[0];
        return;
    case 3:
        TL_MPI(MPI_Compare_and_swap(value, value + 1, results[op], MPI_LONG, target, disp, w->win));
        expected[op] = (expected_t){results[op], p->now[0]};
        p->now[0] = value[0];
        return;
    default:
        TL_MPI(MPI_Get_accumulate(NULL, 0, MPI_LONG, results[op], 1, MPI_LONG, target, disp, 1,
                                  MPI_LONG, MPI_NO_OP, w->win));
        expected[op] = (expected_t){results[op], p->now[0]};
        return;
    }
}

static void check_results(void)
{
    int wrong = 0;

    for (int op = 0; op < OPERATIONS; op++) {
        wrong += expected[op].result != NULL && *expected[op].result != expected[op].value;
        expected[op].result = NULL;
    }
    TL_CHECK(wrong == 0, "%d results are wrong", wrong);
}

static void synchronise(const tl_window_t *w, tl_rng_t *rng)
{
    if (tl_range(rng, 0, 1) == 0)
        TL_MPI(MPI_Win_flush_all(w->win));
    else
        for (int target = 0; target < w->size; target++)
            TL_MPI(MPI_Win_flush(target, w->win));
    check_results();
    for (int target = 0; target < w->size; target++)
        memset(part[target].busy, 0, sizeof(part[target].busy));
}

/** What the target has is what it must have, seen from here. */
static void check_parts(const tl_window_t *w)
{
    static long got[LONGS];
    int wrong = 0;

    for (int target = 0; target < w->size; target++) {
        TL_MPI(MPI_Get(got, LONGS, MPI_LONG, target, at(w, target, 0), LONGS, MPI_LONG, w->win));
        TL_MPI(MPI_Win_flush(target, w->win));
        for (int i = 0; i < LONGS; i++)
            wrong += got[i] != part[target].now[i];
    }
    TL_CHECK(wrong == 0, "%d longs are wrong", wrong);
}

/** What waits to travel with others goes when its origin is in MPI, though nobody flushes, nor has
 *  anything for it that it would have to answer. */
static void check_unasked(const tl_window_t *w)
{
    enum { PUTS = 8, ORIGIN = 0, PATIENCE_SECONDS = TL_PATIENCE };
    const volatile long *mine = (const long *)w->base + ORIGIN * LONGS + COUNTERS;
    const double end = MPI_Wtime() + PATIENCE_SECONDS;
    int here = 0, all_here = 0;
    MPI_Request everywhere;

    TL_MPI(MPI_Barrier(w->comm));
    for (int op = 0; op < w->size * PUTS && w->rank == ORIGIN; op++) {
        const int target = op / PUTS, i = op % PUTS;

        sources[op][0] = -1 - i; /* the numbers that were there are random */
        TL_MPI(MPI_Put(sources[op], 1, MPI_LONG, target, at(w, target, COUNTERS + i), 1, MPI_LONG,
                       w->win));
    }
    while (here < PUTS && MPI_Wtime() < end) {
        TL_MPI(MPI_Win_sync(w->win));
        while (here < PUTS && mine[here] == -1 - here)
            here++;
    }
    TL_CHECK(here == PUTS, "%d of %d puts have come without a flush", here, PUTS);
    TL_MPI(MPI_Ibarrier(w->comm, &everywhere));
    while (!all_here)
        TL_MPI(MPI_Test(&everywhere, &all_here, MPI_STATUS_IGNORE));
    TL_MPI(MPI_Win_flush_all(w->win));
}

static void try_kind(tl_kind_t kind)
{
    tl_window_t w = tl_win_make(kind, tl_size() * LONGS * (MPI_Aint)sizeof(long), 1, MPI_COMM_WORLD,
                                MPI_INFO_NULL);
    tl_rng_t rng = tl_rng(tl_seed(), (uint64_t)w.rank);

    memset(w.base, 0, (size_t)tl_size() * LONGS * sizeof(long));
    memset(part, 0, (size_t)w.size * sizeof(*part));
    MPI_Barrier(MPI_COMM_WORLD);
    TL_MPI(MPI_Win_lock_all(0, w.win));
    for (int round = 0; round < ROUNDS * tl_factor(); round++) {
        const int kinds = (int)tl_range(&rng, 0, 3), stride = (int)tl_range(&rng, 1, 40);

        for (int op = 0; op < OPERATIONS; op++) {
            const int target = (w.rank + op / stride) % w.size;

            switch (kinds < 3 ? kinds : (int)tl_range(&rng, 0, 2)) {
            case 0:
                put(&w, &rng, target, op);
                break;
            case 1:
                get(&w, &rng, target, op);
                break;
            default:
                accumulate(&w, &rng, target, op);
                break;
            }
            if (tl_range(&rng, 0, 200) == 0)
                TL_MPI(MPI_Win_flush_local(target, w.win));
        }
        synchronise(&w, &rng);
    }
    check_parts(&w);
    check_unasked(&w);
    TL_MPI(MPI_Win_unlock_all(w.win));
    tl_win_free(&w);
}

/** With this method all goes by message, so that some must have travelled together. */
static bool all_by_message(void)
{
    const char *method = getenv("OMPI_MCA_osc_nicstride_method");

    return tl_size() > 1 && method != NULL && strcmp(method, "pack") == 0;
}

int main(int argc, char **argv)
{
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    counter_t *batches = counter_begin("osc_nicstride_batches");
    part = tl_alloc((size_t)tl_size() * sizeof(*part));
    TL_MPI(MPI_Type_vector(2, 1, 2, MPI_LONG, &first_and_third));
    TL_MPI(MPI_Type_commit(&first_and_third));
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind))
        try_kind(kind);
    TL_CHECK(batches == NULL || counter_read(batches) > 0 || !all_by_message(),
             "nothing has travelled together");
    counter_end(batches);
    TL_MPI(MPI_Type_free(&first_and_third));
    free(part);
    return tl_finish();
}
