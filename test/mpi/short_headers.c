/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2 */
/* windows: create */
/* methods: pack */
/**
 * @file
 * Irregular layouts where transports take short headers only: what does not fit must go another
 * way, whichever way that is, and not fail.
 */
#include "test/mpi/testlib.h"

#include <stdlib.h>

enum { BYTES = 300000, LONGEST = 90, APART = 3000 };

/** Single bytes at distances that take two bytes to write down, there and back. */
static void move(const tl_window_t *w, tl_rng_t *rng, int n)
{
    const int target = (w->rank + 1) % w->size;
    const MPI_Aint disp = tl_disp(w, target, 0);
    unsigned char out[LONGEST], in[LONGEST] = {0};
    int place[LONGEST], at = 0, wrong = 0;
    MPI_Datatype type;

    for (int i = 0; i < n; i++) {
        out[i] = (unsigned char)tl_range(rng, 1, 255);
        place[i] = at;
        at += (int)tl_range(rng, 2, APART);
    }
    TL_MPI(MPI_Type_create_indexed_block(n, 1, place, MPI_BYTE, &type));
    TL_MPI(MPI_Type_commit(&type));
    TL_MPI(MPI_Put(out, n, MPI_BYTE, target, disp, 1, type, w->win));
    TL_MPI(MPI_Win_flush(target, w->win));
    TL_MPI(MPI_Get(in, n, MPI_BYTE, target, disp, 1, type, w->win));
    TL_MPI(MPI_Win_flush(target, w->win));
    for (int i = 0; i < n; i++)
        wrong += in[i] != out[i];
    TL_CHECK(wrong == 0, "%d of %d bytes are wrong", wrong, n);
    TL_MPI(MPI_Type_free(&type));
}

int main(int argc, char **argv)
{
    /* The shortest segments of shared memory with which all else works; others are not affected. */
    setenv("UCX_POSIX_SEG_SIZE", "224", 1);
    setenv("UCX_SYSV_SEG_SIZE", "224", 1);
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind)) {
        tl_window_t w = tl_win_make(kind, BYTES, 1, MPI_COMM_WORLD, MPI_INFO_NULL);
        tl_rng_t rng = tl_rng(tl_seed(), (uint64_t)w.rank);

        TL_MPI(MPI_Win_lock_all(0, w.win));
        for (int n = 1; n <= LONGEST; n++)
            move(&w, &rng, n);
        TL_MPI(MPI_Win_unlock_all(w.win));
        tl_win_free(&w);
    }
    return tl_finish();
}
