/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-4 */
/* engines: mlx5 mlx5adapter */
/** @file Engine mlx5 takes any verbs device where the process takes the steps ("mlx5"), and else
 * only some of one maker. Where it cannot, barriers stay with the module below, and one line says
 * why. */
#include "test/mpi/meet.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

enum { MANY = 200 };

/** Do all ranks have a device? */
static bool devices(void)
{
    DIR *dir = opendir("/sys/class/infiniband");
    const struct dirent *entry = NULL;
    int have, all = 0;
    while (dir != NULL && (entry = readdir(dir)) != NULL && entry->d_name[0] == '.') {
    }
    have = entry != NULL;
    if (dir != NULL)
        closedir(dir);
    TL_MPI(MPI_Allreduce(&have, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD));
    return all != 0;
}

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

static void check(bool by_process, bool works, int lines)
{
    long long carried = sum("barriers_mlx5"), declined = sum("declined");
    TL_CHECK(carried == 0 || works, "%lld barriers without a device", carried);
    TL_CHECK(carried > 0 || !works || !by_process, "no barriers over a device");
    TL_CHECK((declined > 0) == (carried == 0), "%lld agreements declined", declined);
    TL_CHECK(lines == (carried == 0), "%d lines", lines);
}

int main(int argc, char **argv)
{
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    meet_begin();
    if (meet_engine() == NULL)
        tl_skip("another component does the barriers");
    const char *steps = getenv("OMPI_MCA_coll_nicbarrier_mlx5_steps");
    bool works = devices();
    MPI_Comm dup_comm;
    TL_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &dup_comm));
    meet_errors_t errors = meet_catch_errors();
    barriers(MPI_COMM_WORLD);
    barriers(dup_comm);
    int lines = meet_count_errors(&errors);
    check(steps != NULL && strcmp(steps, "process") == 0, works, lines);
    TL_MPI(MPI_Comm_free(&dup_comm));
    return meet_finish();
}
