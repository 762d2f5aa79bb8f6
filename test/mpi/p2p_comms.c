/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-4 */
/* p2p: */
/**
 * @file
 * Communicators: messages that arrive before the receiver has the communicator, intercommunicators,
 * many communicators with the same tags at once, communicators that are freed before what was
 * started on them is over, and ones that only some make.
 */
#include "test/mpi/p2p.h"

#include <stdlib.h>
#include <unistd.h>

enum { EARLY = 24 };

/** A ring of messages of all sizes but the largest over any communicator: from each rank to the
 *  next `distance`. */
static void ring(MPI_Comm comm, int distance, int salt, const char *what)
{
    int rank, size;

    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    for (int i = salt % 3; i < p2p_nsizes - 2; i += 3) {
        p2p_buffer_t out = p2p_buffer(p2p_side((p2p_shape_t)(i % P2P_SHAPES), p2p_sizes[i]));
        p2p_buffer_t in = p2p_buffer(p2p_side(P2P_VECTOR_64, p2p_sizes[i]));
        int from = (rank + size - distance % size) % size;
        MPI_Status status;

        p2p_write(&out, p2p_seed(rank, salt, i));
        TL_MPI(MPI_Sendrecv(out.at, out.side.count, out.side.type, (rank + distance) % size, 1,
                            in.at, in.side.count, in.side.type, MPI_ANY_SOURCE, 1, comm, &status));
        p2p_check_status(&status, from, 1, in.bytes, what);
        p2p_check(&in, in.bytes, p2p_seed(from, salt, i), what);
        p2p_free(&out);
        p2p_free(&in);
    }
}

/* ---- early messages ---- */

static int early_bytes(int i)
{
    return i % 8 == 7 ? 150000 : i % 4 == 3 ? 9000 : 4 * i;
}

/** A communicator made in one of several ways; by wish this rank does other things in between. */
static MPI_Comm make(int how, bool late)
{
    MPI_Request request;
    MPI_Comm comm;
    MPI_Group group;

    if (late)
        usleep(3000);
    switch (how % 4) {
    case 0:
        TL_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
        break;
    case 1:
        TL_MPI(MPI_Comm_split(MPI_COMM_WORLD, 0, -tl_rank(), &comm));
        break;
    case 2:
        TL_MPI(MPI_Comm_idup(MPI_COMM_WORLD, &comm, &request));
        if (late)
            usleep(3000);
        TL_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
        break;
    default:
        MPI_Comm_group(MPI_COMM_WORLD, &group);
        TL_MPI(MPI_Comm_create(MPI_COMM_WORLD, group, &comm));
        MPI_Group_free(&group);
    }
    return comm;
}

/** One rank is late in making it, the others send to it at once. */
static void test_early(void)
{
    unsigned char *in = tl_alloc(150000), *out[EARLY];

    for (int i = 0; i < EARLY; i++)
        out[i] = tl_alloc((size_t)early_bytes(i));
    for (int how = 0; how < (tl_slow() ? 8 : 16); how++) {
        bool late = tl_rank() == how / 4 % tl_size();
        MPI_Comm comm = make(how, late);
        MPI_Request sends[EARLY];
        int rank, size;

        MPI_Comm_rank(comm, &rank);
        MPI_Comm_size(comm, &size);
        for (int i = 0; i < EARLY; i++) {
            p2p_fill(out[i], (size_t)early_bytes(i), p2p_seed(rank, how, i));
            TL_MPI(MPI_Isend(out[i], early_bytes(i), MPI_BYTE, (rank + i) % size, i % 3, comm,
                             &sends[i]));
        }
        if (late)
            usleep(1000);
        for (int i = 0; i < EARLY; i++) {
            int from = (rank + size * EARLY - i) % size;
            MPI_Status status;

            TL_MPI(MPI_Recv(in, 150000, MPI_BYTE, from, i % 3, comm, &status));
            p2p_check_status(&status, from, i % 3, (size_t)early_bytes(i), "early");
            TL_CHECK(p2p_holds(in, (size_t)early_bytes(i), p2p_seed(from, how, i)),
                     "early message %d from %d, way %d", i, from, how);
        }
        TL_MPI(MPI_Waitall(EARLY, sends, MPI_STATUSES_IGNORE));
        TL_MPI(MPI_Comm_free(&comm));
    }
    for (int i = 0; i < EARLY; i++)
        free(out[i]);
    free(in);
}

