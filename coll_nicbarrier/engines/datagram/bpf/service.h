/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Barriers in the kernel: the service of an interface, which installs groups for processes that
 * have no privilege (request.h). Each gets a descriptor of the page of its own group and no other
 * descriptor.
 *
 * A group lives as long as the connection over which it was installed; the kernel closes that when
 * the process ends, however it ends. The service knows no address: the programs learn packets from
 * those that the process has sent itself (state.h).
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "coll_nicbarrier/engines/datagram/bpf/kernel.h"

/** Who is served. */
typedef struct nicbarrier_bpf_rules {
    bool all;       /**< all users; otherwise only the service's own */
    bool has_group; /**< also the members of this group */
    gid_t group;
    unsigned groups; /**< most for each user; each has a connection of its own */
} nicbarrier_bpf_rules_t;

/** Reserves the name of an interface's socket. @return the socket, or -1 and errno: EADDRINUSE if a
 *  service has it */
int nicbarrier_bpf_reserve(const char *interface);
/** Lets processes connect. Called only once they can be served, since the kernel may take longer to
 *  check the programs than a process waits for an answer. @return 0, or -1 and errno */
int nicbarrier_bpf_listen(int reserved);

/** Serves until `stop` becomes readable, or the interface is
 *  removed. The caller unloads `k`, by which all groups are gone, and ends the process, which
 *  closes the connections: so whoever asked for the end sees when everything is gone. Once in a
 *  process. `k` is attached to the interface. @return 0, or an errno */
int nicbarrier_bpf_serve(int listening, nicbarrier_bpf_kernel_t *k, int interface,
                         const nicbarrier_bpf_rules_t *rules, int stop);
