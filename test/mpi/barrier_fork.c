/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-4 */
/* engines: auto put datagram lossy */
/**
 * @file
 * The application forks and starts other programs between barriers and while nonblocking ones are
 * outstanding; children use no MPI. Children that end must disturb neither flags nor sockets.
 */
#include "test/mpi/meet.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

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

int main(int argc, char **argv)
{
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    meet_begin();
    meet_t m = meet_new(MPI_COMM_WORLD);
    for (int i = 0; i < 40; i++) {
        MPI_Request requests[3];
        long numbers[3];
        meet_barrier(&m, "before");
        for (int k = 0; k < 3; k++)
            numbers[k] = meet_ibarrier(&m, &requests[k]);
        if (i % m.size == m.rank)
            start_child(i % 2 == 0);
        meet_barrier(&m, "after");
        for (int k = 0; k < 3; k++) {
            TL_MPI(MPI_Wait(&requests[k], MPI_STATUS_IGNORE));
            meet_leave(&m, numbers[k], "outstanding");
        }
    }
    meet_check_engine(100);
    meet_free(&m);
    return meet_finish();
}
