/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-4 */
/* engines: datagram */
/**
 * @file
 * No datagram ever arrives, as behind a firewall, though all ranks could set up the engine: that is
 * found out before any barrier depends on it, and the module below serves for good. What a trial
 * has shown is remembered: the next communicators have none, also those with fewer ranks.
 */
#include "test/mpi/meet.h"

#include <stdlib.h>

enum { MANY = 40 };

/** Barriers over the first `n` ranks. */
static void among(int n)
{
    MPI_Comm comm;
    TL_MPI(MPI_Comm_split(MPI_COMM_WORLD, tl_rank() < n ? 0 : MPI_UNDEFINED, 0, &comm));
    if (comm == MPI_COMM_NULL)
        return;
    meet_t m = meet_new(comm);
    for (int i = 0; i < MANY; i++)
        meet_barrier(&m, "later");
    meet_free(&m);
    TL_MPI(MPI_Comm_free(&comm));
}

int main(int argc, char **argv)
{
    setenv("OMPI_MCA_coll_nicbarrier_drop", "1000", 1);
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    meet_begin();
    if (meet_engine() == NULL)
        tl_skip("another component does the barriers");
    MPI_Comm dup_comm;
    TL_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &dup_comm));
    meet_t m = meet_new(MPI_COMM_WORLD), n = meet_new(dup_comm);
    for (int i = 0; i < MANY; i++)
        meet_barrier(&m, "blocking");
    for (int i = 0; i < MANY; i++) {
        MPI_Request request;
        long number = meet_ibarrier(&n, &request);
        TL_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
        meet_leave(&n, number, "nonblocking");
        meet_barrier(&n, "blocking");
    }
    TL_CHECK(meet_counter("declined") == 2, "%lld agreements were declined",
             meet_counter("declined"));
    /* On one host each leads itself; over several it is not known what holds within each. */
    bool one_host = tl_one_host();
    for (int size = one_host ? 2 : tl_size(); size <= tl_size(); size++)
        among(size);
    long long trials = meet_counter("trials");
    TL_CHECK(one_host ? trials == 1 : trials <= 1, "%lld trials", trials);
    TL_CHECK(meet_counter("barriers_datagram") == 0, "%lld barriers by datagrams",
             meet_counter("barriers_datagram"));
    TL_CHECK(meet_counter("live_teams") == 0, "%lld engines", meet_counter("live_teams"));
    meet_free(&m);
    meet_free(&n);
    TL_MPI(MPI_Comm_free(&dup_comm));
    return meet_finish();
}
