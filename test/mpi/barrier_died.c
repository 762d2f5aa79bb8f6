/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 3-5 */
/* engines: auto put put2 datagram2 */
/* mpirun: --enable-recovery --mca orte_allowed_exit_without_sync 1 */
/* leaks: expected */
/**
 * @file
 * A rank is killed while others wait for it in barriers of every kind: these end with an error, in
 * all who wait, and so does every later one. Errors are returned, so the others go on, with
 * communicators that the dead one is not in, to MPI_Finalize.
 *
 * With engine put it is a leader, and nobody shares its node: the others hear of it by their
 * connections over TCP, or, where they have none to it, from those that do.
 *
 * The launcher would end the job where it sees a rank die. So each rank is the child of the process
 * that it knows, and that one stays.
 */
#include "test/mpi/meet.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MANY = 5, VICTIM = 1, KINDS = 3 };

/** Each is a leader, and knows the others by connections alone. */
static bool leaders;

static void check_error(int code, const char *what)
{
    int class = MPI_SUCCESS;
    MPI_Error_class(code, &class);
    TL_CHECK(leaders ? class != MPI_SUCCESS : class == GONE, "%s: class %d", what, class);
}

static void blocking(MPI_Comm comm)
{
    check_error(MPI_Barrier(comm), "MPI_Barrier");
}

static void nonblocking(MPI_Comm comm)
{
    MPI_Request request;
    const int code = MPI_Ibarrier(comm, &request);
    TL_CHECK(leaders || code == MPI_SUCCESS, "MPI_Ibarrier");
    check_error(code != MPI_SUCCESS ? code : MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
    TL_CHECK(code != MPI_SUCCESS || request == MPI_REQUEST_NULL, "the request is left");
}

static void several(MPI_Comm comm)
{
    MPI_Request requests[MANY];
    MPI_Status status[MANY];
    if (leaders) {
        nonblocking(comm);
        return;
    }
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

static bool is_set(const char *name, const char *value)
{
    const char *set = getenv(name);
    return set != NULL && strcmp(set, value) == 0;
}

int main(int argc, char **argv)
{
    void (*const kinds[KINDS])(MPI_Comm) = {blocking, nonblocking, several};
    MPI_Comm comms[KINDS], living;
    int one = 1, all;
    meet_begin_as_child();
    leaders = is_set("OMPI_MCA_coll_nicbarrier_engine", "put") &&
              !is_set("OMPI_MCA_coll_nicbarrier_ppn", "2");
    if (leaders)
        setenv("UCX_TLS", "tcp,self", 1);
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    meet_begin();
    if (meet_engine() == NULL)
        tl_skip("another component does the barriers");
    if (!tl_one_host())
        tl_skip("between hosts it takes other means to know who is dead");
    alarm(TL_PATIENCE);
    TL_MPI(MPI_Comm_split(MPI_COMM_WORLD, tl_rank() == VICTIM ? MPI_UNDEFINED : 0, 0, &living));
    for (int k = 0; k < KINDS; k++) {
        TL_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comms[k]));
        TL_MPI(MPI_Comm_set_errhandler(comms[k], MPI_ERRORS_RETURN));
        for (int i = 0; i < 12; i++)
            TL_MPI(MPI_Barrier(comms[k]));
    }
    meet_check_engine(1);
    TL_MPI(MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    if (tl_rank() == VICTIM) {
        /* The others are in their first barrier by now, most likely. Not over TCP: of a put that
         * has come, but cannot be acknowledged any more, UCX 1.13 itself makes an end of the
         * process. */
        usleep(leaders ? 0 : 200000);
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
