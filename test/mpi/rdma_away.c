/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2 */
/* windows: create allocate */
/* methods: auto rdma */
/* needs: rdma */
/**
 * @file
 * Where an adapter moves the data the target's processor is not needed: rank 1 stays outside of
 * MPI, without its server thread, until rank 0 has put to it and got back. The data is there then,
 * before rank 1 has called MPI.
 *
 * Skipped where there is no such device; test/fabric/roce makes one.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test/mpi/counter.h"
#include "test/mpi/meet.h"

enum { BYTES = 1 << 20, SHORT = 8, PATIENCE = 2000 };

static counter_t *ops;
static meet_t board;

static bool goes_by_rdma(const tl_window_t *w, const void *mine, int n)
{
    const unsigned long long before = counter_read(ops);

    TL_MPI(MPI_Put(mine, n, MPI_BYTE, 1, tl_disp(w, 1, 0), n, MPI_BYTE, w->win));
    TL_MPI(MPI_Win_flush(1, w->win));
    return counter_read(ops) > before;
}

/** The connection is there, and the keys, when this returns. */
static void warm_up(const tl_window_t *w, const unsigned char *zeros)
{
    bool by_rdma = false;

    for (int i = 0; i < PATIENCE && w->rank == 0 && !by_rdma; i++)
        by_rdma = goes_by_rdma(w, zeros, BYTES) && goes_by_rdma(w, zeros, SHORT);
    TL_CHECK(w->rank != 0 || by_rdma, "puts do not go by the adapter");
    MPI_Barrier(w->comm);
}

static void while_it_sleeps(const tl_window_t *w, const unsigned char *mine)
{
    unsigned char *got = tl_alloc(BYTES);

    TL_CHECK(goes_by_rdma(w, mine, BYTES), "a long put did not go by the adapter");
    TL_CHECK(goes_by_rdma(w, mine, SHORT), "a short put did not go by the adapter");
    TL_MPI(MPI_Get(got, BYTES, MPI_BYTE, 1, tl_disp(w, 1, 0), BYTES, MPI_BYTE, w->win));
    TL_MPI(MPI_Win_flush(1, w->win));
    TL_BYTES(got, mine, BYTES, "got back from a process that sleeps");
    (void)meet_enter(&board);
    free(got);
}

static void sleep_and_look(const tl_window_t *w, const unsigned char *expected)
{
    (void)meet_enter(&board);
    for (int i = 0; i < TL_PATIENCE * 1000 && meet_entered(&board, 0) < board.mine; i++)
        usleep(1000);
    TL_CHECK(meet_entered(&board, 0) == board.mine, "an operation waits for a process that sleeps");
    TL_BYTES((const unsigned char *)w->base, expected, BYTES, "put while this process slept");
}

int main(int argc, char **argv)
{
    unsigned char *zeros, *mine;
    int index, provided;

    setenv("OMPI_MCA_osc_nicstride_server", "0", 1);
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    tl_need_ranks(2, 2);
    TL_MPI(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    if (!counter_find("osc_nicstride_ops_rdma", &index))
        tl_skip("the component is not there");
    ops = counter_begin("osc_nicstride_ops_rdma");
    board = meet_new(MPI_COMM_WORLD);
    zeros = tl_alloc(BYTES);
    mine = tl_alloc(BYTES);
    memset(zeros, 0, BYTES);
    tl_fill_random(mine, BYTES, tl_seed());
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind)) {
        tl_window_t w = tl_win_make(kind, BYTES, 1, MPI_COMM_WORLD, MPI_INFO_NULL);

        TL_MPI(MPI_Win_lock_all(MPI_MODE_NOCHECK, w.win));
        warm_up(&w, zeros);
        if (w.rank == 0)
            while_it_sleeps(&w, mine);
        else
            sleep_and_look(&w, mine);
        MPI_Barrier(w.comm);
        TL_MPI(MPI_Win_unlock_all(w.win));
        tl_win_free(&w);
    }
    free(zeros);
    free(mine);
    counter_end(ops);
    meet_free(&board);
    TL_MPI(MPI_T_finalize());
    return tl_finish();
}
