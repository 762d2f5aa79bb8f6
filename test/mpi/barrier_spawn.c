/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 1-3 */
/* engines: auto shm */
/* retry: start spawn */
/**
 * @file
 * Spawned processes, merged with their parents: barriers of both kinds over all, and over each part
 * by itself; the parts leave at different times. The program starts itself with -child.
 *
 * MPI_Comm_spawn of Open MPI 4.1.4 sometimes waits forever inside PMIx, with any component: then,
 * and only then, the run is made again.
 */
#include "test/mpi/meet.h"
#include "test/mpi/phase.h"

#include <unistd.h>

enum { CHILDREN = 2, BARRIERS = 60 };

static void use(MPI_Comm comm, const char *what)
{
    meet_t m = meet_new(comm);
    for (int i = 0; i < BARRIERS; i++) {
        MPI_Request request;
        meet_barrier(&m, what);
        long n = meet_ibarrier(&m, &request);
        TL_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
        meet_leave(&m, n, what);
    }
    meet_free(&m);
}

int main(int argc, char **argv)
{
    MPI_Comm parent, inter, all;
    phase("start");
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    meet_begin();
    MPI_Comm_get_parent(&parent);
    bool child = parent != MPI_COMM_NULL;
    /* Over several hosts Open MPI 4.1 fails or hangs in MPI_Comm_spawn, whatever the barriers. */
    if (!child && !tl_one_host())
        tl_skip("processes are spawned on one host only");
    phase("spawn");
    if (child)
        inter = parent;
    else if (MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, CHILDREN, MPI_INFO_NULL, 0, MPI_COMM_WORLD,
                            &inter, MPI_ERRCODES_IGNORE) != MPI_SUCCESS)
        tl_skip("nothing can be spawned here");
    /* Barriers of intercommunicators are not ours. */
    phase("merge");
    TL_MPI(MPI_Barrier(inter));
    TL_MPI(MPI_Intercomm_merge(inter, child, &all));
    phase("barriers of all");
    use(all, "merged");
    if (tl_size() > 1) {
        phase("barriers of one part");
        use(MPI_COMM_WORLD, "one part");
    }
    if (child)
        usleep(100000);
    phase("barriers of all again");
    use(all, "merged again");
    phase("end");
    TL_MPI(MPI_Comm_free(&all));
    TL_MPI(MPI_Comm_disconnect(&inter));
    if (tl_size() > 1)
        meet_check_engine(BARRIERS);
    return meet_finish();
}
