/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 1-4 */
/* thorough */
/* windows: create allocate dynamic shared */
/**
 * @file
 * MPI_Put and MPI_Get of 1 byte to 4 MiB, in a row or in blocks, every way to synchronise; and of
 * nothing. Other datatypes: derived_types.
 */
#include <stdlib.h>
#include <string.h>

#include "test/mpi/testlib.h"
#include "test/mpi/transfer.h"

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
        const int step = tl_slow() && sizes[s] > 65536 ? 2 : 1;

        for (size_t b = 0; b < sizeof(blocks) / sizeof(*blocks); b++) {
            MPI_Aint block = blocks[b] < sizes[s] ? blocks[b] : sizes[s];

            if (sizes[s] % block != 0 || sizes[s] / block > BLOCKS_MAX)
                continue;
            for (int shape = blocks[b] < sizes[s] ? 1 : 0; shape < 4; shape += step) {
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

int main(int argc, char **argv)
{
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind)) {
        nothing_moves(kind);
        size_sweep(kind);
    }
    return tl_finish();
}
