/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-5,8 */
/* thorough */
/* engines: auto shm put put2 datagram datagram2 lossy */
/**
 * @file
 * Nobody leaves a barrier before all have entered it: one after another, with random delays,
 * through the call that sets the engine up; and the engine that was asked for is used.
 */
#include "test/mpi/meet.h"

#include <stdlib.h>
#include <unistd.h>

static void in_a_row(meet_t *m, int n)
{
    for (int i = 0; i < n; i++)
        meet_barrier(m, "in a row");
}

/** A receive that takes any message of the program takes none of those that set the engine up. */
static void beside_a_receive(meet_t *m, int n)
{
    int right = (m->rank + 1) % m->size, left = (m->rank + m->size - 1) % m->size, got = -1;
    MPI_Request request;
    TL_MPI(MPI_Irecv(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, m->comm, &request));
    in_a_row(m, n);
    TL_MPI(MPI_Send(&m->rank, 1, MPI_INT, right, 5, m->comm));
    TL_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
    TL_CHECK(got == left, "got %d from rank %d", got, left);
}

static void delayed(meet_t *m, int n)
{
    tl_rng_t rng = tl_rng(tl_seed(), (uint64_t)m->rank);
    for (int i = 0; i < n; i++) {
        meet_delay(&rng, 300);
        meet_barrier(m, "delayed");
    }
}

/** Each in turn is so late that the others sleep. */
static void one_is_late(meet_t *m)
{
    for (int late = 0; late < m->size; late++) {
        if (m->rank == late)
            usleep(20000);
        meet_barrier(m, "one is late");
    }
}

/** Between barriers a message goes round: whoever has left must not miss it. */
static void with_messages(meet_t *m, int n)
{
    int right = (m->rank + 1) % m->size, left = (m->rank + m->size - 1) % m->size;
    for (int i = 0; i < n; i++) {
        int got = -1;
        MPI_Request request;
        TL_MPI(MPI_Isend(&i, 1, MPI_INT, right, 5, m->comm, &request));
        meet_barrier(m, "with messages");
        TL_MPI(MPI_Recv(&got, 1, MPI_INT, left, 5, m->comm, MPI_STATUS_IGNORE));
        TL_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
        TL_CHECK(got == i, "got %d in round %d", got, i);
    }
}

/** Where datagrams are lost on purpose, some were repeated. */
static void check_repairs(void)
{
    const char *drop = getenv("OMPI_MCA_coll_nicbarrier_drop");
    long long mine = meet_counter("retransmits"), all = 0;
    TL_MPI(MPI_Allreduce(&mine, &all, 1, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD));
    if (meet_engine() != NULL && drop != NULL)
        TL_CHECK(all > 0, "%lld messages were repeated", all);
}

int main(int argc, char **argv)
{
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    meet_begin();
    meet_t m = meet_new(MPI_COMM_WORLD);
    beside_a_receive(&m, (tl_large() ? 500 : 250) * tl_factor());
    delayed(&m, (tl_large() ? 200 : 100) * tl_factor());
    one_is_late(&m);
    with_messages(&m, 100);
    meet_check_engine(tl_large() ? 700 : 350);
    check_repairs();
    meet_free(&m);
    return meet_finish();
}
