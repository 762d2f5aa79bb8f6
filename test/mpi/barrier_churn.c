/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-4 */
/* engines: auto put2 datagram lossy */
/**
 * @file
 * Communicators come and go, ten thousand of them: most too short-lived to set an engine up, others
 * with one, freed right after their last barrier, while peers may still be in it. Memory, file
 * descriptors and names of shared memory stay the same in number.
 */
#include "test/mpi/meet.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* LEFT_BYTES: less than 100 bytes for each engine, or 6 for each communicator. */
enum { COMMS = 4000, EVERY = 20, WARM = 1000, LEFT_BYTES = 8 << 10 };

static void one(int i, tl_rng_t *rng)
{
    MPI_Comm comm;
    if (i % 2 == 0)
        TL_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    else
        TL_MPI(MPI_Comm_split(MPI_COMM_WORLD, 0, -tl_rank(), &comm));
    /* With the default of eight calls. */
    int barriers = i % EVERY == 0 ? 12 : 2;
    for (int k = 0; k < barriers; k++)
        TL_MPI(MPI_Barrier(comm));
    if (i % EVERY == 0) {
        MPI_Request request;
        TL_MPI(MPI_Ibarrier(comm, &request));
        TL_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
        meet_delay(rng, 20);
    }
    TL_MPI(MPI_Comm_free(&comm));
}

int main(int argc, char **argv)
{
    size_t allocated = 0;
    int files = 0, maps = 0;
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    /* Of lost packets each takes a millisecond. */
    const bool slow = tl_slow() || getenv("OMPI_MCA_coll_nicbarrier_drop") != NULL;
    const int comms = slow ? COMMS / 2 : COMMS;
    meet_begin();
    tl_rng_t rng = tl_rng(tl_seed(), (uint64_t)tl_rank());
    for (int i = 0; i < comms; i++) {
        if (i == WARM) {
            files = meet_entries("/proc/self/fd", "");
            maps = meet_mappings();
            allocated = tl_allocated();
        }
        one(i, &rng);
    }
    const size_t now = tl_allocated();
    TL_CHECK(now <= allocated + LEFT_BYTES, "%zu bytes were allocated, now %zu", allocated, now);
    TL_CHECK(meet_entries("/proc/self/fd", "") <= files + 2, "%d files were open, now %d", files,
             meet_entries("/proc/self/fd", ""));
    TL_CHECK(meet_mappings() <= maps + 40, "there were %d mappings, now %d", maps, meet_mappings());
    meet_check_engine(comms / EVERY * 5);
    if (meet_engine() != NULL) {
        TL_CHECK(meet_counter("live_teams") == 0, "%lld engines are left",
                 meet_counter("live_teams"));
    }
    return meet_finish();
}
