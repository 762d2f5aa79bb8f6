/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 1-4 */
/* p2p: */
/**
 * @file
 * Persistent requests of all kinds, of several sizes and layouts, started many times one by one and
 * together; inactive ones among those that are waited for; requests freed while they are active.
 */
#include "test/mpi/p2p.h"

#include <stdio.h>
#include <stdlib.h>

enum { MODES = 4, SIZES = 6, N = MODES * SIZES, ROUNDS = 30 };

static const int sizes[SIZES] = {0, 8, 1000, 8195, 65536, 300001};

/** Is the request inactive, so that it is complete at once and says nothing? */
static void check_inactive(MPI_Request *requests, int n)
{
    MPI_Status *statuses = tl_alloc((size_t)n * sizeof(*statuses));
    int done = 0, index = 0, indices[N];

    TL_MPI(MPI_Waitall(n, requests, statuses));
    for (int i = 0; i < n; i++) {
        p2p_check_empty(&statuses[i], "Waitall of inactive requests");
        TL_CHECK(requests[i] != MPI_REQUEST_NULL, "request %d is gone", i);
    }
    /* pml/ucx waits forever for one that was never started. */
    if (!p2p_layer("ucx")) {
        TL_MPI(MPI_Wait(&requests[0], statuses));
        p2p_check_empty(statuses, "Wait of an inactive request");
        TL_MPI(MPI_Test(&requests[n - 1], &done, statuses));
        TL_CHECK(done, "Test of an inactive request");
        p2p_check_empty(statuses, "Test of an inactive request");
    }
    TL_MPI(MPI_Waitany(n, requests, &index, statuses));
    TL_CHECK(index == MPI_UNDEFINED, "Waitany of inactive requests says %d", index);
    index = done = 0;
    TL_MPI(MPI_Testany(n, requests, &index, &done, statuses));
    TL_CHECK(done && index == MPI_UNDEFINED, "Testany of inactive requests says %d", index);
    TL_MPI(MPI_Waitsome(n, requests, &index, indices, statuses));
    TL_CHECK(index == MPI_UNDEFINED, "Waitsome of inactive requests says %d", index);
    done = 0;
    TL_MPI(MPI_Request_get_status(requests[0], &done, statuses));
    TL_CHECK(done, "Request_get_status of an inactive request");
    free(statuses);
}

static void init_send(int i, const p2p_buffer_t *b, MPI_Request *r)
{
    int (*const init[MODES])(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *) = {
        MPI_Send_init, MPI_Ssend_init, MPI_Rsend_init, MPI_Bsend_init};
    int mode = i % MODES;

    /* ob1 sends anything when it starts one of MPI_Bsend_init again that is not eager. */
    if (mode == 3 && b->bytes > 500 && p2p_layer("ob1"))
        mode = 0;
    TL_MPI(init[mode](b->at, b->side.count, b->side.type, p2p_next(), i, MPI_COMM_WORLD, r));
}

/** Some by wildcard, which no other can match since the tag is one of a kind. */
static void init_receive(int i, const p2p_buffer_t *b, MPI_Request *r)
{
    TL_MPI(MPI_Recv_init(b->at, b->side.count, b->side.type, i % 3 ? p2p_before() : MPI_ANY_SOURCE,
                         i, MPI_COMM_WORLD, r));
}

static void start(MPI_Request *requests, int n, bool together)
{
    if (together) {
        TL_MPI(MPI_Startall(n, requests));
        return;
    }
    for (int i = n - 1; i >= 0; i--)
        TL_MPI(MPI_Start(&requests[i]));
}

/** Completes all requests in one of several ways, which leave them inactive. */
static void finish(MPI_Request *requests, MPI_Status *statuses, int how)
{
    int left = N, n, index, indices[N], all = 0;
    MPI_Status some[N];

    if (how % 5 == 0) {
        TL_MPI(MPI_Waitall(N, requests, statuses));
        return;
    }
    while (how % 5 == 1 && !all)
        TL_MPI(MPI_Testall(N, requests, &all, statuses));
    while (how % 5 == 2 && left > 0) {
        TL_MPI(MPI_Waitany(N, requests, &index, &some[0]));
        statuses[index] = some[0];
        left--;
    }
    while (how % 5 == 3 && left > 0) {
        TL_MPI(MPI_Testsome(N, requests, &n, indices, some));
        for (int i = 0; i < n; i++)
            statuses[indices[i]] = some[i];
        left -= n;
    }
    for (int i = N - 1; how % 5 == 4 && i >= 0; i--)
        TL_MPI(MPI_Wait(&requests[i], &statuses[i]));
}

