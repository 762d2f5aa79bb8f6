/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-4 */
/* windows: create allocate dynamic shared */
/* methods: all */
/**
 * @file
 * Operations that wait for company leave though nobody flushes them: while their origin polls its
 * own memory, while it waits for a message that is sent when their effect is seen, and while it is
 * away from MPI, where what the adapter or the target has to answer first is answered meanwhile.
 */
#include <string.h>
#include <unistd.h>

#include "test/mpi/testlib.h"

enum { PUTS = 8, BLOCKS = 192, SPREAD = 2 * BLOCKS, PLACE = 128, AWAY_USEC = 200000 };

/** Rank 0 puts to all, and looks at its own memory till its own puts have come. */
static void while_origin_polls(const tl_window_t *w)
{
    const volatile long *mine = (const volatile long *)(const void *)w->base;
    const double end = MPI_Wtime() + TL_PATIENCE;
    long source[PUTS];
    int here = 0, all_here = 0;
    MPI_Request everywhere;

    for (int i = 0; i < PUTS; i++)
        source[i] = -1 - i;
    for (int i = 0; i < w->size * PUTS && w->rank == 0; i++) {
        TL_MPI(MPI_Put(&source[i % PUTS], 1, MPI_LONG, i / PUTS,
                       tl_disp(w, i / PUTS, i % PUTS * (MPI_Aint)sizeof(long)), 1, MPI_LONG,
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

/** Rank 1 answers by a message when it sees what rank 0 has written. */
static void while_origin_receives(const tl_window_t *w, bool accumulate)
{
    const long value = accumulate ? 7001 : 7000;
    int flag;

    if (w->rank == 0) {
        const MPI_Aint at = tl_disp(w, 1, 0);

        if (accumulate)
            TL_MPI(MPI_Accumulate(&value, 1, MPI_LONG, 1, at, 1, MPI_LONG, MPI_REPLACE, w->win));
        else
            TL_MPI(MPI_Put(&value, 1, MPI_LONG, 1, at, 1, MPI_LONG, w->win));
        TL_MPI(MPI_Recv(NULL, 0, MPI_BYTE, 1, 7, w->comm, MPI_STATUS_IGNORE));
        TL_MPI(MPI_Win_flush(1, w->win));
    } else if (w->rank == 1) {
        while (*(const volatile long *)(const void *)w->base != value)
            TL_MPI(MPI_Iprobe(MPI_ANY_SOURCE, 8, w->comm, &flag, MPI_STATUS_IGNORE));
        TL_MPI(MPI_Send(NULL, 0, MPI_BYTE, 0, 7, w->comm));
    }
    MPI_Barrier(w->comm);
}

/** Two puts, the first of which is answered where nobody looks now; `blocks`: the second has more
 *  blocks than an adapter is given at once. Rank 1 says by a put that they have come, which rank 0
 *  sees by plain loads. */
static void while_origin_is_away(const tl_window_t *w, bool blocks)
{
    /* Not const: UCX cannot register read-only memory for a rendezvous. */
    static unsigned char mark[8] = {0xaa, 0x55, 1, 2, 3, 4, 5, 6};
    const int last = blocks ? PLACE + 2 * (BLOCKS - 1) : PLACE;
    const volatile unsigned char *here = w->base;
    const double end = MPI_Wtime() + TL_PATIENCE;
    unsigned char many[BLOCKS];
    MPI_Datatype each_second;

    memset(many, mark[0], BLOCKS);
    memset(w->base, 0, PLACE + SPREAD);
    TL_MPI(MPI_Type_vector(BLOCKS, 1, 2, MPI_BYTE, &each_second));
    TL_MPI(MPI_Type_commit(&each_second));
    TL_MPI(MPI_Win_sync(w->win));
    TL_MPI(MPI_Barrier(w->comm));
    if (w->rank == 0) {
        usleep(AWAY_USEC);
        TL_MPI(MPI_Put(mark, 8, MPI_BYTE, 1, tl_disp(w, 1, 0), 8, MPI_BYTE, w->win));
        if (blocks)
            TL_MPI(
                MPI_Put(many, BLOCKS, MPI_BYTE, 1, tl_disp(w, 1, PLACE), 1, each_second, w->win));
        else
            TL_MPI(MPI_Put(mark, 8, MPI_BYTE, 1, tl_disp(w, 1, PLACE), 8, MPI_BYTE, w->win));
        while (here[0] == 0 && MPI_Wtime() < end)
            usleep(1000);
        TL_CHECK(here[0] != 0, "the second put%s has not come while its origin was away",
                 blocks ? ", of blocks," : "");
        TL_MPI(MPI_Win_flush(1, w->win));
    } else if (w->rank == 1) {
        while (here[last] == 0 && MPI_Wtime() < end)
            TL_MPI(MPI_Win_sync(w->win));
        TL_MPI(MPI_Put(mark, 8, MPI_BYTE, 0, tl_disp(w, 0, 0), 8, MPI_BYTE, w->win));
        TL_MPI(MPI_Win_flush(0, w->win));
    }
    TL_MPI(MPI_Barrier(w->comm));
    TL_MPI(MPI_Type_free(&each_second));
}

int main(int argc, char **argv)
{
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    tl_need_ranks(2, 64);
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind)) {
        tl_window_t w = tl_win_make(kind, PLACE + SPREAD, 1, MPI_COMM_WORLD, MPI_INFO_NULL);

        TL_MPI(MPI_Win_lock_all(0, w.win));
        while_origin_polls(&w);
        while_origin_receives(&w, false);
        while_origin_receives(&w, true);
        while_origin_is_away(&w, false);
        while_origin_is_away(&w, true);
        TL_MPI(MPI_Win_unlock_all(w.win));
        tl_win_free(&w);
    }
    return tl_finish();
}
