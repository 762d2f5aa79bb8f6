/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Barriers in the kernel: the service of an interface, which installs groups for processes that
 * have no privilege (request.h). It gives each a descriptor of the page of its own group, and of
 * nothing else.
 *
 * A group lives as long as the connection that it was installed over: the kernel closes that when
 * the process ends, whatever way it ends. The service builds all headers itself; a process cannot
 * have packets sent from a port that it has not got open, which it shows by handing over its
 * socket. The Ethernet addresses are looked up again every few seconds.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "coll_nicbarrier/engines/datagram/bpf/kernel.h"

/** Who is served. */
typedef struct nicbarrier_bpf_rules {
    bool all;       /**< all users; else the service's own */
    bool has_group; /**< and the members of this group */
    gid_t group;
    unsigned groups; /**< for each user at most */
} nicbarrier_bpf_rules_t;

/** Takes the name of an interface's socket. @return it, or -1 and errno: EADDRINUSE where there is
 *  such a service */
int nicbarrier_bpf_reserve(const char *interface);
/** From now on processes can connect: not before they can be served, since the kernel may take
 *  longer to check the programs than a process waits for an answer. @return 0, or -1 and errno */
int nicbarrier_bpf_listen(int reserved);

/** Serves until it is told to quit (QUIT, or `stop` becomes readable); then all groups are gone,
 * and the process must end, which closes all connections. Once in a process. `k` is attached to the
 *  interface. @return 0, or an errno */
int nicbarrier_bpf_serve(int listening, nicbarrier_bpf_kernel_t *k, int interface,
                         const nicbarrier_bpf_rules_t *rules, int stop);