static void test_rounds(void)
{
    static p2p_buffer_t in[N], out[N];
    static MPI_Request receives[N], sends[N];
    static MPI_Status statuses[N];
    int space_size = 0;

    for (int i = 0; i < N; i++) {
        int bytes = sizes[i / MODES];

        in[i] = p2p_buffer(p2p_side((p2p_shape_t)(i % P2P_SHAPES), bytes));
        out[i] = p2p_buffer(p2p_side((p2p_shape_t)(i * 3 % P2P_SHAPES), bytes));
        init_receive(i, &in[i], &receives[i]);
        init_send(i, &out[i], &sends[i]);
        space_size += bytes + MPI_BSEND_OVERHEAD;
    }
    void *space = tl_alloc((size_t)space_size);
    TL_MPI(MPI_Buffer_attach(space, space_size));
    check_inactive(receives, N);
    check_inactive(sends, N);
    for (int round = 0; round < ROUNDS * tl_factor(); round++) {
        for (int i = 0; i < N; i++) {
            p2p_wipe(&in[i]);
            p2p_write(&out[i], p2p_seed(tl_rank(), i, round));
        }
        start(receives, N, round % 2);
        MPI_Barrier(MPI_COMM_WORLD);
        start(sends, N, round / 2 % 2);
        finish(receives, statuses, round);
        for (int i = 0; i < N; i++) {
            char what[60];

            snprintf(what, sizeof(what), "round %d, request %d", round, i);
            p2p_check_status(&statuses[i], p2p_before(), i, in[i].bytes, what);
            p2p_check(&in[i], in[i].bytes, p2p_seed(p2p_before(), i, round), what);
        }
        finish(sends, statuses, round + 2);
        TL_MPI(MPI_Buffer_detach(&space, &space_size));
        TL_MPI(MPI_Buffer_attach(space, space_size));
    }
    check_inactive(receives, N);
    check_inactive(sends, N);
    TL_MPI(MPI_Buffer_detach(&space, &space_size));
    free(space);
    for (int i = 0; i < N; i++) {
        TL_MPI(MPI_Request_free(&receives[i]));
        TL_MPI(MPI_Request_free(&sends[i]));
        TL_CHECK(receives[i] == MPI_REQUEST_NULL, "a freed request is still there");
        p2p_free(&in[i]);
        p2p_free(&out[i]);
    }
}

/** Active ones among those that are inactive, null, or to nobody. */
static void test_mixed(void)
{
    MPI_Request requests[5];
    MPI_Status statuses[5];
    long in[2] = {0, 0}, out[2] = {0, 0};

    TL_MPI(MPI_Recv_init(&in[0], 1, MPI_LONG, p2p_before(), 0, MPI_COMM_WORLD, &requests[0]));
    TL_MPI(MPI_Recv_init(&in[1], 1, MPI_LONG, p2p_before(), 1, MPI_COMM_WORLD, &requests[1]));
    TL_MPI(MPI_Recv_init(&in[1], 1, MPI_LONG, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &requests[3]));
    TL_MPI(MPI_Send_init(&out[1], 1, MPI_LONG, p2p_next(), 1, MPI_COMM_WORLD, &requests[4]));
    for (int round = 0; round < 20; round++) {
        requests[2] = MPI_REQUEST_NULL;
        out[1] = 100 * tl_rank() + round;
        in[1] = -1;
        TL_MPI(MPI_Start(&requests[1]));
        TL_MPI(MPI_Startall(2, &requests[3]));
        TL_MPI(MPI_Waitall(5, requests, statuses));
        p2p_check_empty(&statuses[0], "inactive");
        p2p_check_status(&statuses[1], p2p_before(), 1, sizeof(long), "active");
        p2p_check_empty(&statuses[2], "null");
        p2p_check_status(&statuses[3], MPI_PROC_NULL, MPI_ANY_TAG, 0, "to nobody");
        TL_CHECK(in[1] == 100 * p2p_before() + round && in[0] == 0, "%ld and %ld", in[1], in[0]);
    }
    for (int i = 0; i < 5; i++)
        if (requests[i] != MPI_REQUEST_NULL)
            TL_MPI(MPI_Request_free(&requests[i]));
}

