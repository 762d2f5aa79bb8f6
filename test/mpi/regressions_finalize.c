/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 1-4 */
/* windows: create allocate dynamic shared */
/* leaks: expected */
/**
 * @file
 * A bug that once was: windows that the user never freed were gone before the wire was closed,
 * though messages under way still pointed at their memory and their operations. The process crashed
 * in MPI_Finalize. Programs may not end so; but one that does shall not crash after its work is
 * done.
 */
#include "test/mpi/testlib.h"

#include <unistd.h>

/** Seconds after which a process that hangs is ended by a signal. */
#define PATIENCE TL_PATIENCE

enum { BYTES = 2000000, PUTS = 100, ACCUMULATES = 50 };

/* Must outlive main(): nobody waits for what moves them. */
static unsigned char got[TL_KINDS][BYTES];
static _Alignas(long) unsigned char sent[BYTES];

static tl_window_t make_window(tl_kind_t kind)
{
    tl_window_t w = tl_win_make(kind, BYTES, 1, MPI_COMM_WORLD, MPI_INFO_NULL);

    TL_MPI(MPI_Win_lock_all(0, w.win));
    return w;
}

/** One answer of many messages, which come while MPI ends. */
static void forget_get(tl_kind_t kind)
{
    tl_window_t w = make_window(kind);
    int next = (w.rank + 1) % w.size;

    TL_MPI(MPI_Get(got[kind], BYTES, MPI_BYTE, next, tl_disp(&w, next, 0), BYTES, MPI_BYTE, w.win));
}

/** Many messages that nobody asked the target about. */
static void forget_puts(tl_kind_t kind)
{
    enum { EACH = BYTES / PUTS };
    tl_window_t w = make_window(kind);
    int next = (w.rank + 1) % w.size;

    for (int i = 0; i < PUTS; i++) {
        TL_MPI(MPI_Put(sent + i * EACH, EACH, MPI_BYTE, next, tl_disp(&w, next, i * EACH), EACH,
                       MPI_BYTE, w.win));
    }
}

/** More in two windows than the target puts aside for one process, so that some wait. */
static void forget_accumulates(tl_kind_t kind)
{
    enum { LONGS = BYTES / sizeof(long) };
    tl_window_t w[] = {make_window(kind), make_window(kind)};
    int next = (w[0].rank + 1) % w[0].size;

    for (int i = 0; i < 2 * ACCUMULATES; i++) {
        TL_MPI(MPI_Accumulate(sent, LONGS, MPI_LONG, next, tl_disp(&w[i % 2], next, 0), LONGS,
                              MPI_LONG, MPI_SUM, w[i % 2].win));
    }
}

int main(int argc, char **argv)
{
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    alarm(PATIENCE);
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind)) {
        forget_puts(kind);
        forget_get(kind);
        forget_accumulates(kind);
    }
    return tl_finish();
}
