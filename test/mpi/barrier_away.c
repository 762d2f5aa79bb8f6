/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 3-5 */
/* engines: datagram datagram2 lossy */
/**
 * @file
 * Nonblocking barriers go all their steps while no leader of a node calls MPI: the
 * helper thread does it.
 *
 * One leader enters last, when all others have left MPI, and makes them wait: whether a barrier is
 * outstanding behind computation does not depend on who gets a processor when.
 */
#include "test/mpi/meet.h"

#include <unistd.h>

/** This process drives the network for its node; the others only wait for it, and may do so in MPI.
 */
static bool leads;
/** The rank that enters last. */
static int last;

enum { SETUP = 20, PATIENCE_MSEC = 60000 };
#define ROUNDS (tl_slow() ? 40 : 100)
/** Others are away for so long before the last one enters. */
enum { ABSENCE_USEC = 200 };

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

/** Until the others have begun barrier `number`, and a while more. */
static void come_last(const meet_t *gone, long number)
{
    for (int r = 0; r < gone->size; r++)
        while (r != gone->rank && meet_entered(gone, r) < number)
            usleep(10);
    usleep(ABSENCE_USEC);
}

/** The next barrier of `m`; `gone` counts those that have begun it. */
static void away(meet_t *m, meet_t *gone)
{
    MPI_Request request;
    long long before = meet_counter("datagram_completed");
    if (m->rank == last)
        come_last(gone, gone->mine + 1);
    long number = meet_enter(m);
    TL_MPI(MPI_Ibarrier(m->comm, &request));
    (void)meet_enter(gone);
    if (leads) {
        compute_until_complete(before);
        meet_leave(m, number, "away");
    }
    TL_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
    meet_leave(m, number, "back");
}

static void check_away(void)
{
    meet_t m = meet_new(MPI_COMM_WORLD), gone = meet_new(MPI_COMM_WORLD);
    const long long before = meet_counter("thread_completed");
    for (int i = 0; i < ROUNDS; i++)
        away(&m, &gone);
    const long long by_thread = meet_counter("thread_completed") - before;
    if (leads && m.rank != last) {
        TL_CHECK(by_thread == ROUNDS, "of %d barriers the helper thread has completed %lld", ROUNDS,
                 by_thread);
    }
    meet_free(&m);
    meet_free(&gone);
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
    int mine = leads ? m.rank : -1;
    TL_MPI(MPI_Allreduce(&mine, &last, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD));
    check_away();
    meet_check_engine(ROUNDS);
    meet_free(&m);
    return meet_finish();
}
