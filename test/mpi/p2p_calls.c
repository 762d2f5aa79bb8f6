/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 1-4 */
/* p2p: */
/**
 * @file
 * Every call that sends: blocking and not, standard, synchronous, ready and buffered, of every size
 * and layout, with another layout on the other side, to the next rank and to oneself; completed in
 * every way; what the status says; MPI_PROC_NULL; and that a synchronous send waits.
 */
#include "test/mpi/p2p.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MODES = 8, LONG = 50000, RANDOM_ROUNDS = 25 };

static const char *const mode_names[MODES] = {"Send",  "Ssend",  "Rsend",  "Bsend",
                                              "Isend", "Issend", "Irsend", "Ibsend"};

static bool buffered(int mode)
{
    return mode % 4 == 3;
}

static int next(int distance)
{
    return (tl_rank() + distance) % tl_size();
}

static int before(int distance)
{
    return (tl_rank() + tl_size() - distance) % tl_size();
}

/** Starts a send; the request of one that blocks is null. */
static MPI_Request start(int mode, const p2p_buffer_t *b, int to, int tag, MPI_Comm comm)
{
    MPI_Request r = MPI_REQUEST_NULL;
    const void *at = b->at;
    const int n = b->side.count;
    MPI_Datatype type = b->side.type;

    switch (mode) {
    case 0:
        TL_MPI(MPI_Send(at, n, type, to, tag, comm));
        break;
    case 1:
        TL_MPI(MPI_Ssend(at, n, type, to, tag, comm));
        break;
    case 2:
        TL_MPI(MPI_Rsend(at, n, type, to, tag, comm));
        break;
    case 3:
        TL_MPI(MPI_Bsend(at, n, type, to, tag, comm));
        break;
    case 4:
        TL_MPI(MPI_Isend(at, n, type, to, tag, comm, &r));
        break;
    case 5:
        TL_MPI(MPI_Issend(at, n, type, to, tag, comm, &r));
        break;
    case 6:
        TL_MPI(MPI_Irsend(at, n, type, to, tag, comm, &r));
        break;
    default:
        TL_MPI(MPI_Ibsend(at, n, type, to, tag, comm, &r));
    }
    return r;
}

/* ---- modes, sizes, layouts ---- */

/** One message in each of `modes`, all to the rank `distance` after this one. */
static void exchange(unsigned modes, tr_side_t (*side)(int index, bool sends), int index,
                     int distance, const char *what)
{
    p2p_buffer_t in[MODES], out[MODES];
    MPI_Request receives[MODES], sends[MODES];
    /* Open MPI takes no buffer of no bytes. */
    int to = next(distance), from = before(distance), size = 1;

    for (int m = 0; m < MODES; m++) {
        if ((modes >> m & 1) == 0)
            continue;
        in[m] = p2p_buffer(side(index, false));
        out[m] = p2p_buffer(side(index, true));
        p2p_write(&out[m], p2p_seed(tl_rank(), m, index));
        size += buffered(m) ? (int)out[m].bytes + MPI_BSEND_OVERHEAD : 0;
        TL_MPI(MPI_Irecv(in[m].at, in[m].side.count, in[m].side.type, from, m, MPI_COMM_WORLD,
                         &receives[m]));
    }
    void *space = tl_alloc((size_t)size);
    TL_MPI(MPI_Buffer_attach(space, size));
    /* Ready sends need receives that are there. */
    MPI_Barrier(MPI_COMM_WORLD);
    for (int m = 0; m < MODES; m++)
        if (modes >> m & 1)
            sends[m] = start(m, &out[m], to, m, MPI_COMM_WORLD);
    for (int m = 0; m < MODES; m++) {
        MPI_Status status;
        char name[100];

        if ((modes >> m & 1) == 0)
            continue;
        snprintf(name, sizeof(name), "%s, %s %d, distance %d", mode_names[m], what, index,
                 distance);
        p2p_complete(&receives[m], &status, m + index);
        p2p_check_status(&status, from, m, in[m].bytes, name);
        p2p_check(&in[m], in[m].bytes, p2p_seed(from, m, index), name);
        TL_CHECK(receives[m] == MPI_REQUEST_NULL, "%s: the request is still there", name);
        if (sends[m] != MPI_REQUEST_NULL)
            p2p_complete(&sends[m], &status, m + index + 1);
        p2p_check(&out[m], out[m].bytes, p2p_seed(tl_rank(), m, index), "what was sent");
        p2p_free(&in[m]);
        p2p_free(&out[m]);
    }
    void *detached;
    int detached_size = -1;

    TL_MPI(MPI_Buffer_detach(&detached, &detached_size));
    TL_CHECK(detached == space && detached_size == size, "%d bytes detached, not %d", detached_size,
             size);
    free(space);
}

