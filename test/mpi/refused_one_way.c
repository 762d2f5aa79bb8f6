/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-3 */
/* windows: create dynamic */
/* methods: auto cma sieve pack pipeline rdma */
/* p2p: */
/* timeout: 120 */
/**
 * @file
 * Processes of one node of which one may look into the other, but not the other way round: rank 1
 * has a user namespace of its own, and into rank 2 nobody may look, who has no rights over others.
 * So memory of the one is mapped and copied by the other, and none the other way, and what a pair
 * does differs by direction. All is right, and the kernel is not asked again and again.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "test/mpi/refused.h"

static bool write_file(const char *path, const char *text)
{
    const int fd = open(path, O_WRONLY);
    const bool written = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

    if (fd >= 0)
        close(fd);
    return written;
}

/** With the same user and group, or the launcher takes it for another's. */
static bool enter_namespace(void)
{
    char users[64], groups[64];

    snprintf(users, sizeof(users), "%u %u 1", (unsigned)getuid(), (unsigned)getuid());
    snprintf(groups, sizeof(groups), "%u %u 1", (unsigned)getgid(), (unsigned)getgid());
    return unshare(CLONE_NEWUSER) == 0 && write_file("/proc/self/setgroups", "deny") &&
           write_file("/proc/self/uid_map", users) && write_file("/proc/self/gid_map", groups);
}

/** Before MPI_Init, which maps memory of others. */
static bool stand_apart(void)
{
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");
    bool done = true;

    if (rank != NULL && strcmp(rank, "1") == 0)
        done = enter_namespace();
    else if (rank != NULL && strcmp(rank, "2") == 0)
        tl_closed(true);
    return done;
}

int main(int argc, char **argv)
{
    int all = stand_apart();
    void *from, *to, *memory;

    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    TL_MPI(MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD));
    if (!all)
        tl_skip("no user namespace can be made here");
    from = tl_alloc(REFUSED_BYTES);
    to = tl_alloc(REFUSED_BYTES);
    memory = tl_alloc(REFUSED_BYTES);
    for (int i = 0; i < 4; i++)
        refused_message(from, to, i);
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind)) {
        tl_window_t w = refused_window(kind, memory);

        refused_accesses(&w);
        const int calls = refused_calls();
        refused_accesses(&w);
        for (int i = 0; i < 4; i++)
            refused_message(from, to, i);
        TL_CHECK(refused_calls() == calls, "the kernel was asked %d times more",
                 refused_calls() - calls);
        refused_window_free(&w, memory);
    }
    free(from);
    free(to);
    free(memory);
    return tl_finish();
}
