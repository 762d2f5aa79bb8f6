/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 1-4 */
/* thorough */
/* windows: create allocate dynamic shared */
/**
 * @file
 * MPI_Put and MPI_Get move what the two datatypes say and nothing else: many shapes of datatype
 * on both sides, every way to synchronise, every pair of ranks including itself, 1 byte to 4 MiB.
 * After each epoch the whole window and the whole origin buffers are compared with the reference.
 */
#include <stdlib.h>
#include <string.h>

#include "test/mpi/exchange.h"
#include "test/mpi/testlib.h"
#include "test/mpi/transfer.h"

/** Of each target's window this much belongs to each origin. */
#define SLOT   ((MPI_Aint)48 << 10)
#define ROUNDS 12

/** The displacement units of the ranks, to have them differ. */
static int unit_of(int rank)
{
    static const int units[] = {8, 1, 16, 2};

    return units[rank % 4];
}

/* ---- random shapes, everybody with everybody ---- */

/** Two shapes of the same elements. */
static exchange_op_t plan(int round, int origin, int target)
{
    uint64_t stream = ((uint64_t)round << 16) + (uint64_t)(origin << 8) + (uint64_t)target;
    tl_rng_t rng = tl_rng(tl_seed(), stream);
    exchange_op_t op = {.get = tl_range(&rng, 0, 1), .seed = tl_random(&rng)};
    tr_element_t element = (tr_element_t)tl_range(&rng, 0, TR_ELEMENTS - 1);
    unsigned origin_flags = TR_ORIGIN | (op.get ? 0 : TR_OVERLAP);
    int n = (int)tl_range(&rng, 0, (int64_t)1 << tl_range(&rng, 0, 10));

    while (true) {
        op.origin = tr_shape(&rng, element, n, origin_flags);
        op.target = tr_shape(&rng, element, n, op.get ? TR_OVERLAP : 0);
        if (op.target.span <= SLOT)
            return op;
        tr_free(&op.origin);
        tr_free(&op.target);
        n /= 2;
    }
}

static void random_shapes(tl_kind_t kind)
{
    int unit = unit_of(tl_rank());
    tl_window_t w = tl_win_make(kind, tl_size() * SLOT, unit, MPI_COMM_WORLD, MPI_INFO_NULL);
    int rounds = ROUNDS * tl_factor();

    for (int round = 0; round < rounds; round++)
        for (tl_sync_t sync = 0; sync < TL_SYNCS; sync++)
            exchange_round(&w, sync, round * TL_SYNCS + (int)sync, SLOT, plan);
    tl_win_free(&w);
}

/* ---- sizes up to 4 MiB, strided or not ---- */

#define LARGEST      ((MPI_Aint)4 << 20)
#define LARGE_WINDOW (2 * LARGEST)
#define BLOCKS_MAX   (tl_slow() ? 1024 : 8192)

/** Ring: puts to the next rank, and after the epoch gets back. Blocks are 2 blocks apart. */
static void sweep_case(const tl_window_t *w, tl_sync_t sync, MPI_Aint bytes, MPI_Aint block,
                       bool strided_origin, bool strided_target, unsigned char *buffer)
{
    tr_side_t origin = tr_strided(bytes, block, strided_origin ? 2 * block : block);
    tr_side_t target = tr_strided(bytes, block, strided_target ? 2 * block : block);
    int to = (w->rank + 1) % w->size, from = (w->rank + w->size - 1) % w->size;
    MPI_Aint disp = tl_disp(w, to, 0);
    size_t touched = (size_t)target.span < (size_t)w->bytes ? (size_t)target.span : 0;
    unsigned char *want = tl_alloc((size_t)(2 * bytes));

    memset(w->base, 0x3C, (size_t)target.span);
    tl_fill_random(buffer, (size_t)origin.span, (uint64_t)(bytes + w->rank));
    tl_begin(w, sync);
    TL_MPI(MPI_Put(buffer, origin.count, origin.type, to, disp, target.count, target.type, w->win));
    tl_end(w, sync);

    unsigned char *sent = tl_alloc((size_t)origin.span);

    tl_fill_random(sent, (size_t)origin.span, (uint64_t)(bytes + from));
    memset(want, 0x3C, (size_t)target.span);
    tr_copy(&origin, sent, &target, want);
    TL_BYTES(w->base, want, touched, "put of %ld bytes, blocks of %ld", (long)bytes, (long)block);

    memcpy(sent, buffer, (size_t)origin.span);
    memset(buffer, 0x5E, (size_t)origin.span);
    tl_begin(w, sync);
    TL_MPI(MPI_Get(buffer, origin.count, origin.type, to, disp, target.count, target.type, w->win));
    tl_end(w, sync);
    memset(want, 0x5E, (size_t)origin.span);
    tr_copy(&origin, sent, &origin, want);
    TL_BYTES(buffer, want, (size_t)origin.span, "get of %ld bytes, blocks of %ld", (long)bytes,
             (long)block);
    free(want);
    free(sent);
    tr_free(&origin);
    tr_free(&target);
}

