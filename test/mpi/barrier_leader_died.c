/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 3-5 */
/* engines: put */
/* mpirun: --enable-recovery --mca orte_allowed_exit_without_sync 1 */
/* leaks: expected */
/**
 * @file
 * A leader is killed, and nobody shares its node: the others hear of it by their connections over
 * TCP, or, where they have none to it, from those that do. Barriers end with an error for all, and
 * so does every later one; barriers of the others go on.
 *
 * The launcher would end the job where it sees a rank die. So each rank is the child of the process
 * that it knows, and that one stays.
 */
#include "test/mpi/meet.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

enum { VICTIM = 1, MANY = 20 };

/** Seconds after which a process that hangs is ended. */
#define PATIENCE TL_PATIENCE

static bool ends_with_error(MPI_Comm comm)
{
    return MPI_Barrier(comm) != MPI_SUCCESS;
}

static bool ends_nonblocking_with_error(MPI_Comm comm)
{
    MPI_Request request;
    return MPI_Ibarrier(comm, &request) != MPI_SUCCESS ||
           MPI_Wait(&request, MPI_STATUS_IGNORE) != MPI_SUCCESS;
}

/** Those who live among themselves. */
static int finish(MPI_Comm living)
{
    long failed = tl_failed();
    meet_t m = meet_new(living);
    for (int i = 0; i < MANY; i++)
        meet_barrier(&m, "among the living");
    meet_free(&m);
    TL_MPI(MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_LONG, MPI_SUM, living));
    TL_MPI(MPI_Comm_free(&living));
    MPI_Finalize();
    return failed == 0 ? TL_EXIT_OK : TL_EXIT_FAILED;
}

int main(int argc, char **argv)
{
    MPI_Comm comm, living;
    meet_begin_as_child();
    setenv("UCX_TLS", "tcp,self", 1);
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    meet_begin();
    if (meet_engine() == NULL || !tl_one_host())
        tl_skip("this needs an engine between leaders on one host");
    alarm(PATIENCE);
    TL_MPI(MPI_Comm_split(MPI_COMM_WORLD, tl_rank() == VICTIM ? MPI_UNDEFINED : 0, 0, &living));
    TL_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    TL_MPI(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    for (int i = 0; i < MANY; i++)
        TL_MPI(MPI_Barrier(comm));
    meet_check_engine(1);
    int one = 1, all;
    TL_MPI(MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    if (tl_rank() == VICTIM)
        kill(getpid(), SIGKILL);
    TL_CHECK(ends_with_error(comm), "no error of MPI_Barrier");
    TL_CHECK(ends_nonblocking_with_error(comm), "no error of MPI_Ibarrier");
    TL_CHECK(ends_with_error(comm), "no error later");
    MPI_Comm_free(&comm);
    return finish(living);
}
