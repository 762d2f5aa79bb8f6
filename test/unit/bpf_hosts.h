/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Hosts on this machine, each a network namespace that a process keeps, joined by a bridge, with
 * nicbarrier-bpf loaded at their ends of it. Other processes go there. It needs root, and iproute2.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "test/unit/nicbarrier_conformance.h"

enum { BPF_HOSTS_MAX = CONFORMANCE_MEMBERS_MAX };

/** @return NULL, or why there can be no such hosts here */
const char *bpf_hosts_obstacle(void);

/** Makes the hosts, beside this process. Once in a process. @return whether they are there */
bool bpf_hosts_make(int n);
/** This process goes to the network of a host, and gives up all privilege: it is that user then. */
void bpf_hosts_go(int host, uid_t user);
/** Takes them down; false where something is left behind in the kernel. */
bool bpf_hosts_remove(void);
