/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 3 */
/* p2p: auto */
/* mpirun: --mca pml_superpipe_memory 4 --mca pml_superpipe_buffered 1024 */
/* timeout: 300 */
/**
 * @file
 * Messages of no byte and of one take memory, too: a million of them are sent to a process that is
 * in MPI and receives nothing, and neither it nor their senders grow beyond what they were told:
 * the receiver keeps a record of what a sender has copied, too.
 * Then all are received. What stands behind a flood is found all the same: a message with a tag of
 * its own, the messages of a barrier, and what a probe asks for.
 */
#include "test/mpi/p2p.h"

#include <stdlib.h>

#include "test/mpi/counter.h"

/** Bytes that the parameters allow, and what may come on top: records of other things, and what the
 *  allocator holds. */
enum { MEMORY = 4 << 20, BUFFERED = 1 << 20, SLACK = 12 << 20 };
enum { RECEIVER = 0, FLOOD_TAG = 5, LATE_TAG = 6 };

/** Messages of each sender. */
static int flood(void)
{
    return tl_slow() ? 20000 : tl_large() ? 500000 : 250000;
}

static unsigned char content(int from, int i)
{
    return (unsigned char)(i / 2 * 7 + from);
}

/** Every other one is empty. */
static void send_flood(int n)
{
    for (int i = 0; i < n; i++) {
        const unsigned char byte = content(tl_rank(), i);

        TL_MPI(MPI_Send(&byte, i % 2, MPI_BYTE, RECEIVER, FLOOD_TAG, MPI_COMM_WORLD));
    }
}

static void receive_flood(int n)
{
    int next[8] = {0};

    for (int i = 0; i < n * (tl_size() - 1); i++) {
        unsigned char byte = 0;
        MPI_Status status;
        int count;

        TL_MPI(MPI_Recv(&byte, 1, MPI_BYTE, MPI_ANY_SOURCE, i % 3 ? FLOOD_TAG : MPI_ANY_TAG,
                        MPI_COMM_WORLD, &status));
        MPI_Get_count(&status, MPI_BYTE, &count);
        const int k = next[status.MPI_SOURCE]++;
        if (count != k % 2 || (count == 1 && byte != content(status.MPI_SOURCE, k))) {
            TL_CHECK(false, "message %d of rank %d has %d bytes: %d", k, status.MPI_SOURCE, count,
                     byte);
        }
    }
}

/** Makes progress without receiving: nothing ever comes to this communicator. */
static void poll_elsewhere(void)
{
    const int polls = flood() * 3 / 5;

    for (int i = 0; i < polls; i++) {
        int found;

        TL_MPI(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &found, MPI_STATUS_IGNORE));
        TL_CHECK(!found, "a message from nobody");
    }
}

static void check_growth(size_t before, size_t most, const char *who)
{
    const size_t now = tl_private();

    TL_CHECK(now <= before + most + SLACK, "%s has grown by %zu KiB, not by %zu at most", who,
             (now - before) >> 10, (most + SLACK) >> 10);
}

static void test_memory(const counter_t *unexpected)
{
    const size_t before = tl_private();

    if (tl_rank() == RECEIVER) {
        poll_elsewhere();
        if (unexpected != NULL) {
            const size_t most = MEMORY + (size_t)(tl_size() - 1) * BUFFERED;

            check_growth(before, most, "the receiver");
            TL_CHECK(counter_read(unexpected) <= most, "%llu bytes are kept",
                     counter_read(unexpected));
        }
        receive_flood(flood());
    } else {
        send_flood(flood());
        if (unexpected != NULL)
            check_growth(before, BUFFERED, "a sender");
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* ---- behind a flood ---- */

enum { BEHIND = 30000 };

static void start_flood(MPI_Request *requests)
{
    static unsigned char bytes[BEHIND];

    for (int i = 0; i < BEHIND; i++) {
        bytes[i] = content(tl_rank(), i);
        TL_MPI(MPI_Isend(&bytes[i], i % 2, MPI_BYTE, RECEIVER, FLOOD_TAG, MPI_COMM_WORLD,
                         &requests[i]));
    }
}

static void find_late(bool probes)
{
    for (int from = 1; from < tl_size(); from++) {
        int value = -1, found = 0;

        while (probes && !found)
            TL_MPI(MPI_Iprobe(from, LATE_TAG, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE));
        TL_MPI(MPI_Recv(&value, 1, MPI_INT, from, LATE_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        TL_CHECK(value == from, "the late message of rank %d is %d", from, value);
    }
}

/** `other`: barriers of another communicator go between. */
static void test_behind(MPI_Comm other, bool probes)
{
    MPI_Request *requests = tl_alloc(BEHIND * sizeof(*requests));
    const int me = tl_rank();

    if (me != RECEIVER)
        start_flood(requests);
    for (int i = 0; i < 5; i++)
        MPI_Barrier(other);
    if (me != RECEIVER) {
        TL_MPI(MPI_Send(&me, 1, MPI_INT, RECEIVER, LATE_TAG, MPI_COMM_WORLD));
        TL_MPI(MPI_Waitall(BEHIND, requests, MPI_STATUSES_IGNORE));
    } else {
        find_late(probes);
        receive_flood(BEHIND);
    }
    free(requests);
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    counter_t *unexpected;
    MPI_Comm other;

    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    unexpected = counter_begin("pml_superpipe_unexpected_bytes");
    test_memory(unexpected);
    test_behind(other, false);
    test_behind(other, true);
    counter_end(unexpected);
    MPI_Comm_free(&other);
    return tl_finish();
}
