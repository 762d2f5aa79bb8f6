/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "test/mpi/shutdown.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "test/mpi/testlib.h"

/** Seconds after which a process that hangs is ended. */
#define PATIENCE TL_PATIENCE

/** Highest descriptor that is looked at. */
enum { DESCRIPTORS = 1024 };

static bool before[DESCRIPTORS];

static bool is_connection(int fd)
{
    struct sockaddr_storage peer;
    socklen_t len = sizeof(peer);

    return getpeername(fd, (struct sockaddr *)&peer, &len) == 0 &&
           (peer.ss_family == AF_INET || peer.ss_family == AF_INET6);
}

void shutdown_set_up(void)
{
    setenv("UCX_TLS", "tcp,self", 1);
    setenv("OMPI_MCA_osc_nicstride_node", "0", 1);
    setenv("OMPI_MCA_osc_nicstride_server", "0", 1);
}

void shutdown_begin(int ranks)
{
    tl_need_ranks(ranks, ranks);
    if (!tl_one_host())
        tl_skip("over hosts what MPI itself has over TCP would break, too");
    alarm(PATIENCE);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int fd = 0; fd < DESCRIPTORS; fd++)
        before[fd] = is_connection(fd);
}

int shutdown_connections(void)
{
    int n = 0;

    for (int fd = 0; fd < DESCRIPTORS; fd++)
        if (!before[fd] && is_connection(fd))
            n += shutdown(fd, SHUT_RDWR) == 0;
    return n;
}
