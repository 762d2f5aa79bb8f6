/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-4 */
/* engines: mlx5 */
/** @file Engine mlx5 takes only some adapters of one maker. Where there is none, barriers stay with
 *  the module below, and one line says why. */
#include "test/mpi/meet.h"

enum { MANY = 200 };

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
    }
    meet_free(&m);
}

/** A counter of all ranks together. */
static long long sum(const char *name)
{
    long long mine = meet_counter(name), all = 0;
    TL_CHECK(mine >= 0, "counter %s", name);
    TL_MPI(MPI_Allreduce(&mine, &all, 1, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD));
    return all;
}

static void check(int lines)
{
    long long carried = sum("barriers_mlx5"), declined = sum("declined");
    TL_CHECK((declined > 0) == (carried == 0), "%lld agreements declined", declined);
    TL_CHECK(lines == (carried == 0), "%d lines", lines);
}

int main(int argc, char **argv)
{
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    meet_begin();
    if (meet_engine() == NULL)
        tl_skip("another component does the barriers");
    MPI_Comm dup_comm;
    TL_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &dup_comm));
    meet_errors_t errors = meet_catch_errors();
    barriers(MPI_COMM_WORLD);
    barriers(dup_comm);
    int lines = meet_count_errors(&errors);
    check(lines);
    TL_MPI(MPI_Comm_free(&dup_comm));
    return meet_finish();
}
