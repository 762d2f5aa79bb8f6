/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2 */
/* p2p: auto */
/**
 * @file
 * Messages of 256 KiB where single copy costs more than a stream: from a sender that waits in MPI
 * they come as a stream; from one that computes, and would have to answer, by single copy.
 */
#include "test/mpi/p2p.h"

#include <stdlib.h>
#include <unistd.h>

#include "test/mpi/counter.h"

enum { BYTES = 256 << 10, ROUNDS = 20, AGAIN = 100, TAG = 3, READY = 4 };

static unsigned char *data, *expected;

/** At each distance. */
#define DEAR                                                                                       \
    " copy=100000/0/0/0/0/0/0:100000/0/0/0/0/0/0"                                                  \
    ", stream=1000/0/0/0/0/0/0:1000/0/0/0/0/0/0\n"

/** Rank 1 receives when the message has been announced for long; rank 0 is in MPI then, or not.
 *  Returns how many came by single copy. */
static unsigned long long copies(bool away)
{
    counter_t *c = counter_begin("pml_superpipe_messages_copy");
    unsigned long long n;

    for (int round = 0; round < ROUNDS; round++) {
        if (tl_rank() == 0) {
            MPI_Request request;

            p2p_fill(data, BYTES, p2p_seed(0, round, away));
            TL_MPI(MPI_Isend(data, BYTES, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, &request));
            if (away)
                usleep(10000);
            TL_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
            TL_MPI(MPI_Recv(NULL, 0, MPI_BYTE, 1, READY, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        } else {
            TL_MPI(MPI_Probe(0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            usleep(500);
            TL_MPI(MPI_Recv(data, BYTES, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            p2p_fill(expected, BYTES, p2p_seed(0, round, away));
            TL_BYTES(data, expected, BYTES, "round %d", round);
            TL_MPI(MPI_Send(NULL, 0, MPI_BYTE, 0, READY, MPI_COMM_WORLD));
        }
    }
    n = counter_read(c);
    counter_end(c);
    return n;
}

/** Can this process have messages by single copy at all? With the numbers above only from a sender
 *  that is away: what else would be wrong is seen by p2p_protocols. */
static bool is_allowed(void)
{
    const char *given = getenv("OMPI_MCA_pml_superpipe_cma");

    return given == NULL || atoi(given) != 0;
}

int main(int argc, char **argv)
{
    unsigned long long there = ROUNDS, away;
    int provided;

    setenv("OMPI_MCA_pml_superpipe_cost", "near:" DEAR "far:" DEAR, 1);
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    data = tl_alloc(BYTES);
    expected = tl_alloc(BYTES);
    /* A sender may lose its processor while it waits, but not always. */
    for (int again = 0; again < AGAIN && there == ROUNDS; again++) {
        there = copies(false);
        TL_MPI(MPI_Bcast(&there, 1, MPI_UNSIGNED_LONG_LONG, 1, MPI_COMM_WORLD));
    }
    away = copies(true);
    TL_CHECK(there < ROUNDS, "all of %d by single copy from one in MPI", ROUNDS);
    TL_CHECK(tl_rank() != 1 || !is_allowed() || away >= ROUNDS / 2,
             "%llu of %d by single copy from one that is away", away, ROUNDS);
    MPI_T_finalize();
    free(data);
    free(expected);
    return tl_finish();
}
