/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2 */
/* p2p: auto */
/* mpirun: --mca mpi_yield_when_idle 0 */
/**
 * @file
 * A process whose receives find their messages at once still makes progress now and then: others
 * may wait for it. And all that has come through a queue is counted.
 */
#include "common/ompi_compat.h"
#include "test/mpi/p2p.h"

#include <unistd.h>

#include "opal/runtime/opal_progress.h"
#include "test/mpi/counter.h"

/** So many leave at once, by first credit, several times. */
enum { MESSAGES = 70, TIMES = 6, LATE_USEC = 20000, TAG = 5 };

static int progresses;

static int count_progress(void)
{
    progresses++;
    return 0;
}

/** They meet, and rank 1 is told its number. */
static void meet(void)
{
    for (int i = 0; i < 2; i++)
        TL_MPI(MPI_Sendrecv(NULL, 0, MPI_BYTE, 1 - tl_rank(), TAG, NULL, 0, MPI_BYTE, 1 - tl_rank(),
                            TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    MPI_Barrier(MPI_COMM_WORLD);
}

/** Returns how often progress was made by receives whose messages are there. */
static int receive_all(void)
{
    usleep(LATE_USEC);
    progresses = 0;
    for (int i = 0; i < MESSAGES; i++)
        TL_MPI(MPI_Recv(NULL, 0, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    return progresses;
}

int main(int argc, char **argv)
{
    counter_t *queued;
    int made = 0;

    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    TL_CHECK(opal_progress_register(count_progress) == 0, "progress is not seen");
    meet();
    queued = counter_begin("pml_superpipe_queued");
    MPI_Barrier(MPI_COMM_WORLD);
    for (int k = 0; k < TIMES; k++) {
        if (tl_rank() == 0)
            made += receive_all();
        for (int i = 0; i < MESSAGES && tl_rank() == 1; i++)
            TL_MPI(MPI_Send(NULL, 0, MPI_BYTE, 0, TAG, MPI_COMM_WORLD));
        MPI_Barrier(MPI_COMM_WORLD);
    }
    if (tl_rank() == 0) {
        TL_CHECK(made > 0, "none of %d receives has made progress", MESSAGES * TIMES);
        if (queued != NULL && p2p_layer("superpipe") && p2p_is_one_host())
            TL_CHECK(counter_read(queued) >= MESSAGES * TIMES,
                     "only %llu messages came through a queue", counter_read(queued));
    }
    counter_end(queued);
    (void)opal_progress_unregister(count_progress);
    return tl_finish();
}