/** The index says size and layout of the sender; the receiver has another one. */
static tr_side_t fixed_side(int index, bool sends)
{
    int shape = index % P2P_SHAPES, bytes = p2p_sizes[index / P2P_SHAPES];

    return p2p_side(sends ? shape : (shape + index / P2P_SHAPES) % P2P_SHAPES, bytes);
}

static void test_sizes(void)
{
    for (int s = 0; s < p2p_nsizes; s++) {
        for (int shape = 0; shape < P2P_SHAPES; shape++) {
            /* All modes of what is short, and by turns two of what is long, one that blocks. */
            unsigned modes = p2p_sizes[s] <= LONG ? 0xff : 0x11u << (shape + s) % 4;
            int index = s * P2P_SHAPES + shape;

            exchange(modes, fixed_side, index, 1, "size and layout");
            if (shape == s % P2P_SHAPES)
                exchange(modes, fixed_side, index, 0, "size and layout");
        }
    }
}

/** Types of many constructors, over elements with gaps that differ by side. */
static tr_side_t random_side(int index, bool sends)
{
    tl_rng_t rng = tl_rng(tl_seed(), (uint64_t)index);
    int n = (int)tl_range(&rng, 0, index % 8 == 0 ? 20000 : 600);

    rng = sends ? rng : tl_rng(tl_seed() + 1, (uint64_t)index);
    return tr_shape(&rng, (tr_element_t)(index % TR_ELEMENTS), n, sends ? TR_ORIGIN : 0);
}

static void test_types(void)
{
    for (int i = 0; i < RANDOM_ROUNDS * tl_factor(); i++)
        exchange(1u << i % 3 | 1u << (4 + i % 4), random_side, i, i % 2, "types");
}

/* ---- single calls ---- */

static void test_sendrecv(void)
{
    int to = next(1), from = before(1);

    for (int i = 0; i < p2p_nsizes; i++) {
        p2p_buffer_t out = p2p_buffer(p2p_side((p2p_shape_t)(i % P2P_SHAPES), p2p_sizes[i]));
        p2p_buffer_t in = p2p_buffer(p2p_side(P2P_PLAIN, p2p_sizes[i] + 8));
        MPI_Status status;

        p2p_write(&out, p2p_seed(tl_rank(), 1, i));
        TL_MPI(MPI_Sendrecv(out.at, out.side.count, out.side.type, to, i, in.at, in.side.count,
                            in.side.type, from, MPI_ANY_TAG, MPI_COMM_WORLD, &status));
        p2p_check_status(&status, from, i, out.bytes, "Sendrecv");
        p2p_check(&in, out.bytes, p2p_seed(from, 1, i), "Sendrecv");
        TL_MPI(MPI_Sendrecv_replace(out.at, out.side.count, out.side.type, to, i, from, i,
                                    MPI_COMM_WORLD, &status));
        p2p_check_status(&status, from, i, out.bytes, "Sendrecv_replace");
        p2p_check(&out, out.bytes, p2p_seed(from, 1, i), "Sendrecv_replace");
        p2p_free(&out);
        p2p_free(&in);
    }
}

