/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 1-3 */
/* p2p: auto */
/* engines: auto */
/**
 * @file
 * MPI is initialised and finalised again and again, by sessions, which Open MPI has since 5.0, and
 * once by MPI_Init between them: messages, windows and barriers work each time, with nothing left
 * of the time before. A session of its own makes a communicator only where the point-to-point layer
 * can have those of sessions.
 */
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef MPI_SESSION_NULL

enum { ROUNDS = 4, MESSAGES = 20, BARRIERS = 20, SHORT = 10, LONG = 300000 };

typedef struct job {
    MPI_Comm comm;
    int rank, size, round;
} job_t;

static long failed;

static void check(bool ok, const job_t *job, const char *what)
{
    if (!ok) {
        failed++;
        printf("sessions: rank %d, session %d: %s\n", job->rank, job->round, what);
    }
}

static long content(const job_t *job, int rank, int message, int i)
{
    return ((long)job->round * 100 + rank) * 100 + message + i;
}

static void exchange(const job_t *job, long *out, long *in)
{
    const int next = (job->rank + 1) % job->size, before = (job->rank + job->size - 1) % job->size;
    MPI_Request requests[2];

    for (int m = 0; m < MESSAGES; m++) {
        const int count = m % 2 ? LONG : SHORT;

        for (int i = 0; i < count; i++) {
            out[i] = content(job, job->rank, m, i);
            in[i] = -1;
        }
        MPI_Irecv(in, count, MPI_LONG, before, m, job->comm, &requests[0]);
        MPI_Isend(out, count, MPI_LONG, next, m, job->comm, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        check(in[0] == content(job, before, m, 0) &&
                  in[count - 1] == content(job, before, m, count - 1),
              job, "a message is wrong");
    }
}

static void accumulate(const job_t *job)
{
    const long one = 1;
    long *base;
    MPI_Win win;

    MPI_Win_allocate(sizeof(long), sizeof(long), MPI_INFO_NULL, job->comm, &base, &win);
    *base = 0;
    MPI_Win_fence(0, win);
    MPI_Accumulate(&one, 1, MPI_LONG, 0, 0, 1, MPI_LONG, MPI_SUM, win);
    MPI_Win_fence(0, win);
    check(job->rank != 0 || *base == job->size, job, "a sum is wrong");
    MPI_Win_free(&win);
}

static void use(job_t *job)
{
    long *out = malloc(LONG * sizeof(long)), *in = malloc(LONG * sizeof(long));

    MPI_Comm_rank(job->comm, &job->rank);
    MPI_Comm_size(job->comm, &job->size);
    if (out == NULL || in == NULL)
        MPI_Abort(job->comm, 1);
    exchange(job, out, in);
    for (int i = 0; i < BARRIERS; i++)
        MPI_Barrier(job->comm);
    accumulate(job);
    free(in);
    free(out);
}

/** A session from its beginning to its end. */
static void run_session(int round)
{
    job_t job = {.round = round};
    MPI_Session session;
    MPI_Group world;

    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &world);
    if (MPI_Comm_create_from_group(world, "sessions", MPI_INFO_NULL, MPI_ERRORS_RETURN,
                                   &job.comm) == MPI_SUCCESS) {
        use(&job);
        MPI_Comm_free(&job.comm);
    }
    MPI_Group_free(&world);
    MPI_Session_finalize(&session);
}

int main(int argc, char **argv)
{
    for (int round = 0; round < ROUNDS; round++)
        run_session(round);
    job_t job = {.comm = MPI_COMM_WORLD, .round = ROUNDS};
    MPI_Init(&argc, &argv);
    use(&job);
    MPI_Finalize();
    for (int round = ROUNDS + 1; round < 2 * ROUNDS; round++)
        run_session(round);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#else

int main(void)
{
    puts("sessions: skipped: this MPI has no sessions");
    return 77;
}

#endif
