/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-4 */
/* windows: create dynamic */
/* threads: multiple */
/**
 * @file
 * Accumulates that come while their target is busy with a long one of its own, and are seen by
 * another thread of its, which has to wait for the lock: each must take effect once, in the order
 * of its origin, and give back what was there before.
 *
 * Rank 0 updates its own memory all the time. The others do random operations on a piece of it
 * each, many at once, and know from a model what must come of them. Then all add to the same
 * places.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "test/mpi/testlib.h"

/** Integers of the piece that belongs to an origin, of a long operation, and operations between two
 *  flushes. */
#define PIECE 1500
#define LONG  1000
#define BATCH 12
/** Bytes of rank 0's own updates. */
#define OWN_BYTES ((MPI_Aint)(tl_slow() ? 2 : 16) << 20)

/** Rank 0 tells the others to end after so many updates of its own. */
#define ENOUGH 60

/** Of rank 0: shall the others end, how many have, the pieces of all ranks, and its own part. */
#define END_AT            0
#define DONE_AT           8
#define PIECE_AT(rank, i) (64 + ((MPI_Aint)(rank)*PIECE + (i)) * (MPI_Aint)sizeof(int64_t))

/** An operation on some integers, in place as MPI and the model see it. */
typedef struct step {
    int first, n, stride;
    MPI_Op op;
    int64_t in[LONG], compare;
    int64_t got[LONG], expected[LONG]; /**< what was there before, where it is fetched */
    bool fetched;
} step_t;

/** What the integers of a piece must be. */
typedef struct model {
    int64_t at[PIECE];
} model_t;

static void apply(model_t *model, step_t *s, bool swap)
{
    for (int i = 0; i < s->n; i++) {
        int64_t *at = &model->at[s->first + i * s->stride];

        s->expected[i] = *at;
        if (swap)
            *at = *at == s->compare ? s->in[0] : *at;
        else if (s->op == MPI_REPLACE)
            *at = s->in[i];
        else if (s->op == MPI_SUM)
            *at += s->in[i];
        else if (s->op == MPI_BXOR)
            *at ^= s->in[i];
    }
}

static void random_step(tl_rng_t *rng, step_t *s, int n, int stride)
{
    const MPI_Op ops[] = {MPI_SUM, MPI_REPLACE, MPI_BXOR, MPI_NO_OP};

    *s = (step_t){.n = n, .stride = stride};
    /* Few places, so that operations meet. */
    s->first = (int)tl_range(rng, 0, 3);
    s->op = ops[tl_range(rng, 0, 3)];
    for (int i = 0; i < n; i++) {
        s->in[i] = tl_range(rng, -1000, 1000);
        s->got[i] = INT64_MIN;
    }
}

static void fetch_one(const tl_window_t *w, tl_rng_t *rng, model_t *model, step_t *s)
{
    random_step(rng, s, 1, 1);
    s->fetched = true;
    TL_MPI(MPI_Fetch_and_op(s->in, s->got, MPI_INT64_T, 0,
                            tl_disp(w, 0, PIECE_AT(w->rank, s->first)), s->op, w->win));
    apply(model, s, false);
}

static void swap_one(const tl_window_t *w, tl_rng_t *rng, model_t *model, step_t *s)
{
    random_step(rng, s, 1, 1);
    s->fetched = true;
    s->compare = model->at[s->first] + tl_range(rng, 0, 1);
    TL_MPI(MPI_Compare_and_swap(s->in, &s->compare, s->got, MPI_INT64_T, 0,
                                tl_disp(w, 0, PIECE_AT(w->rank, s->first)), w->win));
    apply(model, s, true);
}

