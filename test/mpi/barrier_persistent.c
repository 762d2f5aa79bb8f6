/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-4 */
/* engines: auto tree put datagram2 lossy */
/**
 * @file
 * Persistent barriers: several on one communicator, started in another order on each rank, with
 * barriers of other kinds in between; used after their communicator has been freed; made while
 * nonblocking ones are outstanding.
 */
#include "test/mpi/meet.h"

#include <mpi-ext.h>

#if defined(OMPI_HAVE_MPI_EXT_PCOLLREQ) && OMPI_HAVE_MPI_EXT_PCOLLREQ
#define BARRIER_INIT MPIX_Barrier_init
#elif MPI_VERSION >= 4 || OMPI_MAJOR_VERSION >= 5
#define BARRIER_INIT MPI_Barrier_init
#endif

#ifdef BARRIER_INIT
enum { HANDLES = 4, ROUNDS = 200 };

/** Each persistent barrier has a board of its own. */
static void in_any_order(MPI_Comm comm)
{
    MPI_Request handles[HANDLES];
    meet_t boards[HANDLES];
    tl_rng_t rng = tl_rng(tl_seed(), (uint64_t)tl_rank());
    for (int h = 0; h < HANDLES; h++) {
        TL_MPI(BARRIER_INIT(comm, MPI_INFO_NULL, &handles[h]));
        boards[h] = meet_new(comm);
    }
    for (int i = 0; i < ROUNDS; i++) {
        long numbers[HANDLES];
        int first = (int)tl_range(&rng, 0, HANDLES - 1);
        for (int k = 0; k < HANDLES; k++) {
            int h = (first + k) % HANDLES;
            numbers[h] = meet_enter(&boards[h]);
            TL_MPI(MPI_Start(&handles[h]));
            meet_delay(&rng, 100);
        }
        if (i % 3 == 0)
            TL_MPI(MPI_Barrier(comm));
        for (int k = 0; k < HANDLES; k++) {
            int h;
            TL_MPI(MPI_Waitany(HANDLES, handles, &h, MPI_STATUS_IGNORE));
            if (TL_CHECK(h != MPI_UNDEFINED, "no handle is active"))
                meet_leave(&boards[h], numbers[h], "persistent");
        }
    }
    for (int h = 0; h < HANDLES; h++) {
        TL_MPI(MPI_Request_free(&handles[h]));
        meet_free(&boards[h]);
    }
}

static void after_free(void)
{
    MPI_Comm dup;
    MPI_Request handle, others[10];
    TL_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &dup));
    meet_t board = meet_new(MPI_COMM_WORLD);
    for (int i = 0; i < 10; i++)
        TL_MPI(MPI_Ibarrier(dup, &others[i]));
    TL_MPI(BARRIER_INIT(dup, MPI_INFO_NULL, &handle));
    TL_MPI(MPI_Waitall(10, others, MPI_STATUSES_IGNORE));
    TL_MPI(MPI_Comm_free(&dup));
    for (int i = 0; i < 20; i++) {
        long n = meet_enter(&board);
        TL_MPI(MPI_Start(&handle));
        TL_MPI(MPI_Wait(&handle, MPI_STATUS_IGNORE));
        meet_leave(&board, n, "communicator is freed");
    }
    TL_MPI(MPI_Request_free(&handle));
    meet_free(&board);
}
#endif

int main(int argc, char **argv)
{
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
#ifdef BARRIER_INIT
    meet_begin();
    in_any_order(MPI_COMM_WORLD);
    after_free();
    meet_check_engine(HANDLES * ROUNDS);
    if (meet_engine() != NULL) {
        TL_CHECK(meet_counter("live_requests") == 0, "%lld requests are left",
                 meet_counter("live_requests"));
    }
    return meet_finish();
#else
    tl_skip("there are no persistent barriers");
#endif
}