/* ---- intercommunicators ---- */

static void test_inter(void)
{
    int first = tl_rank() < tl_size() / 2, remote;
    MPI_Comm half, inter, twin, merged;

    MPI_Comm_split(MPI_COMM_WORLD, first, tl_rank(), &half);
    TL_MPI(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, first ? tl_size() / 2 : 0, 17, &inter));
    TL_MPI(MPI_Comm_dup(inter, &twin));
    MPI_Comm_remote_size(inter, &remote);
    /* All of one side send to all of the other, whose ranks they name. */
    for (int i = 0; i < p2p_nsizes; i++) {
        for (int r = 0; r < remote; r++) {
            p2p_buffer_t out = p2p_buffer(p2p_side((p2p_shape_t)(i % P2P_SHAPES), p2p_sizes[i]));
            p2p_buffer_t in = p2p_buffer(p2p_side(P2P_PLAIN, p2p_sizes[i]));
            MPI_Comm comm = i % 2 ? inter : twin;
            MPI_Request send;
            MPI_Status status;
            int me;

            MPI_Comm_rank(comm, &me);
            p2p_write(&out, p2p_seed(tl_rank(), 2, i));
            TL_MPI(MPI_Isend(out.at, out.side.count, out.side.type, r, me, comm, &send));
            TL_MPI(MPI_Recv(in.at, p2p_sizes[i], MPI_BYTE, r, MPI_ANY_TAG, comm, &status));
            p2p_check_status(&status, r, r, in.bytes, "intercommunicator");
            p2p_check(&in, in.bytes, p2p_seed(first ? tl_size() / 2 + r : r, 2, i),
                      "intercommunicator");
            TL_MPI(MPI_Wait(&send, MPI_STATUS_IGNORE));
            p2p_free(&out);
            p2p_free(&in);
        }
    }
    TL_MPI(MPI_Intercomm_merge(inter, first, &merged));
    ring(merged, 1, 5, "merged");
    MPI_Comm_free(&merged);
    MPI_Comm_free(&twin);
    MPI_Comm_free(&inter);
    ring(half, 1, 6, "half");
    MPI_Comm_free(&half);
}

/* ---- many at once ---- */

/** Messages that differ by their communicator only, received in another order. */
static void test_many(void)
{
    const int many = tl_slow() ? 60 : 200;
    MPI_Comm *comms = tl_alloc((size_t)many * sizeof(*comms));
    MPI_Request *sends = tl_alloc((size_t)many * sizeof(*sends)),
                *receives = tl_alloc((size_t)many * sizeof(*sends));
    long *out = tl_alloc((size_t)many * sizeof(*out)), *in = tl_alloc((size_t)many * sizeof(*in));
    const int next = p2p_next(), before = p2p_before();
    int wrong = 0;

    for (int i = 0; i < many; i++) {
        TL_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]));
        out[i] = tl_rank() * 1000L + i;
        TL_MPI(MPI_Isend(&out[i], 1, MPI_LONG, next, 1, comms[i], &sends[i]));
    }
    for (int i = many - 1; i >= 0; i--) {
        TL_MPI(MPI_Irecv(&in[i], 1, MPI_LONG, i % 2 ? before : MPI_ANY_SOURCE, MPI_ANY_TAG,
                         comms[i], &receives[i]));
    }
    TL_MPI(MPI_Waitall(many, receives, MPI_STATUSES_IGNORE));
    for (int i = 0; i < many; i++)
        wrong += in[i] != before * 1000L + i;
    TL_CHECK(wrong == 0, "%d of %d messages are of another communicator", wrong, many);
    TL_MPI(MPI_Waitall(many, sends, MPI_STATUSES_IGNORE));
    for (int i = 0; i < many; i++) {
        if (i % 50 == 0)
            ring(comms[i], 1, i, "one of many");
        TL_MPI(MPI_Comm_free(&comms[i]));
    }
    free(in);
    free(out);
    free(receives);
    free(sends);
    free(comms);
    ring(MPI_COMM_WORLD, 1, 3, "the world after many were freed");
}

