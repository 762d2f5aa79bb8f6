/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 3 */
/* methods: nic rdma pipeline */
/* mpirun: --mca orte_allowed_exit_without_sync 1 */
/* leaks: expected */
/**
 * @file
 * A process is killed while puts and gets by a method that an adapter serves, or by the pipeline's
 * puts as between hosts, are on their way to it: it was stopped before, so they are not over. All
 * requests end, and what a get that ends well was to bring is there; the flush ends with an error,
 * as does one later; a third process is reached as before. That one is killed then behind a put
 * which is over here: the flush ends with an error, too, and the window is freed. On one machine
 * each process is a node of its own.
 */
#include "test/mpi/adapter.h"
#include "test/mpi/meet.h"
#include "test/mpi/peers.h"

#include "common/pipeline/pipeline.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

enum { ORIGIN, VICTIM, OTHER };
enum { BYTES = 1 << 20, REQUESTS = 16, GETS = 4, BLOCK = 128 };

static unsigned char memory[BYTES], mine[BYTES], got[GETS][BYTES];
static MPI_Datatype type; /* of which one is moved */
static int stride;        /* of its blocks */

static bool is_pipeline(void)
{
    return strcmp(adapter_method(), "pipeline") == 0;
}

static void close_pipeline(void)
{
    onic_pipeline_close();
    onic_transport_flush();
    onic_transport_close();
}

static void await_key(MPI_Win win, int target)
{
    TL_CHECK(adapter_await(win, target, 0, mine, type), "no key of rank %d", target);
}

/** All that was put and got is alike. */
static void check_got(int i)
{
    int missing = 0;

    for (int at = 0; at < BYTES; at += stride)
        missing += memcmp(got[i] + at, mine + at, BLOCK) != 0;
    TL_CHECK(missing == 0, "get %d has ended well without %d of its blocks", i, missing);
}

static void kill_under_way(MPI_Win win, pid_t pid)
{
    MPI_Request request[REQUESTS];
    MPI_Status status[REQUESTS];

    for (int i = 0; i < REQUESTS; i++) {
        /* Gets first: behind puts they would wait for these, and for the process that is stopped.
         */
        TL_MPI(i < GETS ? MPI_Rget(got[i], 1, type, VICTIM, 0, 1, type, win, &request[i])
                        : MPI_Rput(mine, 1, type, VICTIM, 0, 1, type, win, &request[i]));
    }
    /* Behind the pipeline's puts it would wait for these. */
    if (!is_pipeline())
        TL_MPI(MPI_Put(mine, 8, MPI_BYTE, VICTIM, 0, 8, MPI_BYTE, win));
    kill(pid, SIGKILL);
    const int rc = MPI_Waitall(REQUESTS, request, status);
    TL_CHECK(rc != MPI_SUCCESS, "no error of any request");
    for (int i = 0; i < GETS; i++)
        if (rc == MPI_SUCCESS || (rc == MPI_ERR_IN_STATUS && status[i].MPI_ERROR == MPI_SUCCESS))
            check_got(i);
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

int main(int argc, char **argv)
{
    MPI_Win win;

    setenv("OMPI_MCA_osc_nicstride_node", "0", 1);
    meet_begin_as_child();
    if (is_pipeline())
        onic_transport_require(&(onic_transport_config_t){.puts = true});
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    tl_need_ranks(3, 3);
    adapter_need();
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (is_pipeline())
        peers_open_pipeline(64 << 10, 8 << 10);
    /* What goes by nic or the pipeline has gaps. */
    stride = strcmp(adapter_method(), "rdma") == 0 ? BLOCK : 4 * BLOCK;
    TL_MPI(MPI_Type_vector(BYTES / stride, BLOCK, stride, MPI_BYTE, &type));
    TL_MPI(MPI_Type_commit(&type));
    memset(mine, 55, BYTES);
    memset(memory, 55, BYTES);
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
        as_origin(win, adapter_is_nic());
    } else {
        MPI_Recv(NULL, 0, MPI_BYTE, ORIGIN, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        as_victim();
    }
    (void)MPI_Win_unlock_all(win);
    TL_MPI(MPI_Win_free(&win));
    if (is_pipeline())
        close_pipeline();
    MPI_Finalize();
    _exit(tl_failed() == 0 ? TL_EXIT_OK : TL_EXIT_FAILED);
}
