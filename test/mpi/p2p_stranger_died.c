/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 5 */
/* p2p: auto */
/* mpirun: --enable-recovery --mca orte_allowed_exit_without_sync 1 */
/* leaks: expected */
/**
 * @file
 * A process dies while others wait for messages from it that have never exchanged one with it: they
 * get an error, too.
 */
#include "test/mpi/meet.h"
#include "test/mpi/p2p.h"
#include "test/mpi/phase.h"

#include <signal.h>
#include <unistd.h>

/** The dying one lives so many microseconds, until the others wait. */
enum { VICTIM = 1, NEVER = 7, LIFE = 300000 };

static void wait_for_victim(void)
{
    MPI_Request request;
    char byte;

    switch (tl_rank()) {
    case 0:
        phase("a receive");
        TL_MPI_ERROR(MPI_Recv(&byte, 1, MPI_BYTE, VICTIM, NEVER, MPI_COMM_WORLD, MPI_STATUS_IGNORE),
                     GONE);
        break;
    case 2:
        phase("a probe");
        TL_MPI_ERROR(MPI_Probe(VICTIM, NEVER, MPI_COMM_WORLD, MPI_STATUS_IGNORE), GONE);
        break;
    case 3:
        phase("a persistent receive");
        TL_MPI(MPI_Recv_init(&byte, 1, MPI_BYTE, VICTIM, NEVER, MPI_COMM_WORLD, &request));
        TL_MPI(MPI_Start(&request));
        TL_MPI_ERROR(MPI_Wait(&request, MPI_STATUS_IGNORE), GONE);
        break;
    default:
        phase("a receive that does not block");
        TL_MPI(MPI_Irecv(&byte, 1, MPI_BYTE, VICTIM, NEVER, MPI_COMM_WORLD, &request));
        TL_MPI_ERROR(MPI_Wait(&request, MPI_STATUS_IGNORE), GONE);
    }
}

int main(int argc, char **argv)
{
    meet_begin_as_child();
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    if (!p2p_layer("superpipe"))
        tl_skip("this layer does not notice who is dead");
    if (tl_rank() == VICTIM) {
        usleep(LIFE);
        raise(SIGKILL);
    }
    wait_for_victim();
    phase("the end");
    MPI_Finalize();
    return tl_failed() == 0 ? TL_EXIT_OK : TL_EXIT_FAILED;
}
