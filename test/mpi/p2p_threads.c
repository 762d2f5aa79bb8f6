/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 1-3 */
/* p2p: */
/* threads: multiple */
/**
 * @file
 * MPI_THREAD_MULTIPLE: four threads of each rank at once, with a communicator each, with one
 * communicator and tags of their own, with messages that any of them may take, and one that waits
 * while others send to it from the same process.
 */
#include "test/mpi/p2p.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 4, WINDOW = 6, PART_MOST = 100, CIRCLES = 6, LONGEST = 150000 };
#define ROUNDS (tl_slow() ? 15 : 60)
/** Messages for any thread that one sends to each rank. */
#define PART   (tl_slow() ? 25 : PART_MOST)
#define SHARED (PART * THREADS)

typedef struct worker {
    MPI_Comm comm;
    int thread;
    int tag;          /**< the first of its tags */
    atomic_int *took; /**< how often each message was taken, by all threads */
} worker_t;

static int size_of(int source, int tag, int i)
{
    tl_rng_t rng = tl_rng(p2p_seed(source, tag, i), 4);
    int kind = (int)tl_range(&rng, 0, 11);

    return (int)(kind == 0  ? tl_range(&rng, 10000, LONGEST)
                 : kind < 3 ? tl_range(&rng, 8150, 8250)
                            : tl_range(&rng, 8, 900));
}

/** Runs `body` in THREADS threads and waits for all of them. */
static void run_threads(void *(*body)(void *), worker_t *workers)
{
    pthread_t threads[THREADS];
    int started = 0;

    while (started < THREADS &&
           pthread_create(&threads[started], NULL, body, &workers[started]) == 0)
        started++;
    if (started < THREADS)
        tl_die("no threads");
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
}

/* ---- communicators or tags of their own ---- */

/** Windows of messages to another rank, or to itself, from the same thread there. */
static void *exchange(void *arg)
{
    const worker_t *me = arg;
    unsigned char *out = tl_alloc(WINDOW * LONGEST), *in = tl_alloc(WINDOW * LONGEST);

    for (int round = 0; round < ROUNDS * tl_factor(); round++) {
        int distance = round % tl_size();
        int to = (tl_rank() + distance) % tl_size();
        int from = (tl_rank() + tl_size() - distance) % tl_size();
        MPI_Request requests[2 * WINDOW];
        MPI_Status statuses[2 * WINDOW];

        for (int i = 0; i < WINDOW; i++) {
            int number = round * WINDOW + i, bytes = size_of(tl_rank(), me->tag, number);

            p2p_fill(out + i * LONGEST, (size_t)bytes, p2p_seed(tl_rank(), me->tag, number));
            TL_MPI(MPI_Irecv(in + i * LONGEST, LONGEST, MPI_BYTE,
                             i % 3 || distance == 0 ? from : MPI_ANY_SOURCE, me->tag + round % 5,
                             me->comm, &requests[i]));
            TL_MPI((i % 4 == 3 ? MPI_Issend : MPI_Isend)(out + i * LONGEST, bytes, MPI_BYTE, to,
                                                         me->tag + round % 5, me->comm,
                                                         &requests[WINDOW + i]));
        }
        if (round % 2)
            TL_MPI(MPI_Waitall(2 * WINDOW, requests, statuses));
        else
            for (int i = 2 * WINDOW - 1; i >= 0; i--)
                TL_MPI(MPI_Wait(&requests[i], &statuses[i]));
        for (int i = 0; i < WINDOW; i++) {
            int source = statuses[i].MPI_SOURCE, number = round * WINDOW + i;
            size_t bytes = (size_t)size_of(from, me->tag, number);

            TL_CHECK(source == from, "from %d, not %d", source, from);
            p2p_check_status(&statuses[i], from, me->tag + round % 5, bytes, "thread");
            TL_CHECK(p2p_holds(in + i * LONGEST, bytes, p2p_seed(from, me->tag, number)),
                     "thread %d, message %d of %zu bytes from %d", me->thread, number, bytes, from);
        }
        /* With wildcards nobody may be a round ahead. */
        TL_MPI(MPI_Sendrecv(NULL, 0, MPI_BYTE, to, me->tag + 9, NULL, 0, MPI_BYTE, from,
                            me->tag + 9, me->comm, MPI_STATUS_IGNORE));
    }
    free(out);
    free(in);
    return NULL;
}

static void test_own(bool communicators)
{
    MPI_Comm comms[THREADS];
    worker_t workers[THREADS];

    for (int i = 0; i < THREADS; i++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
        workers[i] = (worker_t){.comm = communicators ? comms[i] : comms[0],
                                .thread = i,
                                .tag = communicators ? 100 : 100 * (i + 1)};
    }
    run_threads(exchange, workers);
    for (int i = 0; i < THREADS; i++)
        MPI_Comm_free(&comms[i]);
}

/* ---- messages for any thread ---- */

