/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-5 */
/* windows: create allocate dynamic shared */
/* methods: auto pack cma sieve pipeline */
/**
 * @file
 * One-sided communication of processes that have no descriptor left: the first operations in a
 * window that was made before, with targets in MPI and away from it, and all of one that is made
 * then. With an even number of ranks only the odd ones have none.
 */
#include "test/mpi/testlib.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test/mpi/descriptors.h"

enum { PART = 256 << 10, LONGS = 1000 };

/** A rank's part in each target's memory. */
static MPI_Aint mine(const tl_window_t *w, int target)
{
    return tl_disp(w, target, (MPI_Aint)w->rank * PART);
}

/** All that can be done to one target, which holds still. */
static void use(const tl_window_t *w, int target)
{
    unsigned char *out = tl_alloc(PART), *in = tl_alloc(PART);
    int64_t one = 1, old = 0, was = -1;
    MPI_Datatype holes;

    MPI_Type_vector(LONGS, 1, 2, MPI_LONG, &holes);
    MPI_Type_commit(&holes);
    tl_fill_random(out, PART, (uint64_t)(w->rank * 100 + target));
    TL_MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, w->win));
    TL_MPI(MPI_Put(out, 8, MPI_BYTE, target, mine(w, target), 8, MPI_BYTE, w->win));
    TL_MPI(MPI_Win_flush(target, w->win));
    TL_MPI(MPI_Put(out, PART, MPI_BYTE, target, mine(w, target), PART, MPI_BYTE, w->win));
    TL_MPI(MPI_Win_flush(target, w->win));
    TL_MPI(MPI_Get(in, PART, MPI_BYTE, target, mine(w, target), PART, MPI_BYTE, w->win));
    TL_MPI(MPI_Win_flush(target, w->win));
    TL_BYTES(in, out, PART, "got from rank %d", target);
    TL_MPI(MPI_Put(out, 1, holes, target, mine(w, target), 1, holes, w->win));
    memset(out, 0, 8);
    TL_MPI(MPI_Win_flush(target, w->win));
    TL_MPI(MPI_Put(out, 8, MPI_BYTE, target, mine(w, target), 8, MPI_BYTE, w->win));
    TL_MPI(MPI_Win_flush(target, w->win));
    TL_MPI(MPI_Accumulate(&one, 1, MPI_INT64_T, target, mine(w, target), 1, MPI_INT64_T, MPI_SUM,
                          w->win));
    TL_MPI(MPI_Fetch_and_op(&one, &old, MPI_INT64_T, target, mine(w, target), MPI_SUM, w->win));
    TL_MPI(MPI_Win_flush(target, w->win));
    TL_MPI(MPI_Compare_and_swap(&one, &old, &was, MPI_INT64_T, target, mine(w, target), w->win));
    TL_MPI(MPI_Win_unlock(target, w->win));
    TL_CHECK(was == 2, "%lld counted at rank %d", (long long)was, target);
    MPI_Type_free(&holes);
    free(out);
    free(in);
}

/** Each in its turn uses all others, which are away for a while. */
static void use_all(const tl_window_t *w)
{
    for (int turn = 0; turn < w->size; turn++) {
        MPI_Barrier(w->comm);
        if (turn != w->rank)
            usleep(50000);
        for (int i = 0; i < w->size && turn == w->rank; i++)
            use(w, (w->rank + i) % w->size);
    }
    MPI_Barrier(w->comm);
}

/** Point-to-point layers of others have all their connections. */
static void connect_all(void)
{
    const int n = tl_size(), me = tl_rank();

    for (int i = 1; i < n; i++) {
        const int to = (me + i) % n, from = (me + n - i) % n;
        unsigned char *out = tl_alloc(PART), *in = tl_alloc(PART);

        for (int bytes = 1; bytes <= PART; bytes = bytes < PART ? PART : PART + 1)
            TL_MPI(MPI_Sendrecv(out, bytes, MPI_BYTE, to, 0, in, bytes, MPI_BYTE, from, 0,
                                MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        free(out);
        free(in);
    }
}

int main(int argc, char **argv)
{
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    tl_need_ranks(2, 16);
    connect_all();
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind)) {
        tl_window_t before =
            tl_win_make(kind, (MPI_Aint)tl_size() * PART, 1, MPI_COMM_WORLD, MPI_INFO_NULL);

        if (tl_size() % 2 != 0 || tl_rank() % 2 != 0)
            descriptors_take();
        use_all(&before);
        tl_window_t then =
            tl_win_make(kind, (MPI_Aint)tl_size() * PART, 1, MPI_COMM_WORLD, MPI_INFO_NULL);

        use_all(&then);
        tl_win_free(&then);
        descriptors_give();
        tl_win_free(&before);
    }
    return tl_finish();
}
