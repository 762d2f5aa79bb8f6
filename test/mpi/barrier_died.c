/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 3-4 */
/* engines: auto put2 datagram2 */
/* mpirun: --enable-recovery --mca orte_allowed_exit_without_sync 1 */
/**
 * @file
 * A rank is killed while others wait for it in barriers of every kind: these end with an error, in
 * all who wait, and so does every later one. Errors are returned, so the others go on, with
 * communicators that the dead one is not in, to MPI_Finalize.
 *
 * The launcher would end the job where it sees a rank die. So each rank is the child of the process
 * that it knows, and that one stays.
 */
#include "test/mpi/meet.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

enum { MANY = 5, VICTIM = 1, KINDS = 3 };

#ifdef MPI_ERR_PROC_FAILED
#define GONE MPI_ERR_PROC_FAILED
#else
#define GONE MPI_ERR_OTHER
#endif

static void blocking(MPI_Comm comm)
{
    TL_MPI_ERROR(MPI_Barrier(comm), GONE);
}

static void nonblocking(MPI_Comm comm)
{
    MPI_Request request;
    TL_MPI(MPI_Ibarrier(comm, &request));
    TL_MPI_ERROR(MPI_Wait(&request, MPI_STATUS_IGNORE), GONE);
    TL_CHECK(request == MPI_REQUEST_NULL, "the request is left");
}

static void several(MPI_Comm comm)
{
    MPI_Request requests[MANY];
    MPI_Status status[MANY];
    for (int i = 0; i < MANY; i++)
        TL_MPI(MPI_Ibarrier(comm, &requests[i]));
    TL_MPI_ERROR(MPI_Waitall(MANY, requests, status), MPI_ERR_IN_STATUS);
    for (int i = 0; i < MANY; i++) {
        int class = 0;
        MPI_Error_class(status[i].MPI_ERROR, &class);
        TL_CHECK(class == GONE, "request %d has class %d", i, class);
    }
}

/** Those who live among themselves. */
static int finish(MPI_Comm living)
{
    long failed = tl_failed();
    meet_t m = meet_new(living);
    for (int i = 0; i < 20; i++)
        meet_barrier(&m, "among the living");
    meet_free(&m);
    TL_MPI(MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_LONG, MPI_SUM, living));
    TL_MPI(MPI_Comm_free(&living));
    MPI_Finalize();
    return failed == 0 ? TL_EXIT_OK : TL_EXIT_FAILED;
}

int main(int argc, char **argv)
{
    void (*const kinds[KINDS])(MPI_Comm) = {blocking, nonblocking, several};
    MPI_Comm comms[KINDS], living;
    meet_begin_as_child();
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    meet_begin();
    if (meet_engine() == NULL)
        tl_skip("another component does the barriers");
    if (!tl_one_host())
        tl_skip("between hosts it takes other means to know who is dead");
    TL_MPI(MPI_Comm_split(MPI_COMM_WORLD, tl_rank() == VICTIM ? MPI_UNDEFINED : 0, 0, &living));
    for (int k = 0; k < KINDS; k++) {
        TL_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comms[k]));
        TL_MPI(MPI_Comm_set_errhandler(comms[k], MPI_ERRORS_RETURN));
        for (int i = 0; i < 12; i++)
            TL_MPI(MPI_Barrier(comms[k]));
    }
    TL_MPI(MPI_Barrier(MPI_COMM_WORLD));
    if (tl_rank() == VICTIM) {
        /* The others are in their first barrier by now, most likely. */
        usleep(200000);
        raise(SIGKILL);
    }
    for (int k = 0; k < KINDS; k++)
        kinds[(k + tl_rank()) % KINDS](comms[(k + tl_rank()) % KINDS]);
    for (int k = 0; k < KINDS; k++) {
        blocking(comms[k]);
        TL_MPI(MPI_Comm_free(&comms[k]));
    }
    return finish(living);
}
