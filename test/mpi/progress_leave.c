/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-4 */
/* p2p: auto eager */
/* timeout: 300 */
/* retry: connect */
/**
 * @file
 * The part of the matrix of progress (progress.h) in which the sender goes where it may make no
 * progress, or does not come back: to MPI_Comm_accept, MPI_Comm_disconnect, MPI_Finalize. What it
 * has sent before is received when it is there. MPI_Comm_accept and connect of Open MPI 4.1
 * sometimes wait forever inside PMIx, with any component: then, and only then, the run is made
 * again. Not with protocols by which short messages of MPI_Bsend wait for their sender.
 */
#include "test/mpi/phase.h"
#include "test/mpi/progress_cells.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TAG_PORT = 50, MOMENT = 50000 };

/** Tells it before, since a send may wait for its receive, too. */
static void send_all(MPI_Comm comm, int peer, bool buffered, int number)
{
    phase("sends");
    control_tell(0, CONTROL_IN, number);
    progress_send_all(comm, peer, buffered);
}

static void receive_all(MPI_Comm comm, int peer, bool buffered, int from, int number,
                        const char *what)
{
    phase("sends");
    control_told(from, CONTROL_IN, number, -1);
    usleep(MOMENT);
    phase(what);
    progress_receive_all(comm, peer, buffered, what);
}

/** The last one sends to rank 0, and waits for it in MPI_Comm_accept, then MPI_Comm_disconnect. */
static void accept_and_disconnect(void)
{
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm inter;

    TL_MPI(MPI_Open_port(MPI_INFO_NULL, port));
    control_tell(0, CONTROL_IN, 1);
    TL_MPI(MPI_Send(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, TAG_PORT, MPI_COMM_WORLD));
    send_all(MPI_COMM_WORLD, 0, false, 1);
    phase("connect");
    TL_MPI(MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter));
    send_all(inter, 0, false, 2);
    phase("disconnect");
    TL_MPI(MPI_Comm_disconnect(&inter));
    phase(NULL);
    TL_MPI(MPI_Close_port(port));
}

static void connect_to(int last)
{
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm inter;

    control_told(last, CONTROL_IN, 1, -1);
    usleep(MOMENT);
    phase("messages of a process in MPI_Comm_accept");
    TL_MPI(MPI_Recv(port, MPI_MAX_PORT_NAME, MPI_CHAR, last, TAG_PORT, MPI_COMM_WORLD,
                    MPI_STATUS_IGNORE));
    receive_all(MPI_COMM_WORLD, last, false, last, 1, "messages of a process in MPI_Comm_accept");
    phase("connect");
    TL_MPI(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter));
    receive_all(inter, 0, false, last, 2, "messages of a process in MPI_Comm_disconnect");
    phase("disconnect");
    TL_MPI(MPI_Comm_disconnect(&inter));
    phase(NULL);
}

int main(int argc, char **argv)
{
    int code = TL_EXIT_OK;

    progress_begin(argc, argv, NULL, 0);
    tl_need_ranks(2, 16);
    control_open(tl_rank(), tl_size());
    const int last = tl_size() - 1;
    if (tl_rank() == last) {
        accept_and_disconnect();
    } else if (tl_rank() == 0) {
        connect_to(last);
    }
    if (tl_rank() == 0) {
        for (int i = 1; i < tl_size(); i++) {
            receive_all(MPI_COMM_WORLD, i, true, i, 3, "messages of a process in MPI_Finalize");
        }
    } else {
        send_all(MPI_COMM_WORLD, 0, true, 3);
        phase("finalize");
    }
    code = tl_failed() == 0 ? TL_EXIT_OK : TL_EXIT_FAILED;
    phase("finalize");
    MPI_Finalize();
    phase(NULL);
    control_close();
    return code;
}