static void size_sweep(tl_kind_t kind)
{
    static const MPI_Aint sizes[] = {1, 8, 200, 4096, 8192, 65536, 1 << 20, LARGEST};
    static const MPI_Aint blocks[] = {1, 8, 64, 1024, 16384, LARGEST};
    tl_window_t w = tl_win_make(kind, LARGE_WINDOW, 1, MPI_COMM_WORLD, MPI_INFO_NULL);
    unsigned char *buffer = tl_alloc((size_t)LARGE_WINDOW);
    int cases = 0;

    for (size_t s = 0; s < sizeof(sizes) / sizeof(*sizes); s++) {
        for (size_t b = 0; b < sizeof(blocks) / sizeof(*blocks); b++) {
            MPI_Aint block = blocks[b] < sizes[s] ? blocks[b] : sizes[s];

            if (sizes[s] % block != 0 || sizes[s] / block > BLOCKS_MAX)
                continue;
            for (int shape = blocks[b] < sizes[s] ? 1 : 0; shape < 4; shape++) {
                tl_sync_t sync = (tl_sync_t)(cases++ % TL_SYNCS);

                sweep_case(&w, sync, sizes[s], block, shape & 1, shape & 2, buffer);
            }
            if (blocks[b] >= sizes[s])
                break;
        }
    }
    free(buffer);
    tl_win_free(&w);
}

/* ---- corners ---- */

/** Nothing to move, or nobody to move it to: no error, no change. */
static void nothing_moves(tl_kind_t kind)
{
    tl_window_t w = tl_win_make(kind, 64, 1, MPI_COMM_WORLD, MPI_INFO_NULL);
    unsigned char buffer[64];
    MPI_Datatype empty;
    int to = (w.rank + 1) % w.size;

    MPI_Type_vector(0, 3, 7, MPI_INT, &empty);
    MPI_Type_commit(&empty);
    memset(buffer, 7, sizeof(buffer));
    memset(w.base, 9, 64);
    for (tl_sync_t sync = 0; sync < TL_SYNCS; sync++) {
        MPI_Aint disp = tl_disp(&w, to, 0), end = tl_disp(&w, to, 64);

        tl_begin(&w, sync);
        TL_MPI(MPI_Put(buffer, 0, MPI_INT, to, disp, 0, MPI_INT, w.win));
        TL_MPI(MPI_Get(buffer, 0, MPI_INT, to, end, 0, MPI_INT, w.win));
        TL_MPI(MPI_Put(NULL, 0, MPI_BYTE, to, end, 5, empty, w.win));
        TL_MPI(MPI_Get(NULL, 4, empty, to, disp, 0, MPI_DOUBLE, w.win));
        TL_MPI(MPI_Put(buffer, 16, MPI_INT, MPI_PROC_NULL, 0, 16, MPI_INT, w.win));
        TL_MPI(MPI_Get(buffer, 16, MPI_INT, MPI_PROC_NULL, 99, 16, MPI_INT, w.win));
        tl_end(&w, sync);
        TL_FILL(buffer, 7, sizeof(buffer), "%s: buffer", tl_sync_name(sync));
        TL_FILL(w.base, 9, 64, "%s: window", tl_sync_name(sync));
    }
    MPI_Type_free(&empty);
    tl_win_free(&w);
}

