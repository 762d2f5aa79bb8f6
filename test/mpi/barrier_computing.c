/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-4 */
/* engines: datagram */
/**
 * @file
 * All ranks compute behind a nonblocking barrier, and none calls MPI for a millisecond after the
 * last one has entered. Where the steps are taken in the kernel the barrier is complete by then:
 * the first MPI_Test says so. Elsewhere it is only told how often it was.
 */
#include <stdio.h>
#include <time.h>

#include "test/mpi/meet.h"

enum { SETUP = 20, ROUNDS = 200, MSEC = 1000000 };

static long long now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/** Computes until all have entered, which the board says, and a millisecond more. */
static void compute(const meet_t *board)
{
    for (int rank = 0; rank < board->size; rank++) {
        while (meet_entered(board, rank) < board->mine) {
        }
    }
    for (const long long end = now() + MSEC; now() < end;) {
    }
}

/** Behind the call, so that who has written it has entered. */
static bool is_complete_at_once(meet_t *m, meet_t *board)
{
    MPI_Request request;
    int flag = 0;
    const long number = meet_ibarrier(m, &request);
    (void)meet_enter(board);
    compute(board);
    TL_MPI(MPI_Test(&request, &flag, MPI_STATUS_IGNORE));
    TL_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
    meet_leave(m, number, "computing");
    return flag != 0;
}

int main(int argc, char **argv)
{
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    meet_begin();
    meet_t m = meet_new(MPI_COMM_WORLD), board = meet_new(MPI_COMM_WORLD);
    for (int i = 0; i < SETUP; i++)
        meet_barrier(&m, "setup");
    const long long taken = meet_counter("stepper_taken");
    long mine[2] = {0, 0}, all[2];
    for (int i = 0; i < ROUNDS; i++)
        mine[0] += is_complete_at_once(&m, &board);
    /* A round has a message for each rank at least; a few may have come to the process. */
    mine[1] = meet_counter("stepper_taken") - taken >= ROUNDS * 9 / 10;
    TL_MPI(MPI_Allreduce(mine, all, 2, MPI_LONG, MPI_SUM, MPI_COMM_WORLD));
    const bool kernel = all[1] == m.size;
    /* Where the machine is busy the kernel itself may be late. */
    TL_CHECK(!kernel || 2 * all[0] >= (long)m.size * ROUNDS,
             "%ld of %d barriers were complete after a millisecond", all[0], m.size * ROUNDS);
    if (tl_rank() == 0)
        printf("%ld of %d were complete at the first look, %s\n", all[0], m.size * ROUNDS,
               kernel ? "by the kernel" : "not all by the kernel");
    meet_free(&board);
    meet_free(&m);
    return meet_finish();
}