/* ---- freed early ---- */

/** What was started on a communicator comes to its end after that is freed. */
static void test_freed(void)
{
    const int next = p2p_next(), before = p2p_before();

    for (int i = 0; i < p2p_nsizes; i++) {
        p2p_buffer_t out = p2p_buffer(p2p_side((p2p_shape_t)(i % P2P_SHAPES), p2p_sizes[i]));
        p2p_buffer_t in = p2p_buffer(p2p_side(P2P_VECTOR_8, p2p_sizes[i]));
        MPI_Request receive, send;
        MPI_Status status;
        MPI_Comm comm;

        TL_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
        p2p_write(&out, p2p_seed(tl_rank(), 4, i));
        TL_MPI(MPI_Irecv(in.at, in.side.count, in.side.type, before, 4, comm, &receive));
        TL_MPI(MPI_Isend(out.at, out.side.count, out.side.type, next, 4, comm, &send));
        TL_MPI(MPI_Comm_free(&comm));
        if (i % 2)
            ring(MPI_COMM_WORLD, 1, i, "beside one that was freed");
        TL_MPI(MPI_Wait(&receive, &status));
        p2p_check_status(&status, before, 4, in.bytes, "freed");
        p2p_check(&in, in.bytes, p2p_seed(before, 4, i), "freed");
        TL_MPI(MPI_Wait(&send, MPI_STATUS_IGNORE));
        p2p_free(&out);
        p2p_free(&in);
    }
}

/** A message that a probe has taken keeps its communicator, whose number nobody else gets. */
static void test_freed_message(void)
{
    const int next = p2p_next(), before = p2p_before();

    for (int i = 0; i < 2 * p2p_nsizes; i += tl_slow() ? 3 : 1) {
        p2p_buffer_t out = p2p_buffer(p2p_side((p2p_shape_t)(i % P2P_SHAPES), p2p_sizes[i / 2]));
        p2p_buffer_t in = p2p_buffer(p2p_side(P2P_VECTOR_8, p2p_sizes[i / 2]));
        MPI_Request receive, send;
        MPI_Message message;
        MPI_Status status;
        MPI_Comm comm, twin;

        TL_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
        const MPI_Fint freed = MPI_Comm_c2f(comm);
        p2p_write(&out, p2p_seed(tl_rank(), 5, i));
        TL_MPI(MPI_Isend(out.at, out.side.count, out.side.type, next, 5, comm, &send));
        message = p2p_find(2 + i % 2, i % 2 ? before : MPI_ANY_SOURCE, 5, comm, &status);
        TL_MPI(MPI_Comm_free(&comm));
        TL_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &twin));
        TL_CHECK(MPI_Comm_c2f(twin) != freed, "a message waits, and its communicator is gone");
        ring(twin, 1, i, "beside a message of one that was freed");
        if (i % 4 < 2) {
            TL_MPI(MPI_Mrecv(in.at, in.side.count, in.side.type, &message, &status));
        } else {
            TL_MPI(MPI_Imrecv(in.at, in.side.count, in.side.type, &message, &receive));
            TL_MPI(MPI_Wait(&receive, &status));
        }
        p2p_check_status(&status, before, 5, in.bytes, "freed, matched");
        p2p_check(&in, in.bytes, p2p_seed(before, 5, i), "freed, matched");
        TL_MPI(MPI_Wait(&send, MPI_STATUS_IGNORE));
        MPI_Comm_free(&twin);
        p2p_free(&out);
        p2p_free(&in);
    }
}

