/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2 */
/* p2p: */
/**
 * @file
 * A message whose send is over arrives, though its sender calls MPI no more, by TCP, too, whose
 * sockets have so little room here that nearly no message fits, and whose transport copies the
 * rest. The sender stays away from MPI until it is told by a datagram that the message is there.
 * Lengths, layouts, calls; several in a row. And rows of every length up to the first message that
 * does not leave at once, to a receiver that is away, so that any of them may be the one that the
 * sockets have taken in part.
 *
 * On one host, too, messages go by TCP. Nothing is copied for want of credit: no thread sends in
 * place of the sender.
 */
#include "test/mpi/p2p.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/** Most microseconds for which a receiver lets the socket fill. */
enum { LATE = 4000 };

enum { TAG = 7, ROUNDS = 2 };

/** Most messages in a row, and rows that end near the first one that waits. */
enum { MANY = 4000, EDGES = 12 };

typedef enum call { SEND, SSEND, ISEND_WAIT, ISEND_TEST, PERSISTENT, CALLS } call_t;

/** What is sent, and how many of it in a row. */
static const struct {
    p2p_shape_t shape;
    int bytes;
    int number;
} messages[] = {{P2P_PLAIN, 100, 400},     {P2P_PLAIN, 8000, 1},       {P2P_PLAIN, 3000, 20},
                {P2P_VECTOR_64, 8000, 2},  {P2P_PLAIN, 100000, 1},     {P2P_PLAIN, 400000, 1},
                {P2P_VECTOR_8, 400000, 1}, {P2P_VECTOR_64, 1500000, 1}};

enum { MESSAGES = sizeof(messages) / sizeof(messages[0]) };

/* ---- messages ---- */

static void send_one(call_t call, const p2p_buffer_t *b)
{
    const int to = 1 - tl_rank(), n = b->side.count;
    MPI_Request request;
    int flag = 0;

    switch (call) {
    case SEND:
        TL_MPI(MPI_Send(b->at, n, b->side.type, to, TAG, MPI_COMM_WORLD));
        return;
    case SSEND:
        TL_MPI(MPI_Ssend(b->at, n, b->side.type, to, TAG, MPI_COMM_WORLD));
        return;
    case PERSISTENT:
        TL_MPI(MPI_Send_init(b->at, n, b->side.type, to, TAG, MPI_COMM_WORLD, &request));
        TL_MPI(MPI_Start(&request));
        TL_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
        MPI_Request_free(&request);
        return;
    default:
        TL_MPI(MPI_Isend(b->at, n, b->side.type, to, TAG, MPI_COMM_WORLD, &request));
        while (call == ISEND_TEST && !flag)
            TL_MPI(MPI_Test(&request, &flag, MPI_STATUS_IGNORE));
        TL_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
}

static void receive_one(const p2p_buffer_t *b)
{
    MPI_Status status;

    TL_MPI(
        MPI_Recv(b->at, b->side.count, b->side.type, 1 - tl_rank(), TAG, MPI_COMM_WORLD, &status));
    p2p_check_status(&status, 1 - tl_rank(), TAG, b->bytes, "held");
}

static void run(int round, int which, call_t call)
{
    const bool sends = (round + which + (int)call) % 2 == tl_rank();
    p2p_buffer_t b = p2p_buffer(p2p_side(messages[which].shape, messages[which].bytes));

    if (!sends)
        usleep((useconds_t)((tl_seed() * 977 + (uint64_t)round * 313 + (uint64_t)which) % LATE));
    for (int i = 0; i < messages[which].number; i++) {
        const uint64_t seed = p2p_seed(round, which, i);

        if (sends) {
            p2p_write(&b, seed);
            send_one(call, &b);
        } else {
            receive_one(&b);
            p2p_check(&b, b.bytes, seed, "held");
        }
    }
    if (sends) {
        TL_CHECK(p2p_is_told() == 0,
                 "%d messages of %d bytes, call %d: the last one did not arrive",
                 messages[which].number, messages[which].bytes, (int)call);
    } else {
        p2p_tell(0);
    }
    p2p_free(&b);
}

/* ---- as many as there is room for ---- */

/** Sends at most so many messages, and no more behind one that does not leave at once. Returns how
 *  many the next row is to have: one less where there was such a message, else one more. */
static int fill(const p2p_buffer_t *b, int most)
{
    MPI_Request request = MPI_REQUEST_NULL;
    int n = 0, left = 1;

    while (left && n < most) {
        TL_MPI(MPI_Isend(b->at, b->side.count, b->side.type, 1, TAG, MPI_COMM_WORLD, &request));
        TL_MPI(MPI_Test(&request, &left, MPI_STATUS_IGNORE));
        n++;
    }
    p2p_tell(n);
    TL_CHECK(!left || p2p_is_told() == n,
             "%d messages of %zu bytes have left: the last one has not", n, b->bytes);
    TL_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
    if (!left)
        (void)p2p_is_told();
    return left ? n + 1 : n - 1;
}

/** The receiver is away until the sender is. */
static void drain(p2p_buffer_t *b)
{
    const int n = p2p_is_told();

    for (int i = 0; i < n; i++) {
        receive_one(b);
        p2p_check(b, b->bytes, p2p_seed(0, (int)b->bytes, 0), "a row");
        p2p_wipe(b);
    }
    p2p_tell(n);
}

/** Twice to find the edge, since the first time the receiver's kernel still takes more. Not where a
 *  protocol is forced by which messages wait for their receiver. */
static void test_edge(p2p_shape_t shape, int bytes)
{
    p2p_buffer_t b = p2p_buffer(p2p_side(shape, bytes));
    int most = tl_rank() == 0 ? MANY : 0;

    if (tl_rank() == 0)
        p2p_write(&b, p2p_seed(0, bytes, 0));
    for (int i = 0; i < EDGES; i++)
        if (tl_rank() == 1)
            drain(&b);
        else
            most = fill(&b, i == 1 ? MANY : most);
    TL_CHECK(most < MANY || !p2p_layer("superpipe") || !p2p_is_one_host(),
             "there is room for %d messages of %d bytes", most, bytes);
    p2p_free(&b);
}

int main(int argc, char **argv)
{
    setenv("OMPI_MCA_pml_superpipe_buffered", "0", 1);
    setenv("UCX_TCP_SNDBUF", "16384", 1);
    setenv("UCX_TCP_RCVBUF", "16384", 1);
    if (p2p_is_one_host()) {
        setenv("UCX_TLS", "tcp,self", 1);
        setenv("UCX_NET_DEVICES", "lo", 1);
    }
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    tl_need_ranks(2, 2);
    p2p_ears_open();
    if (!p2p_waits()) {
        test_edge(P2P_PLAIN, 60);
        test_edge(P2P_PLAIN, 3000);
        test_edge(P2P_VECTOR_64, 3000);
    }
    for (int round = 0; round < ROUNDS * tl_factor(); round++)
        for (int which = 0; which < MESSAGES; which++)
            run(round, which, (call_t)((round + which) % CALLS));
    p2p_ears_close();
    return tl_finish();
}