static void note(const worker_t *me, const MPI_Status *status, const unsigned char *in)
{
    int source = status->MPI_SOURCE, number = -1;
    size_t bytes;

    memcpy(&number, in, sizeof(number));
    if (!TL_CHECK(number >= 0 && number < SHARED, "message %d", number))
        return;
    bytes = (size_t)size_of(source, 0, number);
    p2p_check_status(status, source, number % 3, bytes, "taken by any thread");
    TL_CHECK(p2p_holds(in + 4, bytes - 4, p2p_seed(source, 0, number)), "message %d from %d",
             number, source);
    atomic_fetch_add(&me->took[source * SHARED + number], 1);
}

/** Takes PART messages from each rank, each found by a matched probe. */
static void take(const worker_t *me)
{
    int n = PART * tl_size();
    tl_rng_t rng = tl_rng(tl_seed(), (uint64_t)me->thread);

    for (int i = 0; i < n; i++) {
        MPI_Request request;
        MPI_Status status;
        int bytes = 0, way = (int)tl_range(&rng, 2, 3);
        MPI_Message message = p2p_find(way, MPI_ANY_SOURCE, MPI_ANY_TAG, me->comm, &status);

        MPI_Get_count(&status, MPI_BYTE, &bytes);
        unsigned char *in = tl_alloc((size_t)bytes + 8);
        if (i % 2) {
            TL_MPI(MPI_Mrecv(in, bytes, MPI_BYTE, &message, &status));
        } else {
            TL_MPI(MPI_Imrecv(in, bytes, MPI_BYTE, &message, &request));
            TL_MPI(MPI_Wait(&request, &status));
        }
        note(me, &status, in);
        free(in);
    }
}

/** Every thread sends its part of the messages to every rank, and takes as many. */
static void *share(void *arg)
{
    const worker_t *me = arg;
    unsigned char *out[PART_MOST];
    MPI_Request *sends = tl_alloc((size_t)(PART * tl_size()) * sizeof(*sends));

    for (int i = 0; i < PART; i++) {
        int number = me->thread * PART + i, bytes = size_of(tl_rank(), 0, number);

        out[i] = tl_alloc((size_t)bytes);
        memcpy(out[i], &number, sizeof(number));
        p2p_fill(out[i] + 4, (size_t)bytes - 4, p2p_seed(tl_rank(), 0, number));
        for (int to = 0; to < tl_size(); to++) {
            TL_MPI(MPI_Isend(out[i], bytes, MPI_BYTE, to, number % 3, me->comm,
                             &sends[i * tl_size() + to]));
        }
    }
    take(me);
    TL_MPI(MPI_Waitall(PART * tl_size(), sends, MPI_STATUSES_IGNORE));
    for (int i = 0; i < PART; i++)
        free(out[i]);
    free(sends);
    return NULL;
}

static void test_shared(void)
{
    worker_t workers[THREADS];
    MPI_Comm comm;
    atomic_int *took = tl_alloc((size_t)(tl_size() * SHARED) * sizeof(*took));
    int wrong = 0;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int i = 0; i < THREADS; i++)
        workers[i] = (worker_t){.comm = comm, .thread = i, .took = took};
    run_threads(share, workers);
    for (int i = 0; i < tl_size() * SHARED; i++)
        wrong += took[i] != 1;
    TL_CHECK(wrong == 0, "%d messages were not taken once", wrong);
    free(took);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Comm_free(&comm);
}

/* ---- threads that wait for each other ---- */

/** A circle through all threads of all ranks: each waits for the one before, blocking. Few rounds,
 *  since on few processors those that wait without yielding have to be preempted. */
static void *pass(void *arg)
{
    const worker_t *me = arg;
    const int last = me->thread == THREADS - 1;
    int to = last ? (tl_rank() + 1) % tl_size() : tl_rank();
    int from = me->thread > 0 ? tl_rank() : (tl_rank() + tl_size() - 1) % tl_size();
    long *data = tl_alloc(LONGEST);

    for (int round = 0; round < CIRCLES; round++) {
        int n = round % 2 ? LONGEST / 8 : 1 + round;
        bool first = tl_rank() == 0 && me->thread == 0;

        if (first) {
            data[0] = data[n - 1] = round;
            TL_MPI(MPI_Send(data, n, MPI_LONG, to, me->thread, me->comm));
        }
        TL_MPI(MPI_Recv(data, n, MPI_LONG, from, (me->thread + THREADS - 1) % THREADS, me->comm,
                        MPI_STATUS_IGNORE));
        TL_CHECK(data[0] == round && data[n - 1] == round, "round %d: %ld", round, data[0]);
        if (!first)
            TL_MPI(MPI_Send(data, n, MPI_LONG, to, me->thread, me->comm));
    }
    free(data);
    return NULL;
}

static void test_circle(void)
{
    worker_t workers[THREADS];
    MPI_Comm comm;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int i = 0; i < THREADS; i++)
        workers[i] = (worker_t){.comm = comm, .thread = i};
    run_threads(pass, workers);
    MPI_Comm_free(&comm);
}

int main(int argc, char **argv)
{
    tl_init(&argc, &argv, MPI_THREAD_MULTIPLE);
    test_circle();
    test_own(true);
    test_own(false);
    test_shared();
    return tl_finish();
}
