/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Barriers in the kernel: the service of an interface, which installs groups for processes that
 * have no privilege (local.h). Each gets a descriptor of the page of its own group and no other
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
} nicbarrier_bpf_rules_t;

/** Connections that may wait to be accepted. */
#define NICBARRIER_BPF_BACKLOG 128

/** Groups of each user at most; each has a connection of its own. */
#define NICBARRIER_BPF_GROUPS_OF_USER 256

/** Serves groups of the programs that are loaded and attached to the interface, until `stop`
 * becomes readable, or the interface is removed. The caller unloads the programs, by which all
 * groups are gone, and ends the process, which closes the connections: so whoever asked for the end
 * sees when everything is gone. Once in a process. @return 0, or an errno */
int nicbarrier_bpf_serve(int listening, int interface, const nicbarrier_bpf_rules_t *rules,
                         int stop);
