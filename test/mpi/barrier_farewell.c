/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-4 */
/* engines: datagram */
/**
 * @file
 * A short job whose last barrier is made behind the runtime's fence (osc_nicstride's, because of
 * the window), by datagrams of which two of five are lost: in most runs one of the last is among
 * them, and who misses it must still find somebody who repeats it. Without a farewell about every
 * second run hangs. check_nicbarrier_datagram loses exactly the last one.
 */
#include "test/mpi/meet.h"

#include <stdlib.h>

enum { MANY = 30 };

int main(int argc, char **argv)
{
    setenv("OMPI_MCA_coll_nicbarrier_drop", "400", 0);
    setenv("OMPI_MCA_coll_nicbarrier_setup_call", "1", 1);
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    meet_begin();
    if (meet_engine() == NULL)
        tl_skip("another component does the barriers");
    meet_t m = meet_new(MPI_COMM_WORLD);
    MPI_Win win;
    int word = 0;
    TL_MPI(MPI_Win_create(&word, sizeof(word), sizeof(word), MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    for (int i = 0; i < MANY; i++)
        meet_barrier(&m, "blocking");
    TL_CHECK(meet_counter("barriers_datagram") >= MANY || !tl_one_host(),
             "%lld barriers by datagrams", meet_counter("barriers_datagram"));
    meet_free(&m);
    TL_MPI(MPI_Win_free(&win));
    return meet_finish();
}
