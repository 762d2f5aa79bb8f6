/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 1 */
/* p2p: auto eager */
/* timeout: 300 */
/* retry: start spawn */
/**
 * @file
 * The matrix of progress (progress.h) between two jobs: a process and its child. The first messages
 * are the child's, which then is outside of MPI, the last ones, too, before MPI_Comm_disconnect.
 * Not with protocols by which short messages of MPI_Bsend wait for their sender.
 *
 * MPI_Comm_spawn of Open MPI 4.1.4 sometimes waits forever inside PMIx, with any component: then,
 * and only then, the run is made again. The program starts itself with the argument -child.
 */
#include "test/mpi/phase.h"
#include "test/mpi/progress_cells.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PARENT, CHILD, MOMENT = 50000 };

/** Whose are the cells is said by their number, behind that of the first messages. */
static void run_matrix(MPI_Comm inter, bool child)
{
    MPI_Comm both;

    TL_MPI(MPI_Intercomm_merge(inter, child, &both));
    progress_over(both);
    progress_run(&progress_sends, "jobs", PROGRESS_ANY, PROGRESS_ANY);
    progress_run_accesses(both, PARENT, CHILD);
    progress_part();
    TL_MPI(MPI_Comm_free(&both));
}

static int child(const char *address)
{
    MPI_Comm parent;

    control_join(address, CHILD);
    MPI_Comm_get_parent(&parent);
    MPI_Comm_set_errhandler(parent, MPI_ERRORS_RETURN);
    phase("the first messages");
    progress_send_all(parent, 0, false);
    control_told(PARENT, CONTROL_HERE, 1, -1);
    phase(NULL);
    run_matrix(parent, true);
    phase("the last messages");
    control_tell(PARENT, CONTROL_HERE, 1 << 30);
    progress_send_all(parent, 0, false);
    TL_MPI(MPI_Comm_disconnect(&parent));
    phase(NULL);
    control_close();
    return tl_finish();
}

int main(int argc, char **argv)
{
    char option[] = "-child", address[CONTROL_ADDRESS];
    MPI_Comm inter;

    phase("start");
    progress_begin(argc, argv, NULL, 0);
    phase(NULL);
    if (argc > 2 && strcmp(argv[1], option) == 0)
        return child(argv[2]);
    tl_need_ranks(1, 1);
    control_make(2, address);
    /* The same cells as here. */
    char **arguments = tl_alloc(((size_t)argc + 2) * sizeof(*arguments));
    arguments[0] = option;
    arguments[1] = address;
    memcpy(arguments + 2, argv + 1, (size_t)argc * sizeof(*arguments));
    phase("spawn");
    if (MPI_Comm_spawn(argv[0], arguments, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter,
                       MPI_ERRCODES_IGNORE) != MPI_SUCCESS)
        tl_skip("processes cannot be spawned here");
    free(arguments);
    control_join(address, PARENT);
    phase("the first messages");
    progress_receive_all(inter, 0, false, "the first messages of a child");
    phase(NULL);
    control_tell(CHILD, CONTROL_HERE, 1);
    run_matrix(inter, false);
    control_told(CHILD, CONTROL_HERE, 1 << 30, -1);
    usleep(MOMENT);
    phase("the last messages");
    progress_receive_all(inter, 0, false, "the last messages of a child");
    TL_MPI(MPI_Comm_disconnect(&inter));
    phase(NULL);
    control_close();
    return tl_finish();
}
