/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file A process that is killed; see killed.h. */
#include "test/mpi/counter.h"
#include "test/mpi/killed.h"
#include "test/mpi/meet.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

/** A text with the name of the method. */
#define OPS "osc_nicstride_ops_%s"

enum { ORIGIN, VICTIM, OTHER };
enum { BYTES = 1 << 20, REQUESTS = 16, TRIES = 2000, BLOCK = KILLED_BLOCK };

static unsigned char memory[BYTES], mine[BYTES];
static MPI_Datatype type; /* of which one is moved */
static char counter_name[64];

/** Puts until that goes by the method. */
static void await_key(MPI_Win win, int target)
{
    counter_t *ops = counter_begin(counter_name);

    for (int i = 0; i < TRIES && counter_read(ops) == 0; i++) {
        TL_MPI(MPI_Put(mine, 1, type, target, 0, 1, type, win));
        TL_MPI(MPI_Win_flush(target, win));
    }
    TL_CHECK(counter_read(ops) > 0, "no key of rank %d", target);
    counter_end(ops);
}

static void kill_under_way(MPI_Win win, pid_t pid)
{
    MPI_Request request[REQUESTS];
    MPI_Status status[REQUESTS];

    for (int i = 0; i < REQUESTS; i++) {
        /* Gets first: behind puts they would wait for these, and for the process that is stopped.
         */
        TL_MPI(i < REQUESTS / 4 ? MPI_Rget(memory, 1, type, VICTIM, 0, 1, type, win, &request[i])
                                : MPI_Rput(mine, 1, type, VICTIM, 0, 1, type, win, &request[i]));
    }
    TL_MPI(MPI_Put(mine, 8, MPI_BYTE, VICTIM, 0, 8, MPI_BYTE, win));
    kill(pid, SIGKILL);
    TL_CHECK(MPI_Waitall(REQUESTS, request, status) != MPI_SUCCESS, "no error of any request");
    TL_CHECK(MPI_Win_flush(VICTIM, win) != MPI_SUCCESS, "no error of the flush");
    (void)MPI_Put(mine, 8, MPI_BYTE, VICTIM, 0, 8, MPI_BYTE, win);
    TL_CHECK(MPI_Win_flush(VICTIM, win) != MPI_SUCCESS, "no error of a later flush");
}

static void reach_other(MPI_Win win)
{
    memset(mine, 77, BYTES);
    memset(memory, 77, BYTES); /* between blocks nothing comes */
    TL_MPI(MPI_Put(mine, 1, type, OTHER, 0, 1, type, win));
    TL_MPI(MPI_Win_flush(OTHER, win));
    memset(memory, 0, 1);
    TL_MPI(MPI_Get(memory, 1, type, OTHER, 0, 1, type, win));
    TL_MPI(MPI_Win_flush(OTHER, win));
    TL_BYTES(memory, mine, BYTES, "put to the third process and got back");
}

static void progress_for(double seconds)
{
    const double end = MPI_Wtime() + seconds;
    int flag;

    while (MPI_Wtime() < end)
        (void)MPI_Iprobe(MPI_ANY_SOURCE, 1, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
}

/** The put is over here, and the loss is known, before anybody waits for what has landed; unless
 *  `landed`: that it has is known with its end. */
static void kill_before_flush(MPI_Win win, pid_t pid, bool landed)
{
    TL_MPI(MPI_Put(mine, 8, MPI_BYTE, OTHER, 0, 8, MPI_BYTE, win));
    progress_for(0.1);
    kill(pid, SIGKILL);
    progress_for(0.5);
    TL_CHECK(MPI_Win_flush(OTHER, win) != MPI_SUCCESS || landed,
             "no error of a flush behind a loss");
}

static pid_t await_victim(int rank)
{
    long pid;

    TL_MPI(MPI_Recv(&pid, 1, MPI_LONG, rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    tl_await_stopped((pid_t)pid);
    return (pid_t)pid;
}

static void as_origin(MPI_Win win, bool landed)
{
    kill_under_way(win, await_victim(VICTIM));
    reach_other(win);
    MPI_Send(NULL, 0, MPI_BYTE, OTHER, 0, MPI_COMM_WORLD);
    kill_before_flush(win, await_victim(OTHER), landed);
}

static void as_victim(void)
{
    const long pid = getpid();

    TL_MPI(MPI_Send(&pid, 1, MPI_LONG, ORIGIN, 0, MPI_COMM_WORLD));
    raise(SIGSTOP);
    pause();
}

int killed_cases(const char *method, void (*need)(void), MPI_Aint stride, int argc, char **argv)
{
    int index, provided;
    MPI_Win win;

    setenv("OMPI_MCA_osc_nicstride_node", "0", 1);
    meet_begin_as_child();
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    tl_need_ranks(3, 3);
    if (need != NULL)
        need();
    TL_MPI(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    snprintf(counter_name, sizeof(counter_name), OPS, method);
    if (!counter_find(counter_name, &index))
        tl_skip("the component is not there");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    TL_MPI(MPI_Type_create_hvector((int)(BYTES / stride), BLOCK, stride, MPI_BYTE, &type));
    TL_MPI(MPI_Type_commit(&type));
    TL_MPI(MPI_Win_create(memory, BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    TL_MPI(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    TL_MPI(MPI_Win_lock_all(MPI_MODE_NOCHECK, win));
    if (tl_rank() == ORIGIN) {
        await_key(win, VICTIM);
        await_key(win, OTHER);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (tl_rank() == VICTIM)
        as_victim();
    alarm(TL_PATIENCE);
    if (tl_rank() == ORIGIN) {
        as_origin(win, strcmp(method, "nic") == 0);
    } else {
        MPI_Recv(NULL, 0, MPI_BYTE, ORIGIN, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        as_victim();
    }
    (void)MPI_Win_unlock_all(win);
    TL_MPI(MPI_Win_free(&win));
    MPI_Finalize();
    _exit(tl_failed() == 0 ? TL_EXIT_OK : TL_EXIT_FAILED);
}
