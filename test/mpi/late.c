/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-4 */
/* engines: auto shm put datagram */
/**
 * @file
 * All but one rank come late to a barrier, whose set-up waits for them. test/killed makes them come
 * very late, by milliseconds in ONIC_TEST_LATE, and kills the job.
 */
#include "test/mpi/meet.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int main(int argc, char **argv)
{
    const char *late = getenv("ONIC_TEST_LATE");
    int msec = late != NULL ? atoi(late) : 300;
    const struct timespec time = {msec / 1000, msec % 1000 * 1000000L};

    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    meet_begin();
    meet_t m = meet_new(MPI_COMM_WORLD);
    int one = 1, all = 0;
    TL_MPI(MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    if (tl_rank() == 0) {
        printf("rank 0 enters\n");
        fflush(stdout);
    } else {
        nanosleep(&time, NULL);
    }
    for (int i = 0; i < 3; i++)
        meet_barrier(&m, "late");
    meet_free(&m);
    return meet_finish();
}
