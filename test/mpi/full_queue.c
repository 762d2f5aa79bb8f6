/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-4 */
/* p2p: auto eager */
/**
 * @file
 * The queue from rank 1 to rank 0 is short and full, of messages that rank 0 does not receive yet.
 * First rank 1 goes away with messages behind it that wait for room: they come when rank 0 receives
 * those before them. Then rank 0 is away, and its server thread asleep: an operation of rank 1 that
 * stands behind the messages is done nevertheless.
 */
#include "test/mpi/meet.h"

#include <stdlib.h>
#include <unistd.h>

#include "common/transport/transport.h"

enum { BYTES = 4000, MESSAGES = 30, METS = 20, TAG = 3 };

static char data[MESSAGES][BYTES];
static MPI_Request request[MESSAGES];

/** Outside of MPI, until that rank has said `n` times where it stands. */
static void stay_away(const meet_t *m, int rank, long n, const char *until)
{
    const double end = MPI_Wtime() + TL_PATIENCE;

    while (meet_entered(m, rank) < n && MPI_Wtime() < end) {
    }
    TL_CHECK(meet_entered(m, rank) >= n, "%s", until);
}

/** Both know each other, and have given each other credit for more than the queue holds. */
static void meet_each_other(void)
{
    const int other = 1 - tl_rank();

    for (int i = 0; i < METS; i++)
        TL_MPI(MPI_Sendrecv(data[0], 8, MPI_CHAR, other, TAG, data[1], 8, MPI_CHAR, other, TAG,
                            MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}

static void send_all(void)
{
    for (int i = 0; i < MESSAGES; i++)
        TL_MPI(MPI_Isend(data[i], BYTES, MPI_CHAR, 0, TAG, MPI_COMM_WORLD, &request[i]));
}

static void receive_all(void)
{
    for (int i = 0; i < MESSAGES; i++)
        TL_MPI(MPI_Recv(data[i], BYTES, MPI_CHAR, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}

static void sender_goes_away(meet_t *m)
{
    if (tl_rank() == 1) {
        send_all();
        (void)meet_enter(m);
        stay_away(m, 0, 1, "messages did not come while their sender was away");
        TL_MPI(MPI_Waitall(MESSAGES, request, MPI_STATUSES_IGNORE));
    } else if (tl_rank() == 0) {
        stay_away(m, 1, 1, "the other rank has sent nothing");
        receive_all();
        (void)meet_enter(m);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void receiver_is_away(meet_t *m)
{
    tl_window_t w = tl_win_make(TL_CREATE, 64, 1, MPI_COMM_WORLD, MPI_INFO_NULL);
    const long one = 1;

    /* As for processes of other hosts, which cannot wake this one. */
    onic_transport_want_server(true);
    TL_MPI(MPI_Win_lock_all(0, w.win));
    MPI_Barrier(w.comm);
    if (w.rank == 1) {
        usleep(20000);
        send_all();
        TL_MPI(
            MPI_Accumulate(&one, 1, MPI_LONG, 0, tl_disp(&w, 0, 0), 1, MPI_LONG, MPI_SUM, w.win));
        TL_MPI(MPI_Win_flush(0, w.win));
        (void)meet_enter(m);
        TL_MPI(MPI_Waitall(MESSAGES, request, MPI_STATUSES_IGNORE));
    } else if (w.rank == 0) {
        stay_away(m, 1, 2, "an operation was not done while its target was away");
        receive_all();
    }
    TL_MPI(MPI_Win_unlock_all(w.win));
    onic_transport_want_server(false);
    tl_win_free(&w);
}

int main(int argc, char **argv)
{
    setenv("OMPI_MCA_pml_superpipe_queues", "60", 1);
    setenv("OMPI_MCA_osc_nicstride_queues", "60", 1);
    setenv("OMPI_MCA_osc_nicstride_method", "pack", 1);
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    tl_need_ranks(2, 16);
    meet_t m = meet_new(MPI_COMM_WORLD);
    if (tl_rank() < 2)
        meet_each_other();
    /* Before there is a window, and with it a server thread. */
    sender_goes_away(&m);
    receiver_is_away(&m);
    meet_free(&m);
    return tl_finish();
}
