/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-4 */
/* windows: create allocate dynamic */
/**
 * @file
 * Irregular datatypes that are used again and again, so that their block lists are kept and named.
 * Most ranks have little room for such lists, so that they are refused all the time. Handles are
 * freed and used again for other types and for equal ones. Puts, gets and accumulates, in all kinds
 * of epoch, against what the origin knows of its part of each target. On one host each process is
 * made a node of its own.
 */
#include <stdlib.h>
#include <string.h>

#include "test/mpi/counter.h"
#include "test/mpi/testlib.h"

/** Of each target's window this much belongs to each origin. */
enum { WORDS = 6000, TYPES = 14, BLOCKS_MAX = 900, EPOCHS = 60, OPS = 6 };

typedef struct type {
    MPI_Datatype handle; /**< MPI_DATATYPE_NULL: none now */
    int count;           /**< how many are used at a time */
    int n;               /**< elements of these */
    int *at;             /**< of each, words from the begin */
} type_t;

typedef struct part {
    unsigned word[WORDS];
} part_t;

static const char *const counters[] = {"osc_nicstride_lists_named", "osc_nicstride_lists_had",
                                       "osc_nicstride_layouts_found"};
enum { COUNTERS = sizeof(counters) / sizeof(counters[0]) };

/** Blocks of 1 to 3 words at irregular distances, in an order of their own; `seed` decides. */
static void make_type(type_t *t, uint64_t seed)
{
    tl_rng_t rng = tl_rng(tl_seed(), seed);
    const int most = (int)tl_range(&rng, 70, BLOCKS_MAX), gap = (int)tl_range(&rng, 1, 3);
    int length[BLOCKS_MAX], place[BLOCKS_MAX], n = 0, first, end = 0;

    t->count = (int)(seed % 4 == 1 ? 2 : 1);
    t->at = tl_alloc(3 * BLOCKS_MAX * 2 * sizeof(int));
    t->n = 0;
    for (int at = (int)tl_range(&rng, 0, 9); n < most; n++) {
        length[n] = (int)tl_range(&rng, 1, 3);
        if (at + length[n] > WORDS / t->count)
            break;
        place[n] = at;
        end = at + length[n];
        at = end + (int)tl_range(&rng, 1, gap);
    }
    first = place[0];
    for (int i = n - 1; i > 0 && seed % 3 == 0; i--) {
        const int j = (int)tl_range(&rng, 0, i), p = place[i], l = length[i];

        place[i] = place[j];
        length[i] = length[j];
        place[j] = p;
        length[j] = l;
    }
    for (int i = 0; i < t->count * n; i++)
        for (int k = 0; k < length[i % n]; k++)
            t->at[t->n++] = place[i % n] + k + i / n * (end - first);
    TL_MPI(MPI_Type_indexed(n, length, place, MPI_UNSIGNED, &t->handle));
    TL_MPI(MPI_Type_commit(&t->handle));
}

static void free_type(type_t *t)
{
    if (t->handle != MPI_DATATYPE_NULL)
        TL_MPI(MPI_Type_free(&t->handle));
    free(t->at);
    *t = (type_t){.handle = MPI_DATATYPE_NULL};
}

typedef enum kind { PUT, GET, ACCUMULATE, KINDS } kind_t;

/** An operation that has been started. */
typedef struct started {
    const type_t *type;
    unsigned *data;   /**< what is sent, or where what comes goes */
    unsigned *result; /**< of an accumulate that fetches, or NULL */
    unsigned *want;   /**< what shall come, or NULL */
} started_t;

static void start(const tl_window_t *w, kind_t kind, int target, const type_t *t, part_t *known,
                  tl_rng_t *rng, started_t *s)
{
    const MPI_Aint at = tl_disp(w, target, w->rank * (MPI_Aint)sizeof(part_t));
    const MPI_Op op = tl_range(rng, 0, 2) == 0 ? MPI_REPLACE : MPI_SUM;
    const size_t bytes = (size_t)t->n * sizeof(unsigned);
    const bool fetch = kind == GET || (kind == ACCUMULATE && tl_range(rng, 0, 1));

    *s = (started_t){.type = t, .data = tl_alloc(bytes), .want = fetch ? tl_alloc(bytes) : NULL};
    tl_fill_random(s->data, bytes, tl_random(rng));
    for (int i = 0; i < t->n; i++) {
        unsigned *word = &known->word[t->at[i]];

        if (fetch)
            s->want[i] = *word;
        if (kind != GET)
            *word = kind == ACCUMULATE && op == MPI_SUM ? *word + s->data[i] : s->data[i];
    }
    if (kind == PUT) {
        TL_MPI(MPI_Put(s->data, t->n, MPI_UNSIGNED, target, at, t->count, t->handle, w->win));
    } else if (kind == GET) {
        TL_MPI(MPI_Get(s->data, t->n, MPI_UNSIGNED, target, at, t->count, t->handle, w->win));
    } else if (fetch) {
        s->result = tl_alloc(bytes);
        TL_MPI(MPI_Get_accumulate(s->data, t->n, MPI_UNSIGNED, s->result, t->n, MPI_UNSIGNED,
                                  target, at, t->count, t->handle, op, w->win));
    } else {
        TL_MPI(MPI_Accumulate(s->data, t->n, MPI_UNSIGNED, target, at, t->count, t->handle, op,
                              w->win));
    }
}