/** Persistent requests, and receives that are cancelled, after their communicator is freed; and
 *  what was sent by a copy, whose request is gone before. */
static void test_freed_requests(void)
{
    enum { SENDS = 40 };
    const int next = p2p_next(), before = p2p_before();
    const int room = SENDS * ((int)sizeof(long) + MPI_BSEND_OVERHEAD);
    void *buffer = tl_alloc((size_t)room);
    long out[SENDS], in[SENDS], none;
    MPI_Request requests[2], cancelled, receives[SENDS];
    MPI_Status status;
    MPI_Comm comm;
    int taken = 0;

    MPI_Buffer_attach(buffer, room);
    TL_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    TL_MPI(MPI_Recv_init(&in[0], 1, MPI_LONG, before, 1, comm, &requests[0]));
    TL_MPI(MPI_Ssend_init(&out[0], 1, MPI_LONG, next, 1, comm, &requests[1]));
    TL_MPI(MPI_Irecv(&none, 1, MPI_LONG, before, 3, comm, &cancelled));
    for (int i = 1; i < SENDS; i++) {
        out[i] = 100 * tl_rank() + i;
        TL_MPI(MPI_Irecv(&in[i], 1, MPI_LONG, before, 2, comm, &receives[i]));
    }
    for (int i = 1; i < SENDS; i++)
        TL_MPI(MPI_Bsend(&out[i], 1, MPI_LONG, next, 2, comm));
    TL_MPI(MPI_Comm_free(&comm));
    TL_MPI(MPI_Waitall(SENDS - 1, &receives[1], MPI_STATUSES_IGNORE));
    for (int i = 1; i < SENDS; i++)
        TL_CHECK(in[i] == 100 * before + i, "copy %d is %ld", i, in[i]);
    for (int round = 0; round < 3; round++) {
        out[0] = 10 * tl_rank() + round;
        TL_MPI(MPI_Startall(2, requests));
        TL_MPI(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
        TL_CHECK(in[0] == 10 * before + round, "round %d: %ld", round, in[0]);
    }
    TL_MPI(MPI_Cancel(&cancelled));
    TL_MPI(MPI_Wait(&cancelled, &status));
    TL_MPI(MPI_Test_cancelled(&status, &taken));
    TL_CHECK(taken, "a receive could not be cancelled");
    TL_MPI(MPI_Request_free(&requests[0]));
    TL_MPI(MPI_Request_free(&requests[1]));
    MPI_Buffer_detach(&buffer, &taken);
    free(buffer);
}

/* ---- of some ---- */

/** Only members call; the others do not know of it. */
static void test_create_group(void)
{
    MPI_Group world, some;
    MPI_Comm comm;
    int ranks[8], n = 0;

    MPI_Comm_group(MPI_COMM_WORLD, &world);
    for (int r = tl_size() - 1; r >= 0; r--)
        if (r != 1)
            ranks[n++] = r;
    MPI_Group_incl(world, n, ranks, &some);
    for (int i = 0; i < 10; i++) {
        if (tl_rank() != 1) {
            TL_MPI(MPI_Comm_create_group(MPI_COMM_WORLD, some, i, &comm));
            ring(comm, 1, i, "create_group");
            MPI_Comm_free(&comm);
        }
    }
    MPI_Group_free(&some);
    MPI_Group_free(&world);
}

int main(int argc, char **argv)
{
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    test_early();
    test_inter();
    test_create_group();
    test_freed();
    test_freed_message();
    test_freed_requests();
    test_many();
    ring(MPI_COMM_SELF, 1, 7, "self");
    return tl_finish();
}
