/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-4 */
/* engines: shm put datagram */
/* apart: transport */
/**
 * @file
 * The engine cannot be set up on one rank, which may open no more files: everybody goes on with the
 * module below, for good; one rank says why, in one line; and barriers are right before, during and
 * after, also nonblocking ones that are outstanding meanwhile.
 */
#include "test/mpi/meet.h"

#include <stdlib.h>
#include <sys/resource.h>

enum { MANY = 30 };

static void many_at_once(meet_t *m)
{
    MPI_Request requests[MANY];
    long numbers[MANY];
    for (int i = 0; i < MANY; i++)
        numbers[i] = meet_ibarrier(m, &requests[i]);
    for (int i = MANY - 1; i >= 0; i--) {
        TL_MPI(MPI_Wait(&requests[i], MPI_STATUS_IGNORE));
        meet_leave(m, numbers[i], "one of many");
    }
}

static void limit_files(rlim_t n)
{
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = n < limit.rlim_max ? n : limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

int main(int argc, char **argv)
{
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    meet_begin();
    if (meet_engine() == NULL)
        tl_skip("another component does the barriers");
    if (!tl_one_host())
        tl_skip("without files there is no connection to another host");
    meet_t m = meet_new(MPI_COMM_WORLD), n;
    MPI_Comm dup_comm;
    TL_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &dup_comm));
    n = meet_new(dup_comm);
    /* Messages between all, so that nothing else needs to be opened later. */
    int *words = tl_alloc((size_t)tl_size() * sizeof(int));
    TL_MPI(MPI_Alltoall(MPI_IN_PLACE, 1, MPI_INT, words, 1, MPI_INT, MPI_COMM_WORLD));
    free(words);
    meet_errors_t errors = meet_catch_errors();
    if (tl_rank() == tl_size() - 1)
        limit_files(3);
    many_at_once(&m);
    many_at_once(&n);
    for (int i = 0; i < 50; i++) {
        meet_barrier(&m, "after");
        meet_barrier(&n, "blocking");
    }
    many_at_once(&m);
    many_at_once(&n);
    limit_files(1024);
    int all = meet_count_errors(&errors, "coll_nicbarrier:");
    TL_CHECK(all == 1, "%d lines say why, not 1", all);
    TL_CHECK(meet_counter("declined") == 2, "%lld agreements were declined",
             meet_counter("declined"));
    TL_CHECK(meet_carried() == 0, "%lld barriers by an engine", meet_carried());
    meet_free(&m);
    meet_free(&n);
    TL_MPI(MPI_Comm_free(&dup_comm));
    return meet_finish();
}
