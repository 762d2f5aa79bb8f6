/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-4 */
/* engines: auto shm put datagram */
/**
 * @file
 * All but one rank come late to a barrier, whose set-up waits for them. test/killed names `barrier`
 * or `window`: then they sleep where they are about to map the first one's segment, until the job
 * is killed.
 */
#include "test/mpi/meet.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static atomic_bool sleeps;

/** In place of the C library's: what maps a segment asks for its length first. */
__attribute__((visibility("default"))) off_t lseek(int fd, off_t offset, int whence)
{
    static const char what[] = "a rank is about to map\n";

    if (atomic_exchange(&sleeps, false)) {
        (void)!write(STDOUT_FILENO, what, sizeof(what) - 1);
        sleep(30);
    }
    return syscall(SYS_lseek, fd, offset, whence);
}

static void make_window(void)
{
    void *base;
    MPI_Win win;

    TL_MPI(MPI_Win_allocate(1000, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    TL_MPI(MPI_Win_free(&win));
}

int main(int argc, char **argv)
{
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    meet_begin();
    meet_t m = meet_new(MPI_COMM_WORLD);
    int one = 1, all = 0;
    TL_MPI(MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    if (argc > 1)
        atomic_store(&sleeps, tl_rank() > 0);
    else if (tl_rank() > 0)
        usleep(300000);
    if (argc > 1 && strcmp(argv[1], "window") == 0)
        make_window();
    for (int i = 0; i < 3; i++)
        meet_barrier(&m, "late");
    meet_free(&m);
    return meet_finish();
}