/** Several integers, one after another or with gaps at the target. */
static void several(const tl_window_t *w, tl_rng_t *rng, model_t *model, step_t *s,
                    MPI_Datatype gaps)
{
    const bool strided = tl_range(rng, 0, 1) == 1;
    const int n = strided ? LONG / 2 : (int)tl_range(rng, 1, 20) * (LONG / 20);
    const MPI_Datatype type = strided ? gaps : MPI_INT64_T;
    const int count = strided ? 1 : n;

    random_step(rng, s, n, strided ? 2 : 1);
    const MPI_Aint disp = tl_disp(w, 0, PIECE_AT(w->rank, s->first));
    s->fetched = s->op == MPI_NO_OP || tl_range(rng, 0, 1) == 1;
    if (s->fetched) {
        TL_MPI(MPI_Get_accumulate(s->in, n, MPI_INT64_T, s->got, n, MPI_INT64_T, 0, disp, count,
                                  type, s->op, w->win));
    } else {
        TL_MPI(MPI_Accumulate(s->in, n, MPI_INT64_T, 0, disp, count, type, s->op, w->win));
    }
    apply(model, s, false);
}

static void batch(const tl_window_t *w, tl_rng_t *rng, model_t *model, step_t *steps,
                  MPI_Datatype gaps)
{
    for (int i = 0; i < BATCH; i++) {
        switch (tl_range(rng, 0, 2)) {
        case 0:
            fetch_one(w, rng, model, &steps[i]);
            break;
        case 1:
            swap_one(w, rng, model, &steps[i]);
            break;
        default:
            several(w, rng, model, &steps[i], gaps);
        }
    }
    TL_MPI(MPI_Win_flush(0, w->win));
    for (int i = 0; i < BATCH; i++) {
        if (steps[i].fetched) {
            TL_BYTES(steps[i].got, steps[i].expected, (size_t)steps[i].n * sizeof(int64_t),
                     "fetched by operation %d of a batch", i);
        }
    }
}

/** Random operations on my piece of rank 0, until it says that they are enough. */
static void disturb(const tl_window_t *w, model_t *model)
{
    static const int64_t one = 1;
    int64_t end = 0;
    tl_rng_t rng = tl_rng(tl_seed(), (uint64_t)w->rank);
    step_t *steps = tl_alloc(BATCH * sizeof(*steps));
    MPI_Datatype gaps;

    TL_MPI(MPI_Type_vector(LONG / 2, 1, 2, MPI_INT64_T, &gaps));
    TL_MPI(MPI_Type_commit(&gaps));
    while (end == 0 && tl_failed() == 0) {
        TL_MPI(
            MPI_Fetch_and_op(NULL, &end, MPI_INT64_T, 0, tl_disp(w, 0, END_AT), MPI_NO_OP, w->win));
        batch(w, &rng, model, steps, gaps);
    }
    TL_MPI(MPI_Accumulate(&one, 1, MPI_INT64_T, 0, tl_disp(w, 0, DONE_AT), 1, MPI_INT64_T, MPI_SUM,
                          w->win));
    TL_MPI(MPI_Type_free(&gaps));
    free(steps);
}

static atomic_bool looking;

/** Progresses while the other thread has the lock of accumulates. */
static void *look(void *window)
{
    const tl_window_t *w = window;
    int flag;

    while (atomic_load(&looking))
        TL_MPI(MPI_Iprobe(MPI_ANY_SOURCE, 0, w->comm, &flag, MPI_STATUS_IGNORE));
    return NULL;
}

/** Updates of my own memory, until the others have ended; how many? */
static int64_t keep_busy(tl_window_t *w)
{
    static const int64_t one = 1;
    const int n = (int)(OWN_BYTES / (MPI_Aint)sizeof(int64_t));
    const MPI_Aint own = tl_disp(w, 0, PIECE_AT(w->size, 0));
    int64_t *ones = tl_alloc((size_t)OWN_BYTES), done = 0, times = 0;
    pthread_t looker;
    int flag;

    atomic_store(&looking, true);
    if (pthread_create(&looker, NULL, look, w) != 0)
        tl_die("no thread");
    for (int i = 0; i < n; i++)
        ones[i] = 1;
    /* Where something is wrong they may never say that they have ended. */
    while (done < w->size - 1 && times < 40 * ENOUGH) {
        TL_MPI(MPI_Accumulate(ones, n, MPI_INT64_T, 0, own, n, MPI_INT64_T, MPI_SUM, w->win));
        times++;
        if (times >= ENOUGH) {
            TL_MPI(MPI_Accumulate(&one, 1, MPI_INT64_T, 0, tl_disp(w, 0, END_AT), 1, MPI_INT64_T,
                                  MPI_REPLACE, w->win));
        }
        TL_MPI(MPI_Fetch_and_op(NULL, &done, MPI_INT64_T, 0, tl_disp(w, 0, DONE_AT), MPI_NO_OP,
                                w->win));
        TL_MPI(MPI_Win_flush(0, w->win));
        /* What is left of the others' operations has its turn. */
        TL_MPI(MPI_Iprobe(MPI_ANY_SOURCE, 0, w->comm, &flag, MPI_STATUS_IGNORE));
    }
    atomic_store(&looking, false);
    pthread_join(looker, NULL);
    free(ones);
    return times;
}

