/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-4 */
/* engines: auto put datagram */
/**
 * @file
 * Nonblocking barriers of the component beside blocking ones of the module below: so it is with a
 * priority below that of coll/tuned. The agreement of the one must not take the messages of the
 * other, in whatever order the ranks come.
 */
#include "test/mpi/meet.h"

#include <stdlib.h>

#define COMMUNICATORS 12
/** Several times those after which a communicator's barriers agree. */
#define BARRIERS 24

int main(int argc, char **argv)
{
    setenv("OMPI_MCA_coll_nicbarrier_priority", "20", 1);
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    meet_nonblocking_only();
    meet_begin();
    tl_rng_t rng = tl_rng(tl_seed(), (uint64_t)tl_rank());
    const int communicators = (tl_slow() ? 3 : COMMUNICATORS) * tl_factor();
    for (int i = 0; i < communicators; i++) {
        MPI_Comm comm;
        TL_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
        meet_t outer = meet_new(comm), inner = meet_new(comm);
        for (int k = 0; k < BARRIERS; k++) {
            MPI_Request request;
            meet_delay(&rng, 300);
            const long n = meet_ibarrier(&outer, &request);
            meet_delay(&rng, 300);
            meet_barrier(&inner, "blocking");
            TL_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
            meet_leave(&outer, n, "nonblocking");
        }
        meet_free(&outer);
        meet_free(&inner);
        TL_MPI(MPI_Comm_free(&comm));
    }
    /* Half of the nonblocking ones, and none of the blocking ones. */
    meet_check_engine((long long)communicators * BARRIERS / 2);
    if (meet_engine() != NULL) {
        TL_CHECK(meet_carried() < (long long)communicators * BARRIERS,
                 "%lld of %lld nonblocking barriers", meet_carried(),
                 (long long)communicators * BARRIERS);
    }
    return meet_finish();
}
