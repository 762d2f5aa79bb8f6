/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 1-4 */
/* windows: create allocate dynamic shared */
/**
 * @file
 * Many short contiguous puts and gets in a row, which travel together, of any lengths, to places
 * that overlap, with accumulates in between: each finds what those before it have done, and nothing
 * else is touched. And rows of which one operation is out of range: the others are done, and the
 * error is returned once.
 */
#include "test/mpi/testlib.h"

#include <stdlib.h>
#include <string.h>

/** Each origin has so many bytes at each target, as many operations at most before it waits, and
 *  rounds. */
enum { PART = 4096, MOST = 200, ROUNDS = 60, LONGEST = 1500 };

/** An operation under way. Sources and results lie at odd addresses, too. */
typedef struct operation {
    unsigned char source[LONGEST + 8], result[LONGEST + 8], expected[LONGEST];
    int n; /**< bytes that were fetched; 0: none */
    unsigned char *at;
} operation_t;

static operation_t *operations;
static unsigned char (*now)[PART]; /* of each target, as it must be */
static bool (*fetched)[PART];      /* and what of it was fetched in this epoch */

static MPI_Aint at(const tl_window_t *w, int target, int offset)
{
    return tl_disp(w, target, (MPI_Aint)w->rank * PART + offset);
}

static int length(tl_rng_t *rng)
{
    switch (tl_range(rng, 0, 3)) {
    case 0:
        return (int)tl_range(rng, 1, 64);
    case 1:
        return (int)tl_range(rng, 1, LONGEST);
    default:
        return 8;
    }
}

static void start(const tl_window_t *w, tl_rng_t *rng, operation_t *o, int target)
{
    const int n = length(rng), offset = (int)tl_range(rng, 0, PART - n);
    const int shift = (int)tl_range(rng, 0, 7), kind = (int)tl_range(rng, 0, 19);
    unsigned char *there = now[target] + offset, *source = o->source + shift;
    const MPI_Aint disp = at(w, target, offset);

    if (kind > 12) {
        o->n = n;
        o->at = o->result + shift;
        memcpy(o->expected, there, (size_t)n);
        memset(fetched[target] + offset, true, (size_t)n);
        TL_MPI(MPI_Get(o->at, n, MPI_BYTE, target, disp, n, MPI_BYTE, w->win));
        return;
    }
    /* A get may find what a later put writes, before the epoch ends. */
    if (memchr(fetched[target] + offset, true, (size_t)n) != NULL)
        return;
    tl_fill_random(source, (size_t)n, tl_random(rng));
    memcpy(there, source, (size_t)n);
    if (kind == 0)
        TL_MPI(MPI_Accumulate(source, n, MPI_BYTE, target, disp, n, MPI_BYTE, MPI_REPLACE, w->win));
    else
        TL_MPI(MPI_Put(source, n, MPI_BYTE, target, disp, n, MPI_BYTE, w->win));
}

static void row(const tl_window_t *w, tl_rng_t *rng)
{
    const int n = (int)tl_range(rng, 1, MOST);

    memset(fetched, 0, (size_t)w->size * sizeof(*fetched));
    for (int i = 0; i < n; i++)
        start(w, rng, &operations[i], (int)tl_range(rng, 0, w->size - 1));
}

static void check_results(int n)
{
    for (int i = 0; i < n; i++) {
        operation_t *o = &operations[i];

        if (o->n > 0)
            TL_BYTES(o->at, o->expected, (size_t)o->n, "get %d", i);
        o->n = 0;
    }
}

static void check_memory(const tl_window_t *w)
{
    for (int target = 0; target < w->size; target++) {
        static unsigned char got[PART];

        TL_MPI(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, w->win));
        TL_MPI(MPI_Get(got, PART, MPI_BYTE, target, at(w, target, 0), PART, MPI_BYTE, w->win));
        TL_MPI(MPI_Win_unlock(target, w->win));
        TL_BYTES(got, now[target], PART, "memory of rank %d", target);
    }
}

static void test_rows(const tl_window_t *w, tl_rng_t *rng)
{
    for (int round = 0; round < ROUNDS * tl_factor(); round++) {
        const tl_sync_t sync = (tl_sync_t)(round % TL_SYNCS);

        tl_begin(w, sync);
        row(w, rng);
        tl_end(w, sync);
        check_results(MOST);
        /* A target of MPI_Win_complete has its memory as it is to be when it has waited. */
        MPI_Barrier(w->comm);
        if (round % 4 == 3)
            check_memory(w);
    }
}

/* ---- out of range ---------------------------------------------------------------------------- */

/** A row of puts, or gets, of which one is bad where the target alone can see that. */
static void test_errors(tl_kind_t kind)
{
    enum { ROW = 40, BAD = 17 };
    tl_window_t w = tl_win_make(kind, (MPI_Aint)ROW * 8, 1, MPI_COMM_WORLD, MPI_INFO_NULL);
    const int target = (w.rank + 1) % w.size;
    uint64_t source[ROW], result[ROW];
    int class, code;

    if (kind == TL_DYNAMIC && target != w.rank) {
        for (int i = 0; i < ROW; i++) {
            source[i] = UINT64_C(0x0101010101010101) * (unsigned)(i + 1);
            result[i] = 0;
        }
        TL_MPI(MPI_Win_lock_all(0, w.win));
        for (int i = 0; i < ROW; i++)
            TL_MPI(MPI_Put(&source[i], 8, MPI_BYTE, target,
                           i == BAD ? 64 : tl_disp(&w, target, (MPI_Aint)i * 8), 8, MPI_BYTE,
                           w.win));
        code = MPI_Win_flush(target, w.win);
        MPI_Error_class(code, &class);
        TL_CHECK(class == MPI_ERR_RMA_RANGE, "puts: error class %d", class);
        TL_MPI(MPI_Win_flush(target, w.win));
        for (int i = 0; i < ROW; i++)
            TL_MPI(MPI_Get(&result[i], 8, MPI_BYTE, target, tl_disp(&w, target, (MPI_Aint)i * 8), 8,
                           MPI_BYTE, w.win));
        TL_MPI(MPI_Win_flush(target, w.win));
        for (int i = 0; i < ROW; i++)
            TL_CHECK(result[i] == (i == BAD ? 0 : source[i]), "put %d", i);
        for (int i = 0; i < ROW; i++)
            TL_MPI(MPI_Get(&result[i], 8, MPI_BYTE, target,
                           i == BAD ? 64 : tl_disp(&w, target, (MPI_Aint)i * 8), 8, MPI_BYTE,
                           w.win));
        code = MPI_Win_flush(target, w.win);
        MPI_Error_class(code, &class);
        TL_CHECK(class == MPI_ERR_RMA_RANGE, "gets: error class %d", class);
        TL_MPI(MPI_Win_flush(target, w.win));
        TL_MPI(MPI_Win_unlock_all(w.win));
    }
    MPI_Barrier(w.comm);
    tl_win_free(&w);
}

int main(int argc, char **argv)
{
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    tl_rng_t rng = tl_rng(tl_seed(), (uint64_t)tl_rank());

    operations = tl_alloc(MOST * sizeof(*operations));
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind)) {
        tl_window_t w =
            tl_win_make(kind, (MPI_Aint)PART * tl_size(), 1, MPI_COMM_WORLD, MPI_INFO_NULL);

        now = tl_alloc((size_t)w.size * sizeof(*now));
        fetched = tl_alloc((size_t)w.size * sizeof(*fetched));
        test_rows(&w, &rng);
        tl_win_free(&w);
        free(now);
        free(fetched);
        test_errors(kind);
    }
    free(operations);
    return tl_finish();
}