static void check_own(const tl_window_t *w, int64_t times)
{
    const int64_t *own = (const int64_t *)(const void *)(w->base + PIECE_AT(w->size, 0));
    MPI_Aint wrong = 0;

    for (MPI_Aint i = 0; i < OWN_BYTES / (MPI_Aint)sizeof(int64_t); i++)
        wrong += own[i] != times;
    TL_CHECK(wrong == 0, "%ld of my own are not %ld", (long)wrong, (long)times);
}

static void try_kind(tl_kind_t kind)
{
    const MPI_Aint bytes = tl_rank() == 0 ? PIECE_AT(tl_size(), 0) + OWN_BYTES : 0;
    tl_window_t w = tl_win_make(kind, bytes, 1, MPI_COMM_WORLD, MPI_INFO_NULL);
    model_t *model = tl_alloc(sizeof(*model)), *models = tl_alloc((size_t)w.size * sizeof(*model));
    int64_t times = 0;

    tl_begin(&w, TL_LOCK_ALL);
    if (w.rank == 0)
        times = keep_busy(&w);
    else
        disturb(&w, model);
    tl_end(&w, TL_LOCK_ALL);
    TL_MPI(MPI_Gather(model->at, PIECE, MPI_INT64_T, models->at, PIECE, MPI_INT64_T, 0, w.comm));
    if (w.rank == 0) {
        check_own(&w, times);
        TL_BYTES(w.base + PIECE_AT(0, 0), models, (size_t)w.size * sizeof(*models), "pieces");
    }
    free(model);
    free(models);
    tl_win_free(&w);
}

/* ---- the same places ---- */

/** Integers that all add to, one of two, so that rank 0 gathers them, adds, and scatters them; of
 *  these rank 0 adds one to the first, and nothing to the last: to these the others may swap. And
 *  how often the others add. */
#define COMMON 512
#define TIMES  (tl_slow() ? 100 : 600)

#define COMMON_AT(i) (64 + 2 * (MPI_Aint)(i) * (MPI_Aint)sizeof(int64_t))

/** Adds one to a random place, in one of three ways. */
static int64_t add_one(const tl_window_t *w, tl_rng_t *rng)
{
    static const int64_t one = 1;
    const int way = (int)tl_range(rng, 0, 2);
    const MPI_Aint disp =
        tl_disp(w, 0, COMMON_AT(tl_range(rng, way == 2 ? COMMON / 2 : 0, COMMON - 1)));
    int64_t old = 0, wanted, found = -1;

    switch (way) {
    case 0:
        TL_MPI(MPI_Accumulate(&one, 1, MPI_INT64_T, 0, disp, 1, MPI_INT64_T, MPI_SUM, w->win));
        break;
    case 1:
        TL_MPI(MPI_Fetch_and_op(&one, &old, MPI_INT64_T, 0, disp, MPI_SUM, w->win));
        TL_MPI(MPI_Win_flush(0, w->win));
        break;
    default:
        TL_MPI(MPI_Fetch_and_op(NULL, &old, MPI_INT64_T, 0, disp, MPI_NO_OP, w->win));
        TL_MPI(MPI_Win_flush(0, w->win));
        wanted = old + 1;
        TL_MPI(MPI_Compare_and_swap(&wanted, &old, &found, MPI_INT64_T, 0, disp, w->win));
        TL_MPI(MPI_Win_flush(0, w->win));
        return found == old ? 1 : 0;
    }
    return 1;
}

