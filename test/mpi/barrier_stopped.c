/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-4 */
/* engines: auto put datagram lossy */
/**
 * @file
 * A rank is stopped as by a debugger, with its helper threads, while others wait for it in
 * barriers, and goes on later: nobody gives it up, and what it missed meanwhile is repeated.
 */
#include "test/mpi/meet.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 4, MSEC = 300 };

/** A child lets me go on. */
static void stop_for_a_while(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        const struct timespec time = {0, MSEC * 1000000L};
        tl_await_stopped(getppid());
        nanosleep(&time, NULL);
        kill(getppid(), SIGCONT);
        _exit(0);
    }
    TL_CHECK(pid > 0, "no child");
    if (pid > 0) {
        raise(SIGSTOP);
        waitpid(pid, NULL, 0);
    }
}

static void rounds(meet_t *m)
{
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Request request;
        meet_barrier(m, "before");
        long number = meet_ibarrier(m, &request);
        if (i % m->size == m->rank)
            stop_for_a_while();
        meet_barrier(m, "behind one that is stopped");
        TL_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
        meet_leave(m, number, "outstanding");
        for (int k = 0; k < 20; k++)
            meet_barrier(m, "after");
    }
}

int main(int argc, char **argv)
{
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    meet_begin();
    meet_t m = meet_new(MPI_COMM_WORLD);
    for (int i = 0; i < 20; i++)
        meet_barrier(&m, "at the beginning");
    rounds(&m);
    meet_check_engine(20 * ROUNDS);
    meet_free(&m);
    return meet_finish();
}
