/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-4 */
/* windows: create dynamic */
/**
 * @file
 * A server thread that stands in for MPI threads that compute sleeps between messages: whatever
 * comes while it falls asleep ends that. Rank 0 never calls MPI until all has come; the others send
 * one operation after the other and flush each, some time after the last one, so that many meet the
 * thread just then. One message that does not wake it is one that nobody handles.
 */
#include "test/mpi/testlib.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "common/wire/wire.h"

#define ROUNDS (tl_slow() ? 100 : 2000)
/** Nanoseconds: the thread takes a few thousand from a message until it sleeps, and more where it
 *  has to share its processor. */
static const int pauses[] = {2000, 6000, 20000, 60000};

static void pause_some(unsigned *seed, long round)
{
    const double end = MPI_Wtime() + 1e-9 * (rand_r(seed) % pauses[round % 4]);

    while (MPI_Wtime() < end) {
    }
}

/** Until every other rank's last operation is done in this process's memory. */
static void compute(const tl_window_t *w)
{
    const volatile long *words = (const volatile long *)(const void *)w->base;

    for (int rank = 1; rank < w->size; rank++) {
        while (words[rank] != ROUNDS) {
        }
    }
}

static void send_all(const tl_window_t *w)
{
    const MPI_Aint at = tl_disp(w, 0, (MPI_Aint)w->rank * (MPI_Aint)sizeof(long));
    unsigned seed = (unsigned)w->rank;

    for (long i = 1; i <= ROUNDS; i++) {
        pause_some(&seed, i);
        TL_MPI(MPI_Put(&i, 1, MPI_LONG, 0, at, 1, MPI_LONG, w->win));
        TL_MPI(MPI_Win_flush(0, w->win));
    }
}

int main(int argc, char **argv)
{
    setenv("OMPI_MCA_osc_nicstride_server_idle", "10", 1);
    setenv("OMPI_MCA_osc_nicstride_method", "pack", 1);
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    tl_need_ranks(2, 16);
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind)) {
        tl_window_t w =
            tl_win_make(kind, tl_size() * (MPI_Aint)sizeof(long), 1, MPI_COMM_WORLD, MPI_INFO_NULL);

        /* As for processes of other hosts, which cannot wake this one. */
        onic_wire_want_server(true);
        TL_MPI(MPI_Win_lock_all(0, w.win));
        TL_MPI(MPI_Barrier(w.comm));
        if (w.rank == 0)
            compute(&w);
        else
            send_all(&w);
        TL_MPI(MPI_Win_unlock_all(w.win));
        onic_wire_want_server(false);
        tl_win_free(&w);
    }
    return tl_finish();
}
