/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-4 */
/* engines: datagram mlx5 */
/**
 * @file
 * No datagram ever arrives, as behind a firewall, though all ranks could set up the engine: that is
 * found out before any barrier depends on it, and the module below serves for good. What a trial
 * has shown is remembered: the next communicators have none, also those with fewer ranks.
 *
 * Engine mlx5 takes only some adapters of one maker: where there is none it is the same, without a
 * trial. One line says why.
 */
#include "test/mpi/meet.h"

#include <stdlib.h>
#include <string.h>

enum { MANY = 40 };

static void barriers(MPI_Comm comm)
{
    meet_t m = meet_new(comm);
    for (int i = 0; i < MANY; i++)
        meet_barrier(&m, "blocking");
    for (int i = 0; i < MANY; i++) {
        MPI_Request request;
        long number = meet_ibarrier(&m, &request);
        TL_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
        meet_leave(&m, number, "nonblocking");
        meet_barrier(&m, "blocking");
    }
    meet_free(&m);
}

/** Barriers over the first `n` ranks. */
static void among(int n)
{
    MPI_Comm comm;
    TL_MPI(MPI_Comm_split(MPI_COMM_WORLD, tl_rank() < n ? 0 : MPI_UNDEFINED, 0, &comm));
    if (comm == MPI_COMM_NULL)
        return;
    barriers(comm);
    TL_MPI(MPI_Comm_free(&comm));
}

int main(int argc, char **argv)
{
    setenv("OMPI_MCA_coll_nicbarrier_drop", "1000", 1);
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    meet_begin();
    if (meet_engine() == NULL)
        tl_skip("another component does the barriers");
    const bool datagram = strcmp(meet_engine(), "datagram") == 0, one_host = tl_one_host();
    meet_errors_t errors = meet_catch_errors();
    barriers(MPI_COMM_WORLD);
    among(tl_size());
    const long long declined = meet_counter("declined");
    /* There may be an adapter for engine mlx5. */
    const bool carried = !datagram && meet_carried() > 0;
    TL_CHECK(declined == (carried ? 0 : 2), "%lld agreements were declined", declined);
    /* On one host each leads itself; over several it is not known what holds within each. */
    for (int size = one_host ? 2 : tl_size(); size <= tl_size(); size++)
        among(size);
    const int lines = meet_count_errors(&errors, "coll_nicbarrier:");
    TL_CHECK(lines == !carried, "%d lines say why", lines);
    const long long trials = meet_counter("trials");
    TL_CHECK(carried || trials == (datagram && one_host) || (datagram && trials <= 1 && !one_host),
             "%lld trials", trials);
    TL_CHECK(carried || meet_carried() == 0, "%lld barriers by the engine", meet_carried());
    return meet_finish();
}
