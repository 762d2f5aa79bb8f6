/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-4, 8 */
/* engines: put put2 */
/* leaks: expected */
/* apart: transport */
/**
 * @file
 * The connections of one leader break while all processes live: barriers end with an error for all,
 * blocking or not, also at leaders that had no connection to that one and for the processes behind
 * a leader. Once they waited for ever.
 */
#include "test/mpi/meet.h"

#include <stdlib.h>

#include "test/mpi/shutdown.h"

/** Calls until the engine is set up: none before connections have been noted. */
#define SETUP_CALL "20"
enum { MANY = 40 };

static int ends_with_error(MPI_Comm comm)
{
    return MPI_Barrier(comm) != MPI_SUCCESS;
}

static int ends_nonblocking_with_error(MPI_Comm comm)
{
    MPI_Request request;
    return MPI_Ibarrier(comm, &request) != MPI_SUCCESS ||
           MPI_Wait(&request, MPI_STATUS_IGNORE) != MPI_SUCCESS;
}

static int leaders(void)
{
    const char *ppn = getenv("OMPI_MCA_coll_nicbarrier_ppn");
    int each = ppn != NULL ? atoi(ppn) : 1;
    return meet_engine() != NULL ? (tl_size() + each - 1) / each : 0;
}

int main(int argc, char **argv)
{
    setenv("UCX_TLS", "tcp,self", 1);
    setenv("OMPI_MCA_coll_nicbarrier_setup_call", SETUP_CALL, 1);
    shutdown_set_up();
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    meet_begin();
    if (leaders() < 2)
        tl_skip("this needs an engine between two leaders or more");
    shutdown_begin(tl_size());
    MPI_Comm comm;
    TL_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    for (int i = 0; i < MANY; i++)
        TL_MPI(MPI_Barrier(comm));
    meet_check_engine(1);
    TL_MPI(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    /* Once all have left the barriers: of a put that has come, but cannot be acknowledged any more
     * over TCP, UCX 1.13 itself makes an end of the process. */
    int one = 1, all, broken = 0;
    TL_MPI(MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    if (tl_rank() == 0)
        broken = shutdown_connections();
    TL_MPI(MPI_Bcast(&broken, 1, MPI_INT, 0, MPI_COMM_WORLD));
    TL_CHECK(broken > 0, "no connection was broken");
    TL_CHECK(ends_nonblocking_with_error(comm), "no error of MPI_Ibarrier");
    TL_CHECK(ends_with_error(comm), "no error of MPI_Barrier");
    TL_CHECK(ends_nonblocking_with_error(comm), "no error of a later MPI_Ibarrier");
    TL_CHECK(ends_with_error(comm), "no error later");
    MPI_Comm_free(&comm);
    return meet_finish();
}
