/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 1-4 */
/* p2p: */
/**
 * @file
 * Receives that are cancelled, in time or too late; and messages that are longer than the receive:
 * MPI_ERR_TRUNCATE for the receiver in every call, a send that ends well, nothing written beyond
 * the buffer, and no harm to what comes after. Where no protocol is forced the first bytes of long
 * messages come without being asked for, as over a network, and often are all that is received.
 */
#include "test/mpi/p2p.h"

#include <stdlib.h>
#include <string.h>

enum { RACES = 50, CALLS = 9, IMRECV = 5 };

/** Of its own, so that wildcards meet nothing else. */
static MPI_Comm comm;

static int next(void)
{
    return (tl_rank() + 1) % tl_size();
}

static int before(void)
{
    return (tl_rank() + tl_size() - 1) % tl_size();
}

static bool was_cancelled(const MPI_Status *status)
{
    int cancelled = 0;

    TL_MPI(MPI_Test_cancelled(status, &cancelled));
    return cancelled;
}

/** Tells the rank before and hears from the next: to be sure of the order of things. */
static void tell_back(void)
{
    TL_MPI(MPI_Sendrecv(NULL, 0, MPI_BYTE, before(), 99, NULL, 0, MPI_BYTE, next(), 99,
                        MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}

/* ---- cancel ---- */

/** Several alike are posted, some cancelled before anything comes: the others get all, in order. */
static void test_cancel(int bytes)
{
    enum { N = 6 };
    unsigned char *in = tl_alloc((size_t)N * (size_t)bytes), *out = tl_alloc((size_t)bytes);
    MPI_Request requests[N];
    MPI_Status status;

    memset(in, 1, (size_t)N * (size_t)bytes);
    for (int i = 0; i < N; i++) {
        TL_MPI(MPI_Irecv(in + (size_t)i * (size_t)bytes, bytes, MPI_BYTE,
                         i % 3 ? before() : MPI_ANY_SOURCE, i % 4 ? 1 : MPI_ANY_TAG, comm,
                         &requests[i]));
    }
    for (int i = 0; i < N; i += 2) {
        TL_MPI(MPI_Cancel(&requests[i]));
        p2p_complete(&requests[i], &status, i);
        TL_CHECK(was_cancelled(&status), "receive %d was not cancelled", i);
    }
    tell_back();
    for (int i = 1; i < N; i += 2) {
        p2p_fill(out, (size_t)bytes, p2p_seed(tl_rank(), 1, i));
        TL_MPI(MPI_Send(out, bytes / i, MPI_BYTE, next(), 1, comm));
    }
    for (int i = 0; i < N; i++) {
        const unsigned char *data = in + (size_t)i * (size_t)bytes;
        size_t came = (size_t)(bytes / (i + (i == 0)));

        if (i % 2) {
            TL_MPI(MPI_Wait(&requests[i], &status));
            p2p_check_status(&status, before(), 1, came, "receive beside cancelled ones");
            TL_CHECK(p2p_holds(data, came / 8 * 8, p2p_seed(before(), 1, i)), "message %d", i);
        } else {
            TL_FILL(data, 1, (size_t)bytes, "buffer of cancelled receive %d", i);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    free(out);
    free(in);
}

/** A receive that is complete is not cancelled any more. */
static void test_cancel_late(int bytes)
{
    p2p_buffer_t in = p2p_buffer(p2p_side(P2P_VECTOR_64, bytes));
    p2p_buffer_t out = p2p_buffer(p2p_side(P2P_PLAIN, bytes));
    MPI_Request receive, send;
    MPI_Status status;
    int done = 0;

    p2p_write(&out, p2p_seed(tl_rank(), 2, bytes));
    TL_MPI(MPI_Irecv(in.at, in.side.count, in.side.type, MPI_ANY_SOURCE, 2, comm, &receive));
    TL_MPI(MPI_Isend(out.at, bytes, MPI_BYTE, next(), 2, comm, &send));
    while (!done)
        TL_MPI(MPI_Request_get_status(receive, &done, &status));
    TL_MPI(MPI_Cancel(&receive));
    TL_MPI(MPI_Wait(&receive, &status));
    p2p_check_status(&status, before(), 2, (size_t)bytes, "cancelled too late");
    p2p_check(&in, in.bytes, p2p_seed(before(), 2, bytes), "cancelled too late");
    TL_MPI(MPI_Wait(&send, MPI_STATUS_IGNORE));
    p2p_free(&in);
    p2p_free(&out);
    MPI_Barrier(MPI_COMM_WORLD);
}

/** At any moment while a message comes: the receive has it or a later one does, never both. */
static void test_cancel_race(void)
{
    tl_rng_t rng = tl_rng(tl_seed(), 9 + (uint64_t)tl_rank());
    p2p_buffer_t first = p2p_buffer(p2p_side(P2P_PLAIN, 200000));
    p2p_buffer_t second = p2p_buffer(p2p_side(P2P_VECTOR_64, 200000));
    p2p_buffer_t out = p2p_buffer(p2p_side(P2P_PLAIN, 200000));

    for (int i = 0; i < RACES; i++) {
        int bytes = i % 5 == 0 ? 200000 - i : i % 5 == 1 ? 8200 - i : 8 + i, done;
        MPI_Request receive, send;
        MPI_Status status;

        p2p_fill(out.at, (size_t)bytes, p2p_seed(tl_rank(), 3, i));
        p2p_wipe(&first);
        p2p_wipe(&second);
        TL_MPI(MPI_Irecv(first.at, 200000, MPI_BYTE, before(), 3, comm, &receive));
        TL_MPI(MPI_Isend(out.at, bytes, MPI_BYTE, next(), 3, comm, &send));
        for (int k = (int)tl_range(&rng, 0, 30); k > 0; k--)
            TL_MPI(MPI_Iprobe(before(), 98, comm, &done, MPI_STATUS_IGNORE));
        TL_MPI(MPI_Cancel(&receive));
        TL_MPI(MPI_Wait(&receive, &status));
        bool again = was_cancelled(&status);

        if (again) {
            TL_MPI(MPI_Recv(second.at, second.side.count, second.side.type, before(), 3, comm,
                            &status));
        }
        p2p_check_status(&status, before(), 3, (size_t)bytes, "race with cancel");
        p2p_check(&first, again ? 0 : (size_t)bytes, p2p_seed(before(), 3, i), "cancelled or not");
        p2p_check(&second, again ? (size_t)bytes : 0, p2p_seed(before(), 3, i), "second receive");
        TL_MPI(MPI_Wait(&send, MPI_STATUS_IGNORE));
    }
    p2p_free(&first);
    p2p_free(&second);
    p2p_free(&out);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* ---- truncation ---- */

/** Completes a receive that must fail, by one of several calls. */
static void complete_truncated(int call, MPI_Request *request, MPI_Status *status)
{
    MPI_Request among[2] = {MPI_REQUEST_NULL, *request};
    MPI_Status statuses[2];
    int class = MPI_SUCCESS, done = 0, index, code = MPI_SUCCESS;

    switch (call % 3) {
    case 0:
        TL_MPI_ERROR(MPI_Wait(request, status), MPI_ERR_TRUNCATE);
        return;
    case 1:
        TL_MPI_ERROR(MPI_Waitall(2, among, statuses), MPI_ERR_IN_STATUS);
        *status = statuses[1];
        MPI_Error_class(status->MPI_ERROR, &class);
        TL_CHECK(class == MPI_ERR_TRUNCATE && statuses[0].MPI_ERROR == MPI_SUCCESS,
                 "Waitall: class %d in the status", class);
        *request = among[1];
        return;
    default:
        while (!done && code == MPI_SUCCESS)
            code = MPI_Testany(2, among, &index, &done, status);
        TL_MPI_ERROR(code, MPI_ERR_TRUNCATE);
        *request = among[1];
    }
}

/** Receives by the call-th way into too small a buffer a message that may be there already. */
static void receive_truncated(int call, const p2p_buffer_t *in, MPI_Request *posted,
                              MPI_Status *status)
{
    void *at = in->at;
    const int n = in->side.count;
    MPI_Datatype type = in->side.type;
    MPI_Message message;
    MPI_Request request;

    switch (call) {
    case 0:
        TL_MPI_ERROR(MPI_Recv(at, n, type, before(), 5, comm, status), MPI_ERR_TRUNCATE);
        break;
    case 1:
    case 2:
    case 3:
        TL_MPI(MPI_Irecv(at, n, type, MPI_ANY_SOURCE, 5, comm, &request));
        complete_truncated(call, &request, status);
        break;
    case 4:
        TL_MPI(MPI_Mprobe(before(), 5, comm, &message, MPI_STATUS_IGNORE));
        TL_MPI_ERROR(MPI_Mrecv(at, n, type, &message, status), MPI_ERR_TRUNCATE);
        break;
    case IMRECV:
        TL_MPI(MPI_Mprobe(before(), 5, comm, &message, MPI_STATUS_IGNORE));
        TL_MPI(MPI_Imrecv(at, n, type, &message, &request));
        complete_truncated(0, &request, status);
        break;
    default:
        complete_truncated(call, posted, status);
    }
}

/** A message of `bytes`, room for `room`; the rest of the calls has the receive posted before. */
static void test_truncate(int bytes, int room, int call)
{
    /* ob1 writes all of a long message by single copy, whatever the room. */
    const bool beyond = p2p_layer("ob1");
    tr_side_t side = p2p_side(beyond ? P2P_PLAIN : (p2p_shape_t)((call + room) % P2P_SHAPES), room);
    side.span += beyond ? bytes : 0;
    p2p_buffer_t in = p2p_buffer(side);
    p2p_buffer_t out = p2p_buffer(p2p_side((p2p_shape_t)(call % P2P_SHAPES), bytes));
    MPI_Request posted = MPI_REQUEST_NULL, sends[2];
    MPI_Status status;
    long after = -1, word = 1000 + tl_rank();

    p2p_write(&out, p2p_seed(tl_rank(), 5, bytes));
    if (call > IMRECV) {
        TL_MPI(MPI_Irecv(in.at, in.side.count, in.side.type, before(), 5, comm, &posted));
        MPI_Barrier(MPI_COMM_WORLD);
    }
    TL_MPI(MPI_Isend(out.at, out.side.count, out.side.type, next(), 5, comm, &sends[0]));
    TL_MPI(MPI_Isend(&word, 1, MPI_LONG, next(), 5, comm, &sends[1]));
    receive_truncated(call, &in, &posted, &status);
    TL_CHECK(status.MPI_SOURCE == before() && status.MPI_TAG == 5, "from %d with tag %d",
             status.MPI_SOURCE, status.MPI_TAG);
    TL_MPI(MPI_Recv(&after, 1, MPI_LONG, before(), 5, comm, &status));
    TL_CHECK(after == 1000 + before(), "%ld came after the long message", after);
    TL_MPI(MPI_Waitall(2, sends, MPI_STATUSES_IGNORE));
    if (!beyond)
        p2p_check_outside(&in, "truncated");
    p2p_free(&in);
    p2p_free(&out);
}

static void test_truncations(void)
{
    static const int lengths[][2] = {{8, 0},
                                     {8, 7},
                                     {100, 8},
                                     {8192, 8191},
                                     {8200, 100},
                                     {65536, 0},
                                     {65536, 65535},
                                     {300000, 1000},
                                     {300000, 299999},
                                     {P2P_LARGEST, 8},
                                     {P2P_LARGEST, 1 << 20}};

    for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
        for (int call = 0; call < CALLS; call++) {
            /* pml/ucx does not say whose communicator the request of Imrecv has, and crashes. */
            if (call != IMRECV || !p2p_layer("ucx"))
                test_truncate(lengths[i][0], lengths[i][1], call);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

/** One of many fails, and Waitall says which. */
static void test_one_of_many(void)
{
    enum { N = 9 };
    unsigned char *in = tl_alloc(N * 20000), *out = tl_alloc(N * 20000);
    MPI_Request requests[2 * N];
    MPI_Status statuses[2 * N];

    for (int i = 0; i < N; i++) {
        int bytes = i % 2 ? 100 : 20000;

        p2p_fill(out + 20000 * i, (size_t)bytes, p2p_seed(tl_rank(), i, 0));
        TL_MPI(MPI_Irecv(in + 20000 * i, i % 4 == 2 ? bytes - 1 : bytes, MPI_BYTE, before(), i,
                         comm, &requests[i]));
        TL_MPI(MPI_Isend(out + 20000 * i, bytes, MPI_BYTE, next(), i, comm, &requests[N + i]));
    }
    /* Waitall need not wait for all where one has failed, and Open MPI then forgets some. */
    for (int i = 0; i < 2 * N; i++)
        for (int done = 0; !done;)
            TL_MPI(MPI_Request_get_status(requests[i], &done, MPI_STATUS_IGNORE));
    TL_MPI_ERROR(MPI_Waitall(2 * N, requests, statuses), MPI_ERR_IN_STATUS);
    for (int i = 0; i < 2 * N; i++) {
        int class;

        MPI_Error_class(statuses[i].MPI_ERROR, &class);
        TL_CHECK(class == (i < N && i % 4 == 2 ? MPI_ERR_TRUNCATE : MPI_SUCCESS),
                 "request %d: class %d", i, class);
        if (i < N && i % 4 != 2) {
            TL_CHECK(p2p_holds(in + 20000 * i, i % 2 ? 100 : 20000, p2p_seed(before(), i, 0)),
                     "message %d", i);
        }
    }
    free(in);
    free(out);
}

int main(int argc, char **argv)
{
    setenv("OMPI_MCA_pml_superpipe_cost", "latency=20000", 1);
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    test_cancel(64);
    test_cancel(5000);
    test_cancel(100000);
    for (int i = 0; i < p2p_nsizes; i++)
        test_cancel_late(p2p_sizes[i]);
    test_cancel_race();
    /* Of messages to itself ob1 does not say that they were too long. */
    if (tl_size() > 1 || !p2p_layer("ob1")) {
        test_truncations();
        test_one_of_many();
    }
    MPI_Comm_free(&comm);
    return tl_finish();
}