/** Rank r has 1000 r elements of r + 1 integers: rank 0 has none. */
static void uneven_sizes(tl_kind_t kind)
{
    int rank = tl_rank(), unit = (int)sizeof(int) * (rank + 1);
    tl_window_t w =
        tl_win_make(kind, (MPI_Aint)1000 * rank * unit, unit, MPI_COMM_WORLD, MPI_INFO_NULL);
    int *mine = (int *)(void *)w.base, *values = tl_alloc((size_t)w.size * sizeof(int));

    for (tl_sync_t sync = 0; sync < TL_SYNCS; sync++) {
        for (int t = 0; t < w.size; t++)
            values[t] = 100 * rank + t + (int)sync;
        tl_begin(&w, sync);
        for (int t = 1; t < w.size; t++) {
            MPI_Aint element = (MPI_Aint)sizeof(int) * (t + 1);
            MPI_Aint last = w.peer_bytes[t] - (rank + 1) * element;

            TL_MPI(MPI_Put(&values[t], 1, MPI_INT, t, tl_disp(&w, t, last), 1, MPI_INT, w.win));
        }
        tl_end(&w, sync);
        for (int o = 0; rank > 0 && o < w.size; o++) {
            int got = mine[(1000 * rank - o - 1) * (rank + 1)], want = 100 * o + rank + (int)sync;

            TL_CHECK(got == want, "%s: %d from rank %d, not %d", tl_sync_name(sync), got, o, want);
        }
    }
    free(values);
    tl_win_free(&w);
}

/** Windows over the same memory, and one inside the other. */
static void overlapping_windows(void)
{
    tl_window_t w = tl_win_make(TL_CREATE, 4096, 1, MPI_COMM_WORLD, MPI_INFO_NULL);
    int to = (w.rank + 1) % w.size, from = (w.rank + w.size - 1) % w.size;
    double sent = 1.5 + w.rank, got = 0;
    MPI_Win whole, part;

    MPI_Win_create(w.base, 4096, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &whole);
    MPI_Win_create(w.base + 1024, 1024, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &part);
    MPI_Win_fence(0, part);
    TL_MPI(MPI_Put(&sent, 1, MPI_DOUBLE, to, 5, 1, MPI_DOUBLE, part));
    MPI_Win_fence(0, part);
    /* A fence says that what others did is complete in one's own memory, not in theirs. */
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, whole);
    TL_MPI(MPI_Get(&got, 1, MPI_DOUBLE, to, 1024 + 40, 1, MPI_DOUBLE, whole));
    MPI_Win_unlock_all(whole);
    TL_CHECK(got == sent, "%g through the other window, not %g", got, sent);
    memcpy(&got, w.base + 1024 + 40, sizeof(got));
    TL_CHECK(got == 1.5 + from, "%g in memory, not %g", got, 1.5 + from);
    MPI_Win_free(&whole);
    MPI_Win_free(&part);
    tl_win_free(&w);
}

/** A window of one process, and many windows of all at once. */
static void many_windows(tl_kind_t kind)
{
    enum { WINDOWS = 12 };
    tl_window_t alone = tl_win_make(kind, 256, 1, MPI_COMM_SELF, MPI_INFO_NULL), w[WINDOWS];
    int to = (tl_rank() + 1) % tl_size(), from = (tl_rank() + tl_size() - 1) % tl_size();

    for (int i = 0; i < WINDOWS; i++)
        w[i] = tl_win_make(kind, 64 * (i + 1), 1, MPI_COMM_WORLD, MPI_INFO_NULL);
    for (int i = 0; i < WINDOWS; i++) {
        TL_MPI(MPI_Win_lock_all(0, w[i].win));
        int sent = 10 * i + tl_rank();

        TL_MPI(MPI_Put(&sent, 1, MPI_INT, to, tl_disp(&w[i], to, 64 * i), 1, MPI_INT, w[i].win));
        TL_MPI(MPI_Win_flush_local(to, w[i].win));
    }
    for (int i = 0; i < WINDOWS; i++)
        TL_MPI(MPI_Win_unlock_all(w[i].win));
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < WINDOWS; i++) {
        tl_begin(&w[i], TL_LOCK_ALL);
        tl_end(&w[i], TL_LOCK_ALL);
        int got = *(int *)(void *)(w[i].base + (ptrdiff_t)64 * i);

        TL_CHECK(got == 10 * i + from, "window %d has %d", i, got);
        tl_win_free(&w[i]);
    }
    tl_begin(&alone, TL_FENCE);
    TL_MPI(MPI_Put("alone", 6, MPI_CHAR, 0, tl_disp(&alone, 0, 9), 6, MPI_CHAR, alone.win));
    tl_end(&alone, TL_FENCE);
    TL_CHECK(strcmp((char *)alone.base + 9, "alone") == 0, "window of one process");
    tl_win_free(&alone);
}

int main(int argc, char **argv)
{
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind)) {
        nothing_moves(kind);
        uneven_sizes(kind);
        random_shapes(kind);
        size_sweep(kind);
        many_windows(kind);
        if (kind == TL_CREATE)
            overlapping_windows();
    }
    return tl_finish();
}
