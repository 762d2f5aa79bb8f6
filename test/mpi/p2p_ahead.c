/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2 */
/* p2p: auto eager */
/**
 * @file
 * A sender is a step ahead: two messages are there before their receiver, which stays away from MPI
 * meanwhile, waits for the first one. The wait ends with that, and the second one is still in its
 * queue when its receive is posted: it goes from there right into the user's memory, and is never
 * kept as an unexpected one. Each says to the other by a datagram when it is out of MPI.
 */
#include "test/mpi/p2p.h"
#include "test/mpi/counter.h"

enum { TAG = 7, STEPS = 20, BYTES = 4096 };

static void send_both(int step)
{
    unsigned char out[BYTES];

    TL_CHECK(p2p_is_told() == step, "nothing was heard of the other one");
    for (int i = 0; i < 2; i++) {
        p2p_fill(out, sizeof(out), p2p_seed(0, step, i));
        TL_MPI(MPI_Send(out, sizeof(out), MPI_BYTE, 1, TAG, MPI_COMM_WORLD));
    }
    p2p_tell(step);
}

static void receive_both(int step)
{
    unsigned char in[BYTES], want[BYTES];
    MPI_Request request;

    p2p_tell(step);
    TL_CHECK(p2p_is_told() == step, "nothing was heard of the other one");
    for (int i = 0; i < 2; i++) {
        TL_MPI(MPI_Irecv(in, sizeof(in), MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &request));
        TL_MPI(MPI_Waitall(1, &request, MPI_STATUSES_IGNORE));
        p2p_fill(want, sizeof(want), p2p_seed(0, step, i));
        TL_BYTES(in, want, sizeof(want), "message %d of step %d", i, step);
    }
}

int main(int argc, char **argv)
{
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    p2p_ears_open();
    counter_t *unexpected = counter_begin("pml_superpipe_unexpected");
    for (int step = 0; step < STEPS; step++)
        if (tl_rank() == 0)
            send_both(step);
        else
            receive_both(step);
    TL_CHECK(counter_read(unexpected) == 0 || !p2p_is_one_host(),
             "%llu messages were taken out of their queue before their receives",
             counter_read(unexpected));
    counter_end(unexpected);
    p2p_ears_close();
    return tl_finish();
}
