/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 3-5 */
/* engines: datagram lossy */
/**
 * @file
 * Nonblocking and persistent barriers go all their steps while no leader of a node calls MPI. The
 * helper thread that does it is told at once when the program has done so before, and is left alone
 * by a program that waits at once.
 */
#include "test/mpi/meet.h"

#include <mpi-ext.h>
#include <unistd.h>

#if defined(OMPI_HAVE_MPI_EXT_PCOLLREQ) && OMPI_HAVE_MPI_EXT_PCOLLREQ
#define BARRIER_INIT MPIX_Barrier_init
#elif MPI_VERSION >= 4 || OMPI_MAJOR_VERSION >= 5
#define BARRIER_INIT MPI_Barrier_init
#endif

/** This process drives the network for its node; the others only wait for it, and may do so in MPI.
 */
static bool leads;

enum { SETUP = 20, TRAINING = 5, ROUNDS = 100, BURST = 3, PATIENCE_MSEC = 60000 };

/** Computes, as far as MPI can tell, until the barrier is complete. A counter of MPI_T is read
 *  without a look at what may have come. */
static void compute_until_complete(long long before)
{
    for (int msec = 0; msec < PATIENCE_MSEC; msec++) {
        for (int i = 0; i < 1000; i++) {
            if (meet_counter("datagram_completed") > before)
                return;
            usleep(1);
        }
    }
    TL_CHECK(false, "nobody has completed the barrier in %d s", PATIENCE_MSEC / 1000);
}

/** Persistent where there is a handle. */
static void away(meet_t *m, MPI_Request *handle)
{
    MPI_Request request;
    long long before = meet_counter("datagram_completed");
    long number = meet_enter(m);
    if (handle != NULL) {
        TL_MPI(MPI_Start(handle));
    } else {
        TL_MPI(MPI_Ibarrier(m->comm, &request));
        handle = &request;
    }
    if (leads) {
        compute_until_complete(before);
        meet_leave(m, number, "away");
    }
    TL_MPI(MPI_Wait(handle, MPI_STATUS_IGNORE));
    meet_leave(m, number, "back");
}

static long long handovers_of(void (*round)(meet_t *, MPI_Request *), meet_t *m,
                              MPI_Request *handle, int n)
{
    long long before = meet_counter("handovers");
    for (int i = 0; i < n; i++)
        round(m, handle);
    return meet_counter("handovers") - before;
}

static void burst(meet_t *m, MPI_Request *handle)
{
    MPI_Request requests[BURST];
    long number = 0;
    (void)handle;
    for (int i = 0; i < BURST; i++)
        number = meet_ibarrier(m, &requests[i]);
    TL_MPI(MPI_Waitall(BURST, requests, MPI_STATUSES_IGNORE));
    meet_leave(m, number, "burst");
}

/** Over all leaders: for one that always comes last the others may have done everything before its
 *  call returns. */
static void check_away(meet_t *m, MPI_Request *handle, const char *what)
{
    (void)handovers_of(away, m, handle, TRAINING);
    long long before = meet_counter("thread_completed");
    long long handed = handovers_of(away, m, handle, ROUNDS);
    long long mine[] = {leads, handed, meet_counter("thread_completed") - before}, all[3];
    TL_MPI(MPI_Allreduce(mine, all, 3, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD));
    TL_CHECK(4 * all[1] >= all[0] * ROUNDS, "%s: of %d barriers of %lld leaders %lld handed over",
             what, ROUNDS, all[0], all[1]);
    TL_CHECK(4 * all[2] >= all[0] * ROUNDS,
             "%s: of %d barriers of %lld leaders the helper threads have completed %lld", what,
             ROUNDS, all[0], all[2]);
}

int main(int argc, char **argv)
{
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    meet_begin();
    if (meet_engine() == NULL)
        tl_skip("another component does the barriers");
    meet_t m = meet_new(MPI_COMM_WORLD);
    for (int i = 0; i < SETUP; i++)
        meet_barrier(&m, "setup");
    leads = meet_counter("datagram_completed") > 0;
    check_away(&m, NULL, "nonblocking");
    (void)handovers_of(burst, &m, NULL, TRAINING);
    long long n = handovers_of(burst, &m, NULL, ROUNDS);
    TL_CHECK(n <= BURST * ROUNDS / 2, "though nobody went away, %lld barriers were handed over", n);
#ifdef BARRIER_INIT
    MPI_Request handle;
    meet_t board = meet_new(MPI_COMM_WORLD);
    TL_MPI(BARRIER_INIT(MPI_COMM_WORLD, MPI_INFO_NULL, &handle));
    check_away(&board, &handle, "persistent");
    TL_MPI(MPI_Request_free(&handle));
    meet_free(&board);
#endif
    meet_check_engine(2 * ROUNDS);
    meet_free(&m);
    return meet_finish();
}
