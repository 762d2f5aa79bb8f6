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
 *
 * And it forks and starts other programs between barriers and while nonblocking ones are
 * outstanding; children use no MPI. Children that end must disturb neither flags nor sockets.
 */
#include "test/mpi/meet.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 40, EVERY = 10, OUTSTANDING = 3, MSEC = 300 };

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

static void start_child(bool exec)
{
    pid_t pid = fork();
    if (pid == 0) {
        if (exec)
            execl("/bin/true", "true", (char *)NULL);
        /* Touch a little memory, as programs do. */
        volatile char *p = malloc(1 << 20);
        for (int i = 0; p != NULL && i < 1 << 20; i += 4096)
            p[i] = 1;
        _exit(p == NULL);
    }
    int status = -1;
    TL_CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0, "child: status %d", status);
}

static void one_round(meet_t *m, int i)
{
    const bool stops = i % EVERY == 0;
    MPI_Request requests[OUTSTANDING];
    long numbers[OUTSTANDING];
    meet_barrier(m, "before");
    for (int k = 0; k < OUTSTANDING; k++)
        numbers[k] = meet_ibarrier(m, &requests[k]);
    /* Each by turns. */
    if ((stops ? i / EVERY : i) % m->size == m->rank) {
        if (stops)
            stop_for_a_while();
        else
            start_child(i % 2 == 0);
    }
    meet_barrier(m, stops ? "behind one that is stopped" : "behind one that has a child");
    for (int k = 0; k < OUTSTANDING; k++) {
        TL_MPI(MPI_Wait(&requests[k], MPI_STATUS_IGNORE));
        meet_leave(m, numbers[k], "outstanding");
    }
    for (int k = 0; stops && k < 20; k++)
        meet_barrier(m, "after");
}

int main(int argc, char **argv)
{
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    meet_begin();
    meet_t m = meet_new(MPI_COMM_WORLD);
    for (int i = 0; i < 20; i++)
        meet_barrier(&m, "at the beginning");
    for (int i = 0; i < ROUNDS; i++)
        one_round(&m, i);
    meet_check_engine((OUTSTANDING + 2) * ROUNDS);
    meet_free(&m);
    return meet_finish();
}
