/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-4 */
/* engines: datagram verbs lossy mlx5 mlx5adapter */
/**
 * @file
 * Engine datagram uses a verbs device where there is one that works, otherwise UDP without a word;
 * where it must be verbs (engine "verbs") and cannot be, barriers stay with the module below, and
 * one line says why. ONIC_TEST_VERBS=blocked: devices are there, but nothing gets through. Engine
 * mlx5 takes any device where the process takes the steps ("mlx5"), and else only some of one
 * maker.
 */
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

static void check(const char *use, bool have, bool works, int lines)
{
    long long sent = sum("verbs_sent"), fallbacks = sum("verbs_fallbacks");
    long long declined = sum("declined");
    long long carried = sum("barriers_datagram");
    bool never = strcmp(use, "never") == 0, only = strcmp(use, "always") == 0;
    bool served = works || !only;
    TL_CHECK((declined == 0) == served, "%lld agreements declined", declined);
    TL_CHECK((carried > 0) == served, "%lld barriers by datagrams", carried);
    TL_CHECK(lines == !served, "%d lines", lines);
    TL_CHECK((sent > 0) == (have && !never), "%lld packets sent by verbs", sent);
    TL_CHECK((fallbacks > 0) == (have && !works && !never && !only), "%lld fallbacks", fallbacks);
    if (works && only) {
        /* What is lost is seldom repeated: the next message says it, too. */
        TL_CHECK(2 * sent >= carried, "%lld packets for %lld barriers", sent, carried);
    }
}

static void check_mlx5(bool by_process, bool works, int lines)
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
    const char *use = getenv("OMPI_MCA_coll_nicbarrier_verbs");
    const char *state = getenv("ONIC_TEST_VERBS");
    bool have = devices(), works = have && (state == NULL || strcmp(state, "blocked") != 0);
    MPI_Comm dup_comm;
    TL_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &dup_comm));
    meet_errors_t errors = meet_catch_errors();
    barriers(MPI_COMM_WORLD);
    barriers(dup_comm);
    int lines = meet_count_errors(&errors);
    if (strcmp(meet_engine(), "mlx5") == 0) {
        const char *steps = getenv("OMPI_MCA_coll_nicbarrier_mlx5_steps");
        check_mlx5(steps != NULL && strcmp(steps, "process") == 0, works, lines);
    } else {
        check(use != NULL ? use : "auto", have, works, lines);
    }
    TL_MPI(MPI_Comm_free(&dup_comm));
    return meet_finish();
}
