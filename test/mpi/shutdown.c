/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "test/mpi/shutdown.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>

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

void shutdown_begin(void)
{
    for (int fd = 0; fd < DESCRIPTORS; fd++) {
        before[fd] = is_connection(fd);
    }
}

int shutdown_connections(void)
{
    int n = 0;

    for (int fd = 0; fd < DESCRIPTORS; fd++) {
        if (!before[fd] && is_connection(fd)) {
            n += shutdown(fd, SHUT_RDWR) == 0;
        }
    }
    return n;
}