/** Fewer data than there is room for, that end within an element. */
static void test_partial(void)
{
    int values[9], got[20], to = next(1), from = before(1), count;
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
    TL_MPI(MPI_Sendrecv(MPI_BOTTOM, 1, types[0], next(1), 0, MPI_BOTTOM, 1, types[1], before(1), 0,
                        MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    TL_CHECK(in[2] == 1.5 + before(1) && in[1] == 0 && in[0] == 3.5, "%g, %g, %g", in[0], in[1],
             in[2]);
    MPI_Type_free(&types[0]);
    MPI_Type_free(&types[1]);
}

static void check_nobody(const MPI_Status *status, const char *what)
{
    p2p_check_status(status, MPI_PROC_NULL, MPI_ANY_TAG, 0, what);
}

static void test_proc_null(void)
{
    p2p_buffer_t b = p2p_buffer(p2p_side(P2P_PLAIN, 100));
    MPI_Request request;
    MPI_Status status;

    for (int m = 0; m < MODES; m++) {
        request = start(m, &b, MPI_PROC_NULL, m, MPI_COMM_WORLD);
        TL_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
    TL_MPI(MPI_Recv(b.at, 100, MPI_BYTE, MPI_PROC_NULL, 3, MPI_COMM_WORLD, &status));
    check_nobody(&status, "Recv from nobody");
    TL_MPI(MPI_Irecv(b.at, 100, MPI_BYTE, MPI_PROC_NULL, MPI_ANY_TAG, MPI_COMM_WORLD, &request));
    TL_MPI(MPI_Wait(&request, &status));
    check_nobody(&status, "Irecv from nobody");
    TL_MPI(MPI_Sendrecv(b.at, 100, MPI_BYTE, MPI_PROC_NULL, 3, b.at, 100, MPI_BYTE, MPI_PROC_NULL,
                        3, MPI_COMM_WORLD, &status));
    check_nobody(&status, "Sendrecv with nobody");
    p2p_check(&b, 0, 0, "from nobody");
    p2p_free(&b);
    request = MPI_REQUEST_NULL;
    TL_MPI(MPI_Wait(&request, &status));
    p2p_check_empty(&status, "Wait of a null request");
}

/** A synchronous send is not complete before there is a receive, whatever comes in meanwhile. */
static void test_synchronous(void)
{
    int to = next(1), from = before(1);

    for (int i = 0; i < p2p_nsizes; i++) {
        p2p_buffer_t out = p2p_buffer(p2p_side((p2p_shape_t)(i % P2P_SHAPES), p2p_sizes[i]));
        p2p_buffer_t in = p2p_buffer(p2p_side(P2P_PLAIN, p2p_sizes[i]));
        MPI_Request request, token;
        int done = 0;

        p2p_write(&out, p2p_seed(tl_rank(), 0, i));
        TL_MPI(MPI_Issend(out.at, out.side.count, out.side.type, to, 0, MPI_COMM_WORLD, &request));
        for (int k = 0; k < 200 && !done; k++)
            TL_MPI(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
        TL_MPI(MPI_Sendrecv(NULL, 0, MPI_BYTE, to, 1, NULL, 0, MPI_BYTE, from, 1, MPI_COMM_WORLD,
                            MPI_STATUS_IGNORE));
        for (int k = 0; k < 200 && !done; k++)
            TL_MPI(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
        TL_CHECK(!done, "a synchronous send of %d bytes is complete without a receive",
                 p2p_sizes[i]);
        /* The receiver waits for the sender's word that it has looked. */
        TL_MPI(MPI_Isend(NULL, 0, MPI_BYTE, to, 2, MPI_COMM_WORLD, &token));
        TL_MPI(MPI_Recv(NULL, 0, MPI_BYTE, from, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        TL_MPI(MPI_Wait(&token, MPI_STATUS_IGNORE));
        TL_MPI(MPI_Recv(in.at, in.side.count, in.side.type, from, 0, MPI_COMM_WORLD,
                        MPI_STATUS_IGNORE));
        TL_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
        p2p_check(&in, in.bytes, p2p_seed(from, 0, i), "synchronous");
        p2p_free(&out);
        p2p_free(&in);
    }
}

/** Buffered sends are complete while nobody receives; detaching waits for all of them. */
static void test_buffered(void)
{
    enum { N = 20, BYTES = 20000 };
    int to = next(1), from = before(1), size = N * (BYTES + MPI_BSEND_OVERHEAD);
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

int main(int argc, char **argv)
{
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    test_proc_null();
    test_partial();
    test_bottom();
    test_synchronous();
    test_buffered();
    test_buffered_again();
    test_sendrecv();
    test_sizes();
    test_types();
    return tl_finish();
}
