/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-4 */
/* engines: auto put2 datagram lossy */
/**
 * @file
 * Communicators are made and freed, most without a barrier, others with an engine of their own,
 * others whose nonblocking barriers are outstanding when they are freed, and others while peers are
 * still in a barrier: memory, descriptors, mappings and names of shared memory are afterwards what
 * they were.
 *
 * -n 99 makes 99,000 without a barrier.
 */
#include "test/mpi/meet.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BARE = 1000,
    ENGINES = 120,
    OUTSTANDING = 5,
    CHURN = 2000,
    EVERY = 10,
    BATCH = 60,
    LEFT_BYTES = 8 << 10
};

/** What a process holds. */
typedef struct held {
    int files;
    int mappings;
    int names; /**< in /dev/shm, of all processes of this user */
} held_t;

static held_t hold(void)
{
    return (held_t){meet_entries("/proc/self/fd", ""), meet_mappings(),
                    meet_entries("/dev/shm", "onic-")};
}

static void bare(void)
{
    MPI_Comm comm;
    TL_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    TL_MPI(MPI_Comm_free(&comm));
}

/** Barriers enough for an engine, whatever the call at which it is set up. */
static void with_engine(void)
{
    MPI_Comm comm;
    TL_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    for (int i = 0; i < 10; i++)
        TL_MPI(MPI_Barrier(comm));
    TL_MPI(MPI_Comm_free(&comm));
}

/** Those of the engine: coll/libnbc forgets that its own still need the communicator. */
static void outstanding(void)
{
    MPI_Comm comm;
    MPI_Request requests[OUTSTANDING];
    TL_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    for (int i = 0; i < 10; i++)
        TL_MPI(MPI_Barrier(comm));
    for (int i = 0; i < OUTSTANDING; i++)
        TL_MPI(MPI_Ibarrier(comm, &requests[i]));
    TL_MPI(MPI_Comm_free(&comm));
    TL_MPI(MPI_Waitall(OUTSTANDING, requests, MPI_STATUSES_IGNORE));
}

/** Some with few barriers, some with enough for an engine, and at other moments on each rank. */
static void churn(void)
{
    static tl_rng_t rng;
    static int i;
    const bool engine = i % EVERY == 0;
    MPI_Comm comm;
    if (i == 0)
        rng = tl_rng(tl_seed(), (uint64_t)tl_rank());
    if (i++ % 2 == 0)
        TL_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    else
        TL_MPI(MPI_Comm_split(MPI_COMM_WORLD, 0, -tl_rank(), &comm));
    for (int k = 0; k < (engine ? 12 : 2); k++)
        TL_MPI(MPI_Barrier(comm));
    if (engine) {
        MPI_Request request;
        TL_MPI(MPI_Ibarrier(comm, &request));
        TL_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
        meet_delay(&rng, 20);
    }
    TL_MPI(MPI_Comm_free(&comm));
}

/** Makes `n` of a kind, the first fifth of them before anything is counted. */
static void cycles(const char *what, void (*one)(void), int n)
{
    size_t allocated = 0;
    held_t before = {0, 0, 0};
    const int warm_up = n / 5;
    for (int i = 0; i < n; i++) {
        if (i == warm_up) {
            before = hold();
            allocated = tl_allocated();
        }
        one();
        if (i % BATCH == 0)
            TL_MPI(MPI_Barrier(MPI_COMM_WORLD));
    }
    /* A segment has a name while ranks map it, if they may not open files of each other. */
    TL_MPI(MPI_Barrier(MPI_COMM_WORLD));
    held_t after = hold();
    const size_t now = tl_allocated();
    TL_CHECK(now <= allocated + LEFT_BYTES, "%s: %zu bytes were allocated, now %zu", what,
             allocated, now);
    TL_CHECK(after.files <= before.files + 2, "%s: %d files were open, now %d", what, before.files,
             after.files);
    TL_CHECK(after.mappings <= before.mappings + n / 20 + 10, "%s: there were %d mappings, now %d",
             what, before.mappings, after.mappings);
    TL_CHECK(after.names <= before.names, "%s: there were %d names, now %d", what, before.names,
             after.names);
}

int main(int argc, char **argv)
{
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    meet_begin();
    /* What the first engine brings along is no leak. */
    for (int i = 0; i < 10; i++)
        TL_MPI(MPI_Barrier(MPI_COMM_WORLD));
    cycles("without a barrier", bare, (tl_slow() ? BARE / 5 : BARE) * tl_factor());
    cycles("with an engine", with_engine, tl_slow() ? ENGINES / 2 : ENGINES);
    cycles("outstanding", outstanding, tl_slow() ? ENGINES / 2 : ENGINES);
    /* Of lost packets each takes a millisecond. */
    const bool lossy = getenv("OMPI_MCA_coll_nicbarrier_drop") != NULL;
    cycles("while peers are in a barrier", churn,
           (tl_large() ? 2 * CHURN : CHURN) / (tl_slow() ? 5
                                               : lossy   ? 2
                                                         : 1));
    meet_check_engine(ENGINES / 4 * 2);
    return meet_finish();
}
