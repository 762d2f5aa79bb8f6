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
 * one operation after the other and flush each, some time apart, and so meet the thread anywhere
 * between its last look for messages and its sleep. One message that does not wake the thread is
 * one that nobody handles. test/explore/server.c looks at all orders of these steps.
 */
#include "test/mpi/testlib.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/transport/transport.h"

#define ROUNDS (tl_slow() ? 100 : 500)
/** Nanoseconds: the thread takes a few thousand from its last look until it sleeps, and more where
 *  it has to share its processor. */
static const int pauses[] = {2000, 6000, 20000, 60000};

enum { RANKS = 16 };

static int senders;
/** What the operations write, in rank 0. */
static const volatile long *words;

/** For so many nanoseconds. */
static bool is_over(double begin, int nsec)
{
    return MPI_Wtime() - begin >= 1e-9 * nsec;
}

static void send_all(const tl_window_t *w)
{
    const MPI_Aint at = tl_disp(w, 0, (MPI_Aint)w->rank * (MPI_Aint)sizeof(long));
    unsigned seed = (unsigned)w->rank;

    for (long i = 1; i <= ROUNDS; i++) {
        const double begin = MPI_Wtime();
        const int pause = i % 2 ? 0 : (int)(rand_r(&seed) % (unsigned)pauses[i / 2 % 4]);
        while (!is_over(begin, pause)) {
        }
        TL_MPI(MPI_Put(&i, 1, MPI_LONG, 0, at, 1, MPI_LONG, w->win));
        TL_MPI(MPI_Win_flush(0, w->win));
    }
}

/** Until every other rank's last operation is done in this process's memory. */
static void compute(void)
{
    for (int rank = 1; rank <= senders; rank++) {
        while (words[rank] != ROUNDS) {
        }
    }
}

static void run(const tl_window_t *w)
{
    words = (const volatile long *)(const void *)w->base;
    /* As for processes of other hosts, which cannot wake this one. */
    onic_transport_want_server(true);
    TL_MPI(MPI_Win_lock_all(0, w->win));
    TL_MPI(MPI_Barrier(w->comm));
    if (w->rank == 0)
        compute();
    else
        send_all(w);
    TL_MPI(MPI_Win_unlock_all(w->win));
    onic_transport_want_server(false);
}

int main(int argc, char **argv)
{
    setenv("OMPI_MCA_osc_nicstride_server_idle", "10", 1);
    setenv("OMPI_MCA_osc_nicstride_method", "pack", 1);
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    tl_need_ranks(2, RANKS);
    senders = tl_size() - 1;
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind)) {
        tl_window_t w =
            tl_win_make(kind, tl_size() * (MPI_Aint)sizeof(long), 1, MPI_COMM_WORLD, MPI_INFO_NULL);

        memset(w.base, 0, (size_t)tl_size() * sizeof(long));
        run(&w);
        tl_win_free(&w);
    }
    return tl_finish();
}
