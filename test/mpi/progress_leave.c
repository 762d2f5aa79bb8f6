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
 * has sent before is received when it is there: short messages of each kind; a row of them that is
 * longer than what a process may send before the receiver has said anything; and long ones, whose
 * MPI_Send ends while the receiver is still busy with them. MPI_Comm_accept and connect of Open MPI
 * 4.1 sometimes wait forever inside PMIx, with any component: then, and only then, the run is made
 * again. Not with protocols by which short messages of MPI_Bsend wait for their sender.
 */
#include "test/mpi/p2p.h"
#include "test/mpi/phase.h"
#include "test/mpi/progress_cells.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TAG_PORT = 50, TAG_ROW, MOMENT = 50000, ROW = 40, ROW_BYTES = 4000 };

/** Numbers of what is told. */
enum { IN_FINALIZE = 7 };

/** What is sent last of all, before the sender leaves. Calls for the one would help the other. */
typedef enum last { LAST_ROW, LAST_LONG, LASTS } last_t;

static void pass(bool sends, MPI_Comm comm, int peer, int bytes, const char *what)
{
    p2p_buffer_t b = p2p_buffer(p2p_side(P2P_PLAIN, bytes));
    const uint64_t seed = p2p_seed(0, TAG_ROW, bytes);

    if (sends) {
        p2p_write(&b, seed);
        TL_MPI(MPI_Send(b.at, b.side.count, b.side.type, peer, TAG_ROW, comm));
    } else {
        TL_MPI(MPI_Recv(b.at, b.side.count, b.side.type, peer, TAG_ROW, comm, MPI_STATUS_IGNORE));
        p2p_check(&b, b.bytes, seed, what);
    }
    p2p_free(&b);
}

/** The messages differ in length, and so in what they hold. */
static void pass_all(bool sends, MPI_Comm comm, int peer, last_t last, const char *what)
{
    for (int i = 0; last == LAST_ROW && i < ROW; i++)
        pass(sends, comm, peer, ROW_BYTES - i, what);
    if (last == LAST_LONG) {
        pass(sends, comm, peer, 20000, what);
        pass(sends, comm, peer, 400000, what);
        pass(sends, comm, peer, 4000000, what);
    }
}

/** Tells it before, since a send may wait for its receive, too. */
static void send_all(MPI_Comm comm, int peer, bool buffered, last_t last, int number)
{
    phase("sends");
    control_tell(0, CONTROL_IN, number);
    progress_send_all(comm, peer, buffered);
    pass_all(true, comm, peer, last, NULL);
}

static void receive_all(MPI_Comm comm, int peer, bool buffered, last_t last, int from, int number,
                        const char *what)
{
    phase("sends");
    control_told(from, CONTROL_IN, number, -1);
    usleep(MOMENT);
    phase(what);
    progress_receive_all(comm, peer, buffered, what);
    pass_all(false, comm, peer, last, what);
}

/** The last one sends to rank 0, and waits for it in MPI_Comm_accept, then MPI_Comm_disconnect. */
static void accept_and_disconnect(last_t last)
{
    char port[MPI_MAX_PORT_NAME] = "";
    const int number = 3 * last;
    MPI_Comm inter;

    TL_MPI(MPI_Open_port(MPI_INFO_NULL, port));
    control_tell(0, CONTROL_IN, number + 1);
    TL_MPI(MPI_Send(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, TAG_PORT, MPI_COMM_WORLD));
    send_all(MPI_COMM_WORLD, 0, false, last, number + 2);
    phase("connect");
    TL_MPI(MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter));
    send_all(inter, 0, false, last, number + 3);
    phase("disconnect");
    TL_MPI(MPI_Comm_disconnect(&inter));
    phase(NULL);
    TL_MPI(MPI_Close_port(port));
}

static void connect_to(int from, last_t last)
{
    char port[MPI_MAX_PORT_NAME] = "";
    const int number = 3 * last;
    MPI_Comm inter;

    control_told(from, CONTROL_IN, number + 1, -1);
    usleep(MOMENT);
    phase("messages of a process in MPI_Comm_accept");
    TL_MPI(MPI_Recv(port, MPI_MAX_PORT_NAME, MPI_CHAR, from, TAG_PORT, MPI_COMM_WORLD,
                    MPI_STATUS_IGNORE));
    receive_all(MPI_COMM_WORLD, from, false, last, from, number + 2,
                "messages of a process in MPI_Comm_accept");
    phase("connect");
    TL_MPI(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter));
    receive_all(inter, 0, false, last, from, number + 3,
                "messages of a process in MPI_Comm_disconnect");
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
    for (last_t last = 0; last < LASTS; last++)
        if (tl_rank() == tl_size() - 1)
            accept_and_disconnect(last);
        else if (tl_rank() == 0)
            connect_to(tl_size() - 1, last);
    if (tl_rank() == 0) {
        for (int i = 1; i < tl_size(); i++) {
            receive_all(MPI_COMM_WORLD, i, true, i % LASTS, i, IN_FINALIZE,
                        "messages of a process in MPI_Finalize");
        }
    } else {
        send_all(MPI_COMM_WORLD, 0, true, tl_rank() % LASTS, IN_FINALIZE);
        phase("finalize");
    }
    code = tl_failed() == 0 ? TL_EXIT_OK : TL_EXIT_FAILED;
    phase("finalize");
    MPI_Finalize();
    phase(NULL);
    control_close();
    return code;
}
