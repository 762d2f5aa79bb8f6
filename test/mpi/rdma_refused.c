/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2 */
/* windows: create allocate */
/* methods: rdma */
/**
 * @file
 * Keys are refused: rank 1 runs without what is needed to let others reach its memory. Rank 0 asks
 * once in each window, and everything goes by message, to the same bytes. By its own keys rank 1
 * would reach rank 0, whose memory is registered, but it does not ask.
 */
#include <stdlib.h>
#include <string.h>

#include "test/mpi/counter.h"
#include "test/mpi/testlib.h"

enum { BYTES = 1 << 20, SHORT = 8, ROUNDS = 50 };

static void put_and_get(const tl_window_t *w, int n, unsigned char value)
{
    unsigned char *mine = tl_alloc(BYTES), *got = tl_alloc(BYTES);
    const int other = 1 - w->rank;

    memset(mine, value, (size_t)n);
    TL_MPI(MPI_Put(mine, n, MPI_BYTE, other, tl_disp(w, other, 0), n, MPI_BYTE, w->win));
    TL_MPI(MPI_Win_flush(other, w->win));
    TL_MPI(MPI_Get(got, n, MPI_BYTE, other, tl_disp(w, other, 0), n, MPI_BYTE, w->win));
    TL_MPI(MPI_Win_flush(other, w->win));
    TL_BYTES(got, mine, (size_t)n, "put and got back");
    free(mine);
    free(got);
}

int main(int argc, char **argv)
{
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");
    counter_t *ops, *asked, *refused;
    unsigned long long windows = 0;
    int index, provided;

    if (rank != NULL && strcmp(rank, "1") == 0) {
        setenv("OMPI_MCA_osc_nicstride_method", "pack", 1);
        setenv("OMPI_MCA_osc_nicstride_network_slots", "0", 1);
        setenv("UCX_TLS", "tcp,self,sysv,posix", 1);
    }
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    tl_need_ranks(2, 2);
    TL_MPI(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    if (!counter_find("osc_nicstride_ops_rdma", &index))
        tl_skip("the component is not there");
    ops = counter_begin("osc_nicstride_ops_rdma");
    asked = counter_begin("osc_nicstride_keys_asked");
    refused = counter_begin("osc_nicstride_keys_refused");
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind), windows++) {
        tl_window_t w = tl_win_make(kind, BYTES, 1, MPI_COMM_WORLD, MPI_INFO_NULL);

        TL_MPI(MPI_Win_lock_all(MPI_MODE_NOCHECK, w.win));
        for (int i = 0; i < ROUNDS; i++)
            put_and_get(&w, i % 2 ? BYTES : SHORT, (unsigned char)i);
        TL_MPI(MPI_Win_unlock_all(w.win));
        tl_win_free(&w);
    }
    if (tl_rank() == 0) {
        TL_CHECK(counter_read(asked) == windows && counter_read(refused) == windows,
                 "of %llu windows %llu keys were asked for and %llu refused", windows,
                 counter_read(asked), counter_read(refused));
    }
    TL_CHECK(counter_read(ops) == 0, "%llu operations by the method", counter_read(ops));
    counter_end(ops);
    counter_end(asked);
    counter_end(refused);
    TL_MPI(MPI_T_finalize());
    return tl_finish();
}
