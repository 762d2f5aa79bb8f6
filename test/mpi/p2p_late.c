/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-4 */
/* p2p: */
/**
 * @file
 * Receivers that come late: some 200 MB of long messages and thousands of short ones are announced
 * while nobody receives; senders compute or sleep by turns; and a rank that is away from MPI, with
 * all that is for it, does not hinder the others.
 */
#include "test/mpi/p2p.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { LONGS = 100, SHORTS = 3000, LONG = 2 << 20, SHORT = 700, AWAY = 30, ROUNDS = 40 };

static int next(void)
{
    return (tl_rank() + 1) % tl_size();
}

static int before(void)
{
    return (tl_rank() + tl_size() - 1) % tl_size();
}

/* ---- all unexpected ---- */

/** Where in a common buffer a message begins: they overlap, and differ all the same. */
static size_t place(int i)
{
    return (size_t)i * 24;
}

static int short_bytes(int i)
{
    return i * 7 % SHORT;
}

/** One side announces all; the other has computed meanwhile, and receives the short ones last. */
static void test_unexpected(bool sends)
{
    /* Emulated networks take minutes for it. */
    const int longs = tl_slow() ? LONGS / 20 : LONGS, n = longs + SHORTS;
    size_t bytes = LONG + place(n);
    unsigned char *data = tl_alloc(bytes), *in = tl_alloc(LONG);
    MPI_Request *requests = tl_alloc((size_t)n * sizeof(*requests));
    int peer = sends ? next() : before();

    /* Both know what is sent. */
    p2p_fill(data, bytes, p2p_seed(sends ? tl_rank() : before(), 0, 0));
    if (!sends)
        usleep(100000);
    for (int i = 0; sends && i < n; i++) {
        TL_MPI(MPI_Isend(data + place(i), i < longs ? LONG : short_bytes(i), MPI_BYTE, peer, i,
                         MPI_COMM_WORLD, &requests[i]));
    }
    if (sends) {
        TL_MPI(MPI_Send(NULL, 0, MPI_BYTE, peer, n, MPI_COMM_WORLD));
        TL_MPI(MPI_Waitall(n, requests, MPI_STATUSES_IGNORE));
    } else {
        TL_MPI(MPI_Recv(NULL, 0, MPI_BYTE, peer, n, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    }
    for (int i = 0; !sends && i < n; i++) {
        int want = i < longs ? LONG : short_bytes(i);
        MPI_Status status;

        TL_MPI(MPI_Recv(in, LONG, MPI_BYTE, i % 2 ? peer : MPI_ANY_SOURCE, i, MPI_COMM_WORLD,
                        &status));
        p2p_check_status(&status, peer, i, (size_t)want, "unexpected");
        TL_BYTES(in, data + place(i), (size_t)want, "unexpected message %d", i);
    }
    free(requests);
    free(in);
    free(data);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* ---- by turns ---- */

static void compute(int loops)
{
    volatile double x = 1;

    for (int i = 0; i < loops; i++)
        x = x * 1.000001 + 1e-9;
}

/** Each rank computes or sleeps before it sends, before it receives, or between. */
static void test_turns(void)
{
    tl_rng_t rng = tl_rng(tl_seed(), (uint64_t)tl_rank());

    for (int i = 0; i < ROUNDS * tl_factor(); i++) {
        int bytes = p2p_sizes[i % p2p_nsizes];
        p2p_buffer_t out = p2p_buffer(p2p_side((p2p_shape_t)(i % P2P_SHAPES), bytes));
        p2p_buffer_t in = p2p_buffer(p2p_side((p2p_shape_t)(i / 3 % P2P_SHAPES), bytes));
        MPI_Request requests[2];
        int when = (int)tl_range(&rng, 0, 5);

        p2p_write(&out, p2p_seed(tl_rank(), 1, i));
        for (int step = 0; step < 3; step++) {
            if (step == when)
                usleep(2000);
            else if (step == when - 3)
                compute(300000);
            if (step == 0) {
                TL_MPI(MPI_Isend(out.at, out.side.count, out.side.type, next(), 1, MPI_COMM_WORLD,
                                 &requests[0]));
            } else if (step == 1) {
                TL_MPI(MPI_Irecv(in.at, in.side.count, in.side.type, before(), 1, MPI_COMM_WORLD,
                                 &requests[1]));
            }
        }
        TL_MPI(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
        p2p_check(&in, in.bytes, p2p_seed(before(), 1, i), "by turns");
        p2p_free(&out);
        p2p_free(&in);
    }
}

/* ---- one is away ---- */

/** The last rank is out of MPI until all others have exchanged messages of all sizes, behind what
 *  they have sent to it. Were it needed, they would wait forever. */
static void test_away(void)
{
    const int last = tl_size() - 1, others = last;
    atomic_int *done = tl_share(sizeof(*done));
    unsigned char *data = tl_alloc(LONG + place(AWAY * 4)), *in = tl_alloc(LONG);
    MPI_Request sends[2 * AWAY];
    MPI_Comm here;

    MPI_Comm_split(MPI_COMM_WORLD, tl_rank() == last, 0, &here);
    p2p_fill(data, LONG + place(AWAY * 4), 3);
    if (tl_rank() == last)
        while (atomic_load(done) < others)
            usleep(1000);
    for (int i = 0; tl_rank() != last && i < 2 * AWAY; i++) {
        TL_MPI(MPI_Isend(data + place(i), i % 2 ? LONG >> i % 7 : short_bytes(i), MPI_BYTE, last, i,
                         MPI_COMM_WORLD, &sends[i]));
    }
    for (int i = 0; tl_rank() != last && i < p2p_nsizes; i++) {
        p2p_buffer_t out = p2p_buffer(p2p_side((p2p_shape_t)(i % P2P_SHAPES), p2p_sizes[i]));
        p2p_buffer_t got = p2p_buffer(p2p_side(P2P_PLAIN, p2p_sizes[i]));
        int to = (tl_rank() + 1) % others, from = (tl_rank() + others - 1) % others;

        p2p_write(&out, p2p_seed(tl_rank(), 2, i));
        TL_MPI(MPI_Sendrecv(out.at, out.side.count, out.side.type, to, i, got.at, p2p_sizes[i],
                            MPI_BYTE, from, i, here, MPI_STATUS_IGNORE));
        p2p_check(&got, got.bytes, p2p_seed(from, 2, i), "while one is away");
        p2p_free(&out);
        p2p_free(&got);
    }
    if (tl_rank() != last) {
        MPI_Barrier(here);
        atomic_fetch_add(done, 1);
        TL_MPI(MPI_Waitall(2 * AWAY, sends, MPI_STATUSES_IGNORE));
    }
    for (int i = 2 * AWAY * others - 1; tl_rank() == last && i >= 0; i--) {
        int k = i % (2 * AWAY), want = k % 2 ? LONG >> k % 7 : short_bytes(k);

        TL_MPI(MPI_Recv(in, LONG, MPI_BYTE, i / (2 * AWAY), k, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        TL_BYTES(in, data + place(k), (size_t)want, "message %d for who was away", k);
    }
    free(data);
    free(in);
    munmap(done, sizeof(atomic_int));
    MPI_Comm_free(&here);
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    test_turns();
    /* In pairs; where the number of ranks is odd the last one has none. */
    if (tl_rank() < tl_size() / 2 * 2)
        test_unexpected(tl_rank() % 2 == 0);
    else
        MPI_Barrier(MPI_COMM_WORLD);
    if (tl_one_host())
        test_away();
    return tl_finish();
}
