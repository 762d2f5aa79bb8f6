/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 4-5 */
/* p2p: auto eager */
/* mpirun: --mca pml_superpipe_memory 1 --mca pml_superpipe_buffered 4096 */
/**
 * @file
 * Many send much more to one process than it may keep for messages without a receive, and it
 * receives nothing until all is sent. What it keeps stays within the bound, but for the headers of
 * the others; the sends end all the same, since what lacks credit is copied, every sender has a
 * part of the room each time, and nothing is lost or changed. Copies have room for the messages of
 * one round: it is given back for the next.
 */
#include "test/mpi/p2p.h"

#include <stdlib.h>

#include "test/mpi/counter.h"

/** Bytes that pml_superpipe_memory allows. */
enum { BOUND = 1 << 20, HEADER = 128 };
enum { RECEIVER = 0, ROUNDS = 3, MESSAGES = 1200, LONGEST = 3000, END = MESSAGES };

static int bytes_of(int i)
{
    return 1000 + i * 7 % (LONGEST - 1000);
}

static uint64_t seed_of(int source, int round, int i)
{
    return p2p_seed(source, i, round);
}

/* ---- who sends ---- */

/** The standard lets these sends wait for their receives, which come when all is sent; layers that
 *  copy what may not be sent do not. */
static void send_all(int round)
{
    unsigned char data[LONGEST];

    for (int i = 0; i < MESSAGES; i++) {
        p2p_fill(data, (size_t)bytes_of(i), seed_of(tl_rank(), round, i));
        TL_MPI(MPI_Send(data, bytes_of(i), MPI_BYTE, RECEIVER, i, MPI_COMM_WORLD));
    }
    TL_MPI(MPI_Send(NULL, 0, MPI_BYTE, RECEIVER, END, MPI_COMM_WORLD));
}

static void check_sender(const counter_t *no_credit, unsigned long long before, int round)
{
    const unsigned long long n = counter_read(no_credit) - before;

    TL_CHECK(n > 0, "round %d: there was credit for all", round);
    TL_CHECK(n < MESSAGES, "round %d: there was credit for none", round);
    /* A fifth of all takes half of the room: more than the part of one. */
    TL_CHECK(MESSAGES - n < MESSAGES / 5, "round %d: there was credit for %llu, more than a share",
             round, MESSAGES - n);
}

/* ---- who receives ---- */

/** By tags from the last one down, so that what came first is kept longest. */
static void receive_all(int round)
{
    unsigned char in[LONGEST];
    MPI_Status status;

    /* The last message of each: all envelopes are here. */
    for (int s = 1; s < tl_size(); s++)
        TL_MPI(MPI_Recv(NULL, 0, MPI_BYTE, s, END, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    for (int i = MESSAGES - 1; i >= 0; i--) {
        for (int s = 1; s < tl_size(); s++) {
            TL_MPI(MPI_Recv(in, LONGEST, MPI_BYTE, i % 2 ? s : MPI_ANY_SOURCE, i, MPI_COMM_WORLD,
                            &status));
            p2p_check_status(&status, i % 2 ? s : status.MPI_SOURCE, i, (size_t)bytes_of(i),
                             "kept");
            TL_CHECK(p2p_holds(in, (size_t)bytes_of(i), seed_of(status.MPI_SOURCE, round, i)),
                     "round %d: message %d from %d", round, i, status.MPI_SOURCE);
        }
    }
}

static void check_receiver(const counter_t *kept)
{
    const unsigned long long most = counter_read(kept);
    const int headers = MESSAGES * (tl_size() - 1);

    TL_CHECK(most <= (unsigned long long)(BOUND + headers * HEADER + BOUND / 4),
             "%llu bytes were kept, not %d and %d headers at most", most, BOUND, headers);
    TL_CHECK(most >= BOUND / 4, "only %llu of %d bytes were used", most, BOUND);
}

int main(int argc, char **argv)
{
    counter_t *no_credit, *kept;

    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    no_credit = counter_begin("pml_superpipe_no_credit");
    kept = counter_begin("pml_superpipe_unexpected_bytes");
    for (int round = 0; round < ROUNDS; round++) {
        const unsigned long long before = counter_read(no_credit);

        if (tl_rank() == RECEIVER)
            receive_all(round);
        else
            send_all(round);
        MPI_Barrier(MPI_COMM_WORLD);
        if (tl_rank() != RECEIVER && no_credit != NULL)
            check_sender(no_credit, before, round);
    }
    if (tl_rank() == RECEIVER && kept != NULL)
        check_receiver(kept);
    counter_end(no_credit);
    counter_end(kept);
    return tl_finish();
}
