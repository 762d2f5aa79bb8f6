/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-4 */
/* engines: auto put datagram */
/**
 * @file
 * Nonblocking barriers of the component beside blocking ones of the module below: so it is with a
 * priority below that of coll/tuned. No blocking one sets them up, so it is done when a
 * communicator is made. That must not take the messages of others, in whatever order the ranks
 * come, nor wait for ever where several are made at a time.
 */
#include "test/mpi/meet.h"

#include <stdlib.h>

#define COMMUNICATORS 12
#define AT_ONCE       3
#define BARRIERS      24

/** Nonblocking but for the last, and waited for in any order. */
static void make(MPI_Comm *comms, tl_rng_t *rng)
{
    MPI_Request requests[AT_ONCE - 1];
    const int first = (int)tl_range(rng, 0, AT_ONCE - 2);
    for (int k = 0; k < AT_ONCE - 1; k++) {
        TL_MPI(MPI_Comm_idup(MPI_COMM_WORLD, &comms[k], &requests[k]));
        meet_delay(rng, 300);
    }
    TL_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comms[AT_ONCE - 1]));
    for (int k = 0; k < AT_ONCE - 1; k++)
        TL_MPI(MPI_Wait(&requests[(first + k) % (AT_ONCE - 1)], MPI_STATUS_IGNORE));
}

static void use(MPI_Comm comm, tl_rng_t *rng)
{
    meet_t outer = meet_new(comm), inner = meet_new(comm);
    for (int k = 0; k < BARRIERS; k++) {
        MPI_Request request;
        meet_delay(rng, 300);
        const long n = meet_ibarrier(&outer, &request);
        meet_delay(rng, 300);
        meet_barrier(&inner, "blocking");
        TL_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
        meet_leave(&outer, n, "nonblocking");
    }
    meet_free(&outer);
    meet_free(&inner);
}

int main(int argc, char **argv)
{
    setenv("OMPI_MCA_coll_nicbarrier_priority", "20", 1);
    setenv("OMPI_MCA_coll_nicbarrier_setup_call", "0", 1);
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    meet_nonblocking_only();
    meet_begin();
    tl_rng_t rng = tl_rng(tl_seed(), (uint64_t)tl_rank());
    const int communicators = (tl_slow() ? 3 : COMMUNICATORS) * tl_factor();
    for (int i = 0; i < communicators; i += AT_ONCE) {
        MPI_Comm comms[AT_ONCE];
        make(comms, &rng);
        for (int k = 0; k < AT_ONCE; k++)
            use(comms[k], &rng);
        for (int k = 0; k < AT_ONCE; k++)
            TL_MPI(MPI_Comm_free(&comms[k]));
    }
    /* All of the nonblocking ones, and none of the blocking ones. */
    meet_check_engine((long long)communicators * BARRIERS);
    if (meet_engine() != NULL) {
        TL_CHECK(meet_carried() == (long long)communicators * BARRIERS,
                 "%lld of %lld nonblocking barriers", meet_carried(),
                 (long long)communicators * BARRIERS);
    }
    return meet_finish();
}
