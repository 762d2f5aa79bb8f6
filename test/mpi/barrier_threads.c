/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-4 */
/* engines: auto put put2 datagram2 lossy */
/**
 * @file
 * MPI_THREAD_MULTIPLE: each thread has a communicator of its own and does barriers and nonblocking
 * barriers there, while the others do the same; one thread sends messages round.
 */
#include "test/mpi/meet.h"

#include <pthread.h>
#include <sched.h>

enum { THREADS = 3, OUTSTANDING = 8 };
#define ROUNDS (tl_slow() ? 40 : 150)

typedef struct job {
    pthread_t thread;
    MPI_Comm comm;
    meet_t board;
    int index;
} job_t;

/**
 * By MPI_Testany. MPI_Waitany and MPI_Waitsome keep on their stack what says that a request is
 * complete. Where another thread makes progress, and completes a second request of theirs between
 * the first one and their end, Open MPI writes there when they have returned
 * (ompi_request_complete takes the address from the request first, and counts there after that),
 * whichever component the requests are of.
 */
static int any_complete(MPI_Request *requests)
{
    int index, flag = 0;
    for (;;) {
        TL_MPI(MPI_Testany(OUTSTANDING, requests, &index, &flag, MPI_STATUS_IGNORE));
        if (flag)
            return index;
        sched_yield();
    }
}

static void outstanding(meet_t *m, tl_rng_t *rng)
{
    MPI_Request requests[OUTSTANDING];
    long numbers[OUTSTANDING];
    for (int k = 0; k < OUTSTANDING; k++) {
        numbers[k] = meet_ibarrier(m, &requests[k]);
        meet_delay(rng, 30);
    }
    for (int left = OUTSTANDING; left > 0; left--)
        meet_leave(m, numbers[any_complete(requests)], "thread, outstanding");
}

static void *run(void *arg)
{
    job_t *job = arg;
    tl_rng_t rng = tl_rng(tl_seed(), (uint64_t)(job->index * 1000 + tl_rank()));
    for (int i = 0; i < ROUNDS; i++) {
        meet_barrier(&job->board, "thread");
        if (i % 3 == job->index % 3)
            outstanding(&job->board, &rng);
        meet_delay(&rng, 50);
    }
    return NULL;
}

static void *chat(void *arg)
{
    const job_t *job = arg;
    int right = (tl_rank() + 1) % tl_size(), left = (tl_rank() + tl_size() - 1) % tl_size();
    for (int i = 0; i < ROUNDS; i++) {
        int got = -1;
        TL_MPI(MPI_Sendrecv(&i, 1, MPI_INT, right, 1, &got, 1, MPI_INT, left, 1, job->comm,
                            MPI_STATUS_IGNORE));
        TL_CHECK(got == i, "got %d, not %d", got, i);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    job_t jobs[THREADS + 1];
    tl_init(&argc, &argv, MPI_THREAD_MULTIPLE);
    meet_begin();
    for (int t = 0; t <= THREADS; t++) {
        jobs[t].index = t;
        TL_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &jobs[t].comm));
        jobs[t].board = meet_new(jobs[t].comm);
    }
    for (int t = 0; t <= THREADS; t++)
        pthread_create(&jobs[t].thread, NULL, t < THREADS ? run : chat, &jobs[t]);
    for (int t = 0; t <= THREADS; t++) {
        pthread_join(jobs[t].thread, NULL);
        meet_free(&jobs[t].board);
        TL_MPI(MPI_Comm_free(&jobs[t].comm));
    }
    meet_check_engine(THREADS * (ROUNDS - 10));
    return meet_finish();
}