static void end(started_t *s)
{
    const unsigned *got = s->result != NULL ? s->result : s->data;

    if (s->want != NULL)
        TL_BYTES(got, s->want, (size_t)s->type->n * sizeof(unsigned), "what was fetched");
    free(s->data);
    free(s->result);
    free(s->want);
}

/** One epoch: to each target operations of one kind, of types that are used soon again. */
static void epoch(const tl_window_t *w, tl_sync_t sync, type_t *types, part_t *known, tl_rng_t *rng)
{
    started_t *started = tl_alloc((size_t)w->size * OPS * sizeof(*started));
    int n = 0;

    tl_begin(w, sync);
    for (int target = 0; target < w->size; target++) {
        const kind_t kind = (kind_t)tl_range(rng, 0, KINDS - 1);

        for (int i = kind == PUT ? OPS - 1 : 0; i < OPS; i++, n++) {
            const int t = (int)tl_range(rng, 0, tl_range(rng, 0, 1) ? TYPES - 1 : 2);

            start(w, kind, target, &types[t], &known[target], rng, &started[n]);
            if ((sync == TL_LOCK || sync == TL_LOCK_ALL) && tl_range(rng, 0, 3) == 0)
                TL_MPI(MPI_Win_flush(target, w->win));
        }
    }
    tl_end(w, sync);
    while (n > 0)
        end(&started[--n]);
    free(started);
}

/** All of what this rank has at each target is what it knows. */
static void check_all(const tl_window_t *w, const part_t *known)
{
    part_t *got = tl_alloc(sizeof(*got));

    for (int target = 0; target < w->size; target++) {
        TL_MPI(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, w->win));
        TL_MPI(MPI_Get(got, WORDS, MPI_UNSIGNED, target,
                       tl_disp(w, target, w->rank * (MPI_Aint)sizeof(part_t)), WORDS, MPI_UNSIGNED,
                       w->win));
        TL_MPI(MPI_Win_unlock(target, w->win));
        TL_BYTES(got, &known[target], sizeof(*got), "what is at %d", target);
    }
    free(got);
}

static void run(tl_kind_t kind)
{
    tl_rng_t rng = tl_rng(tl_seed() + 5, (uint64_t)tl_rank());
    tl_window_t w =
        tl_win_make(kind, tl_size() * (MPI_Aint)sizeof(part_t), 1, MPI_COMM_WORLD, MPI_INFO_NULL);
    part_t *known = tl_alloc((size_t)w.size * sizeof(*known));
    type_t types[TYPES];
    uint64_t seed[TYPES];

    for (int t = 0; t < TYPES; t++) {
        types[t] = (type_t){.handle = MPI_DATATYPE_NULL};
        seed[t] = (uint64_t)t;
        make_type(&types[t], seed[t]);
    }
    for (int i = 0; i < EPOCHS * tl_factor(); i++) {
        /* Two handles change their places, and one gets another type. */
        for (int k = 0; k < 3; k++) {
            const int t = (int)tl_range(&rng, 0, TYPES - 1);

            free_type(&types[t]);
            seed[t] += k == 2 ? TYPES : 0;
            make_type(&types[t], seed[t]);
        }
        epoch(&w, (tl_sync_t)(i % TL_SYNCS), types, known, &rng);
    }
    /* Nobody's window is exposed any more, by a post, when it is locked. */
    MPI_Barrier(w.comm);
    check_all(&w, known);
    for (int t = 0; t < TYPES; t++)
        free_type(&types[t]);
    MPI_Barrier(w.comm);
    tl_win_free(&w);
    free(known);
}

/** As mpirun says; before MPI is there. */
static void set_parameters(void)
{
    const char *all = getenv("OMPI_COMM_WORLD_SIZE"), *here = getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");
    static const char *const lists[] = {"40", "150", "100000"};

    if (all != NULL && here != NULL && strcmp(all, here) == 0)
        setenv("OMPI_MCA_osc_nicstride_node", "0", 1);
    if (rank == NULL)
        return;
    setenv("OMPI_MCA_osc_nicstride_lists", lists[atoi(rank) % 3], 1);
    setenv("OMPI_MCA_osc_nicstride_layouts", atoi(rank) % 2 == 0 ? "100000" : "300", 1);
}

/** Did it come to what is tested? Where the component is there, and moves data by message. */
static void check_counters(counter_t **counter)
{
    unsigned long long own[COUNTERS], sum[COUNTERS];
    const bool loaded = counter[0] != NULL;

    for (int i = 0; i < COUNTERS; i++) {
        own[i] = counter_read(counter[i]);
        counter_end(counter[i]);
    }
    MPI_Allreduce(own, sum, COUNTERS, MPI_UNSIGNED_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < COUNTERS && loaded; i++)
        TL_CHECK(sum[i] > 0, "%s is %llu", counters[i], sum[i]);
}

int main(int argc, char **argv)
{
    counter_t *counter[COUNTERS];
    int level;

    set_parameters();
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    tl_need_ranks(2, 64);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &level);
    for (int i = 0; i < COUNTERS; i++)
        counter[i] = counter_begin(counters[i]);
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind))
        run(kind);
    check_counters(counter);
    MPI_T_finalize();
    return tl_finish();
}