/** Freed while active, the transfer goes on: persistent or not, sends and receives. */
static void test_freed(void)
{
    for (int i = 0; i < 3 * p2p_nsizes; i++) {
        int bytes = p2p_sizes[i / 3];
        p2p_buffer_t out = p2p_buffer(p2p_side((p2p_shape_t)(i % P2P_SHAPES), bytes));
        p2p_buffer_t in = p2p_buffer(p2p_side(P2P_PLAIN, bytes));
        MPI_Request receive, send;

        p2p_write(&out, p2p_seed(tl_rank(), 7, i));
        TL_MPI(MPI_Recv_init(in.at, bytes, MPI_BYTE, p2p_before(), 7, MPI_COMM_WORLD, &receive));
        TL_MPI(MPI_Start(&receive));
        switch (i % 3) {
        case 0:
            TL_MPI(MPI_Send_init(out.at, out.side.count, out.side.type, p2p_next(), 7,
                                 MPI_COMM_WORLD, &send));
            TL_MPI(MPI_Start(&send));
            break;
        case 1:
            TL_MPI(MPI_Ssend_init(out.at, out.side.count, out.side.type, p2p_next(), 7,
                                  MPI_COMM_WORLD, &send));
            TL_MPI(MPI_Start(&send));
            break;
        default:
            TL_MPI(MPI_Isend(out.at, out.side.count, out.side.type, p2p_next(), 7, MPI_COMM_WORLD,
                             &send));
        }
        TL_MPI(MPI_Request_free(&send));
        TL_CHECK(send == MPI_REQUEST_NULL, "a freed send is still there");
        TL_MPI(MPI_Wait(&receive, MPI_STATUS_IGNORE));
        p2p_check(&in, in.bytes, p2p_seed(p2p_before(), 7, i), "from a send that was freed");
        TL_MPI(MPI_Request_free(&receive));
        /* All have what was sent, so the buffers are free. */
        MPI_Barrier(MPI_COMM_WORLD);
        p2p_free(&out);
        p2p_free(&in);
    }
}

/** Nobody waits for the receive: that it is over is seen in memory only, while MPI is called. */
static void test_freed_receive(void)
{
    for (int i = 0; i < 2 * p2p_nsizes; i++) {
        int bytes = p2p_sizes[i / 2], flag;
        unsigned char *in = tl_alloc((size_t)bytes), *out = tl_alloc((size_t)bytes);
        MPI_Request receive, send;

        p2p_fill(out, (size_t)bytes, p2p_seed(tl_rank(), 8, i));
        if (i % 2) {
            TL_MPI(MPI_Irecv(in, bytes, MPI_BYTE, p2p_before(), 8, MPI_COMM_WORLD, &receive));
        } else {
            TL_MPI(MPI_Recv_init(in, bytes, MPI_BYTE, p2p_before(), 8, MPI_COMM_WORLD, &receive));
            TL_MPI(MPI_Start(&receive));
        }
        TL_MPI(MPI_Request_free(&receive));
        TL_MPI(MPI_Isend(out, bytes, MPI_BYTE, p2p_next(), 8, MPI_COMM_WORLD, &send));
        while (!p2p_holds(in, (size_t)bytes, p2p_seed(p2p_before(), 8, i)))
            TL_MPI(MPI_Iprobe(MPI_ANY_SOURCE, 9, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
        TL_MPI(MPI_Wait(&send, MPI_STATUS_IGNORE));
        MPI_Barrier(MPI_COMM_WORLD);
        free(in);
        free(out);
    }
}

int main(int argc, char **argv)
{
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    test_mixed();
    test_freed();
    test_freed_receive();
    test_rounds();
    return tl_finish();
}
