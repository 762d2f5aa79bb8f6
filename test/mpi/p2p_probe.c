/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 1-4 */
/* p2p: */
/**
 * @file
 * MPI_Probe, Iprobe, Mprobe, Improbe, Mrecv and Imrecv among several messages: that a probe takes
 * nothing, and a matched one takes one message, of several that look alike, away from all that is
 * received later; and that wildcards find each sender's messages in order.
 */
#include "test/mpi/p2p.h"

#include <stdlib.h>

enum { EQUAL = 9, EACH = 60 };

/** Receives what was found. */
static void take(MPI_Message *message, int way, int source, int tag, MPI_Comm comm,
                 const p2p_buffer_t *b, MPI_Status *status)
{
    MPI_Request request;

    if (*message == MPI_MESSAGE_NULL) {
        TL_MPI(MPI_Recv(b->at, b->side.count, b->side.type, source, tag, comm, status));
    } else if (way % 2) {
        TL_MPI(MPI_Mrecv(b->at, b->side.count, b->side.type, message, status));
    } else {
        TL_MPI(MPI_Imrecv(b->at, b->side.count, b->side.type, message, &request));
        p2p_complete(&request, status, way / 2);
    }
    TL_CHECK(*message == MPI_MESSAGE_NULL, "the message is still there");
}

/**
 * Messages of one tag, of which those with odd numbers are matched by probe; others are received
 * meanwhile, and what was matched in reverse order at last.
 */
static void test_alike(MPI_Comm comm, int bytes)
{
    unsigned char *out = tl_alloc((size_t)EQUAL * (size_t)bytes), *in = tl_alloc((size_t)bytes);
    MPI_Message messages[EQUAL];
    MPI_Request sends[EQUAL];
    MPI_Status status;
    int n = 0;

    for (int i = 0; i < EQUAL; i++) {
        unsigned char *data = out + (size_t)i * (size_t)bytes;

        p2p_fill(data, (size_t)bytes, p2p_seed(tl_rank(), bytes, i));
        TL_MPI(MPI_Isend(data, bytes - i, MPI_BYTE, p2p_next(), 3, comm, &sends[i]));
    }
    for (int i = 0; i < EQUAL; i++) {
        if (i % 2) {
            messages[n] = p2p_find(2 + n % 2, p2p_before(), 3, comm, &status);
            n++;
            p2p_check_status(&status, p2p_before(), 3, (size_t)(bytes - i), "alike, Mprobe");
        } else {
            TL_MPI(MPI_Recv(in, bytes, MPI_BYTE, i % 4 ? p2p_before() : MPI_ANY_SOURCE, MPI_ANY_TAG,
                            comm, &status));
            p2p_check_status(&status, p2p_before(), 3, (size_t)(bytes - i), "alike, Recv");
            TL_CHECK(p2p_holds(in, (size_t)(bytes - i) / 8 * 8, p2p_seed(p2p_before(), bytes, i)),
                     "alike, message %d of %d bytes", i, bytes);
        }
    }
    while (n-- > 0) {
        int i = 2 * n + 1;

        TL_MPI(MPI_Mrecv(in, bytes, MPI_BYTE, &messages[n], &status));
        p2p_check_status(&status, p2p_before(), 3, (size_t)(bytes - i), "alike, Mrecv");
        TL_CHECK(p2p_holds(in, (size_t)(bytes - i) / 8 * 8, p2p_seed(p2p_before(), bytes, i)),
                 "alike, matched message %d of %d bytes", i, bytes);
    }
    TL_MPI(MPI_Waitall(EQUAL, sends, MPI_STATUSES_IGNORE));
    MPI_Barrier(comm);
    free(in);
    free(out);
}

static int traffic_bytes(int source, int i)
{
    tl_rng_t rng = tl_rng(tl_seed() + 77, (uint64_t)(source * EACH + i));
    int kind = (int)tl_range(&rng, 0, 9);

    return (int)(kind == 0  ? tl_range(&rng, 50000, 300000)
                 : kind < 3 ? tl_range(&rng, 4000, 9000)
                            : tl_range(&rng, 0, 200));
}

/** Everybody sends to everybody; who finds by wildcards finds each sender's in order. */
static void test_wildcards(MPI_Comm comm)
{
    int n = tl_size() * EACH, *seen = tl_alloc((size_t)tl_size() * sizeof(int));
    MPI_Request *sends = tl_alloc((size_t)n * sizeof(MPI_Request));
    unsigned char **data = tl_alloc(EACH * sizeof(*data));
    tl_rng_t rng = tl_rng(tl_seed(), (uint64_t)tl_rank());

    for (int i = 0; i < EACH; i++) {
        size_t bytes = (size_t)traffic_bytes(tl_rank(), i);

        data[i] = tl_alloc(bytes);
        p2p_fill(data[i], bytes, p2p_seed(tl_rank(), 0, i));
        for (int to = 0; to < tl_size(); to++) {
            TL_MPI(MPI_Isend(data[i], (int)bytes, MPI_BYTE, to, i % 7, comm,
                             &sends[i * tl_size() + to]));
        }
    }
    for (int k = 0; k < n; k++) {
        MPI_Status status;
        int way = (int)tl_range(&rng, 0, 3);
        MPI_Message message = p2p_find(way, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &status);
        int source = status.MPI_SOURCE, i = seen[source]++, bytes = traffic_bytes(source, i);
        p2p_buffer_t in = p2p_buffer(p2p_side(P2P_PLAIN, bytes));

        p2p_check_status(&status, source, i % 7, (size_t)bytes, "probe by wildcards");
        take(&message, k, source, i % 7, comm, &in, &status);
        p2p_check_status(&status, source, i % 7, (size_t)bytes, "received after probe");
        p2p_check(&in, (size_t)bytes, p2p_seed(source, 0, i), "received after probe");
        p2p_free(&in);
    }
    TL_MPI(MPI_Waitall(n, sends, MPI_STATUSES_IGNORE));
    for (int i = 0; i < EACH; i++)
        free(data[i]);
    free(data);
    free(sends);
    free(seen);
}

int main(int argc, char **argv)
{
    MPI_Comm comm;

    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    /* Where no message of the test library is. */
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    test_alike(comm, 20);
    test_alike(comm, 5000);
    test_alike(comm, 200000);
    test_wildcards(comm);
    MPI_Comm_free(&comm);
    return tl_finish();
}
