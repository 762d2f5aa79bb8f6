/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 1-4 */
/* p2p: */
/**
 * @file
 * Calls that p2p_ways does not make one by one: data that end within an element, addresses in
 * types, persistent requests among others, many buffered sends, and receives that are cancelled at
 * any moment while a message comes.
 */
#include "test/mpi/p2p.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RACES = 50 };

/** Of its own, so that wildcards meet nothing else. */
static MPI_Comm comm;

/** Fewer data than there is room for, that end within an element. */
static void test_partial(void)
{
    int values[9], got[20], to = p2p_next(), from = p2p_before(), count;
    MPI_Datatype pair, pairs;
    MPI_Request request;
    MPI_Status status;

    for (int i = 0; i < 9; i++)
        values[i] = 100 * tl_rank() + i;
    memset(got, -1, sizeof(got));
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_create_resized(pair, 0, 2 * sizeof(int), &pairs);
    MPI_Type_commit(&pairs);
    TL_MPI(MPI_Irecv(got, 10, pairs, from, 4, MPI_COMM_WORLD, &request));
    TL_MPI(MPI_Send(values, 9, MPI_INT, to, 4, MPI_COMM_WORLD));
    TL_MPI(MPI_Wait(&request, &status));
    TL_MPI(MPI_Get_count(&status, pairs, &count));
    TL_CHECK(count == MPI_UNDEFINED, "9 ints are %d pairs", count);
    TL_MPI(MPI_Get_elements(&status, pairs, &count));
    TL_CHECK(count == 9, "9 ints are %d elements", count);
    for (int i = 0; i < 20; i++)
        TL_CHECK(got[i] == (i < 9 ? 100 * from + i : -1), "got[%d] is %d", i, got[i]);
    MPI_Type_free(&pair);
    MPI_Type_free(&pairs);
}

/** Addresses in the types. */
static void test_bottom(void)
{
    double out[3] = {1.5 + tl_rank(), 2.5, 3.5}, in[3] = {0, 0, 0};
    MPI_Aint places[2][2];
    MPI_Datatype types[2];
    int lengths[] = {1, 1};

    MPI_Get_address(&out[0], &places[0][0]);
    MPI_Get_address(&out[2], &places[0][1]);
    MPI_Get_address(&in[2], &places[1][0]);
    MPI_Get_address(&in[0], &places[1][1]);
    for (int i = 0; i < 2; i++) {
        MPI_Type_create_hindexed(2, lengths, places[i], MPI_DOUBLE, &types[i]);
        MPI_Type_commit(&types[i]);
    }
    TL_MPI(MPI_Sendrecv(MPI_BOTTOM, 1, types[0], p2p_next(), 0, MPI_BOTTOM, 1, types[1],
                        p2p_before(), 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    TL_CHECK(in[2] == 1.5 + p2p_before() && in[1] == 0 && in[0] == 3.5, "%g, %g, %g", in[0], in[1],
             in[2]);
    MPI_Type_free(&types[0]);
    MPI_Type_free(&types[1]);
}

/** Buffered sends are complete while nobody receives; detaching waits for all of them. */
static void test_buffered(void)
{
    enum { N = 20, BYTES = 20000 };
    int to = p2p_next(), from = p2p_before(), size = N * (BYTES + MPI_BSEND_OVERHEAD);
    void *space = tl_alloc((size_t)size), *detached;
    unsigned char *data = tl_alloc(BYTES);
    MPI_Request receives[N];
    unsigned char *in = tl_alloc((size_t)N * BYTES);

    TL_MPI(MPI_Buffer_attach(space, size));
    for (int i = 0; i < N; i++) {
        p2p_fill(data, BYTES, p2p_seed(tl_rank(), 5, i));
        TL_MPI(MPI_Bsend(data, BYTES, MPI_BYTE, to, 5, MPI_COMM_WORLD));
    }
    memset(data, 0, BYTES);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < N; i++) {
        TL_MPI(MPI_Irecv(in + (size_t)i * BYTES, BYTES, MPI_BYTE, from, 5, MPI_COMM_WORLD,
                         &receives[i]));
    }
    TL_MPI(MPI_Buffer_detach(&detached, &size));
    memset(space, 0, (size_t)size);
    TL_MPI(MPI_Waitall(N, receives, MPI_STATUSES_IGNORE));
    for (int i = 0; i < N; i++) {
        TL_CHECK(p2p_holds(in + (size_t)i * BYTES, BYTES, p2p_seed(from, 5, i)),
                 "buffered message %d", i);
    }
    free(in);
    free(data);
    free(space);
}

/** The room of a buffered message can be had again when its receiver has said that it is there. */
static void test_buffered_again(void)
{
    enum { N = 10, BYTES = 20000, AWAY_USEC = 5000 };
    const int last = tl_size() - 1;
    int size = BYTES + MPI_BSEND_OVERHEAD;
    void *space = tl_alloc((size_t)size), *detached;
    unsigned char *data = tl_alloc(BYTES);

    TL_MPI(MPI_Buffer_attach(space, size));
    for (int i = 0; i < N; i++) {
        if (tl_rank() == 0)
            TL_MPI(MPI_Bsend(data, BYTES, MPI_BYTE, last, 5, MPI_COMM_WORLD));
        if (tl_rank() == last) {
            TL_MPI(MPI_Recv(data, BYTES, MPI_BYTE, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            TL_MPI(MPI_Send(NULL, 0, MPI_BYTE, 0, 6, MPI_COMM_WORLD));
        }
        if (tl_rank() == 0) {
            usleep(AWAY_USEC);
            TL_MPI(MPI_Recv(NULL, 0, MPI_BYTE, last, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        }
    }
    TL_MPI(MPI_Buffer_detach(&detached, &size));
    free(data);
    free(space);
}

/** Active ones among those that are inactive, null, or to nobody. */
static void test_persistent(void)
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

static bool was_cancelled(const MPI_Status *status)
{
    int cancelled = 0;

    TL_MPI(MPI_Test_cancelled(status, &cancelled));
    return cancelled;
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
        TL_MPI(MPI_Irecv(first.at, 200000, MPI_BYTE, p2p_before(), 3, comm, &receive));
        TL_MPI(MPI_Isend(out.at, bytes, MPI_BYTE, p2p_next(), 3, comm, &send));
        for (int k = (int)tl_range(&rng, 0, 30); k > 0; k--)
            TL_MPI(MPI_Iprobe(p2p_before(), 98, comm, &done, MPI_STATUS_IGNORE));
        TL_MPI(MPI_Cancel(&receive));
        TL_MPI(MPI_Wait(&receive, &status));
        bool again = was_cancelled(&status);

        if (again) {
            TL_MPI(MPI_Recv(second.at, second.side.count, second.side.type, p2p_before(), 3, comm,
                            &status));
        }
        p2p_check_status(&status, p2p_before(), 3, (size_t)bytes, "race with cancel");
        p2p_check(&first, again ? 0 : (size_t)bytes, p2p_seed(p2p_before(), 3, i),
                  "cancelled or not");
        p2p_check(&second, again ? (size_t)bytes : 0, p2p_seed(p2p_before(), 3, i),
                  "second receive");
        TL_MPI(MPI_Wait(&send, MPI_STATUS_IGNORE));
    }
    p2p_free(&first);
    p2p_free(&second);
    p2p_free(&out);
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    setenv("OMPI_MCA_pml_superpipe_cost", "latency=20000", 1);
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    test_partial();
    test_bottom();
    test_persistent();
    test_buffered();
    test_buffered_again();
    test_cancel_race();
    MPI_Comm_free(&comm);
    return tl_finish();
}