/** Two operations, nothing between them: the lock may be free again when the second one comes. */
static void in_order(const tl_window_t *w, int64_t value)
{
    const MPI_Aint disp = tl_disp(w, 0, COMMON_AT(COMMON + w->rank));
    int64_t found = -1;

    TL_MPI(MPI_Accumulate(&value, 1, MPI_INT64_T, 0, disp, 1, MPI_INT64_T, MPI_REPLACE, w->win));
    TL_MPI(MPI_Fetch_and_op(NULL, &found, MPI_INT64_T, 0, disp, MPI_NO_OP, w->win));
    TL_MPI(MPI_Win_flush(0, w->win));
    TL_CHECK(found == value, "found %ld behind a replace by %ld", (long)found, (long)value);
}

static int64_t add_at_random(const tl_window_t *w)
{
    static const int64_t one = 1;
    tl_rng_t rng = tl_rng(tl_seed(), (uint64_t)w->rank);
    int64_t added = 0;

    for (int i = 0; i < TIMES * tl_factor(); i++) {
        added += add_one(w, &rng);
        in_order(w, i);
    }
    TL_MPI(MPI_Accumulate(&one, 1, MPI_INT64_T, 0, tl_disp(w, 0, DONE_AT), 1, MPI_INT64_T, MPI_SUM,
                          w->win));
    return added;
}

/** Adds to all places, again and again until the others have ended. */
static int64_t add_to_all(const tl_window_t *w)
{
    int64_t *ones = tl_alloc(COMMON * sizeof(*ones)), done = 0, times = 0;
    MPI_Datatype places;
    int flag;

    for (int i = 0; i < COMMON; i++)
        ones[i] = i < COMMON / 2;
    TL_MPI(MPI_Type_vector(COMMON, 1, 2, MPI_INT64_T, &places));
    TL_MPI(MPI_Type_commit(&places));
    for (; done < w->size - 1; times++) {
        TL_MPI(MPI_Accumulate(ones, COMMON, MPI_INT64_T, 0, tl_disp(w, 0, COMMON_AT(0)), 1, places,
                              MPI_SUM, w->win));
        TL_MPI(MPI_Fetch_and_op(NULL, &done, MPI_INT64_T, 0, tl_disp(w, 0, DONE_AT), MPI_NO_OP,
                                w->win));
        TL_MPI(MPI_Win_flush(0, w->win));
        if (times % 1000 == 0)
            TL_MPI(MPI_Iprobe(MPI_ANY_SOURCE, 0, w->comm, &flag, MPI_STATUS_IGNORE));
    }
    TL_MPI(MPI_Type_free(&places));
    free(ones);
    return times * (COMMON / 2);
}

/** No addition is lost, and what one rank does is done in order. */
static void try_collisions(tl_kind_t kind)
{
    const MPI_Aint bytes = tl_rank() == 0 ? COMMON_AT(COMMON + tl_size()) : 0;
    tl_window_t w = tl_win_make(kind, bytes, 1, MPI_COMM_WORLD, MPI_INFO_NULL);
    int64_t added, sum = 0, found = 0;

    tl_begin(&w, TL_LOCK_ALL);
    added = w.rank == 0 ? add_to_all(&w) : add_at_random(&w);
    tl_end(&w, TL_LOCK_ALL);
    TL_MPI(MPI_Reduce(&added, &sum, 1, MPI_INT64_T, MPI_SUM, 0, w.comm));
    for (int i = 0; w.rank == 0 && i < COMMON; i++)
        found += *(const int64_t *)(const void *)(w.base + COMMON_AT(i));
    TL_CHECK(found == sum, "%ld, not %ld", (long)found, (long)sum);
    tl_win_free(&w);
}

int main(int argc, char **argv)
{
    tl_init(&argc, &argv, MPI_THREAD_MULTIPLE);
    tl_need_ranks(2, 16);
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind)) {
        try_kind(kind);
        try_collisions(kind);
    }
    return tl_finish();
}
