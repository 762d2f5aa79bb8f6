/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Barriers while something else goes on: blocking and nonblocking ones, on communicators that come
 * and go, until somebody has made a file in the working directory, which all hosts have in common.
 *
 *   rounds FILE [kept]
 *
 * `kept`: on one communicator all the time. Prints "ready" when the first are through, and at the
 * end how many there were, how many checks have failed, and by how many KiB the processes have
 * grown.
 */
#include <stdio.h>
#include <unistd.h>

#include "test/mpi/meet.h"

enum { WARM_UP = 10, BARRIERS = 60, OUTSTANDING = 12, PATIENCE_SEC = 400 };

static void some_barriers(meet_t *m, MPI_Request requests[OUTSTANDING])
{
    for (int i = 0; i < BARRIERS; i++)
        meet_barrier(m, "in a row");
    for (int i = 0; i < OUTSTANDING; i++)
        (void)meet_ibarrier(m, &requests[i]);
}

/** The last ones are still under way when the communicator is freed. */
static void on_a_new_one(void)
{
    MPI_Comm comm;
    MPI_Request requests[OUTSTANDING];
    TL_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    meet_t m = meet_new(comm);
    some_barriers(&m, requests);
    TL_MPI(MPI_Comm_free(&comm));
    TL_MPI(MPI_Waitall(OUTSTANDING, requests, MPI_STATUSES_IGNORE));
    meet_leave(&m, m.mine, "on a communicator that was freed");
    meet_free(&m);
}

static void on_the_world(meet_t *m)
{
    MPI_Request requests[OUTSTANDING];
    some_barriers(m, requests);
    TL_MPI(MPI_Waitall(OUTSTANDING, requests, MPI_STATUSES_IGNORE));
    meet_leave(m, m->mine, "on the same communicator");
}

/** The same on all ranks. */
static bool is_over(const char *file, double end)
{
    int over = access(file, F_OK) == 0 || MPI_Wtime() > end, any;
    TL_MPI(MPI_Allreduce(&over, &any, 1, MPI_INT, MPI_LOR, MPI_COMM_WORLD));
    return any;
}

static void ready(void)
{
    if (tl_rank() == 0) {
        puts("ready");
        fflush(stdout);
    }
}

int main(int argc, char **argv)
{
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    meet_begin();
    const double end = MPI_Wtime() + PATIENCE_SEC;
    const bool kept = argc > 2;
    meet_t world = meet_new(MPI_COMM_WORLD);
    size_t before = 0;
    long n = 0;
    for (; n < WARM_UP || !is_over(argv[1], end); n++) {
        if (n == WARM_UP) {
            before = tl_private();
            ready();
        }
        if (kept)
            on_the_world(&world);
        else
            on_a_new_one();
    }
    TL_CHECK(MPI_Wtime() < end, "%s was not made in %d s", argv[1], PATIENCE_SEC);
    meet_check_engine(n);
    const size_t now = tl_private();
    long grown = now > before ? (long)(now - before) / 1024 : 0, most = 0;
    TL_MPI(MPI_Reduce(&grown, &most, 1, MPI_LONG, MPI_MAX, 0, MPI_COMM_WORLD));
    if (tl_rank() == 0)
        printf("rounds: %ld barriers, grown by %ld KiB\n", n * (BARRIERS + OUTSTANDING), most);
    meet_free(&world);
    return meet_finish();
}
