/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Hosts on this machine, each a process in a network namespace of its own, joined by a bridge; with
 * nicbarrier-bpf loaded at their ends of it, and with one group of which each is a member. It needs
 * root, and iproute2.
 */
#pragma once

#include "coll_nicbarrier/engines/datagram/bpf/client.h"
#include "test/unit/nicbarrier_conformance.h"
#include "test/unit/unit.h"

enum { BPF_HOSTS_MAX = CONFORMANCE_MEMBERS_MAX };

typedef struct bpf_host bpf_host_t;

typedef struct bpf_hosts {
    int n;
    bool load; /**< nicbarrier-bpf is loaded */
    nicbarrier_schedule_kind_t schedule;
    /** Run by another user on the first host, with a socket of its own; NULL: there is none. */
    int (*stranger)(bpf_host_t *h);
} bpf_hosts_t;

/** What all hosts see, zeroed at first. */
typedef struct bpf_hosts_shared {
    _Atomic uint64_t step[BPF_HOSTS_MAX]; /**< how far each is, for what a test needs in order */
    _Atomic uint64_t begun;
    _Atomic uint64_t strange; /**< how far the stranger may go, and is */
} bpf_hosts_shared_t;

/** A member, in the process of its host. */
struct bpf_host {
    const bpf_hosts_t *all;
    bpf_hosts_shared_t *shared;
    int me;
    int socket; /**< where its packets come to */
    nicbarrier_step_t step[NICBARRIER_STEPS_MAX];
    nicbarrier_bpf_client_t plan; /**< as it is to be installed */
    nicbarrier_bpf_client_t client;
};

/** @return NULL, or why there can be no such hosts here */
const char *bpf_hosts_obstacle(void);

/** Makes the hosts, runs the function in each process, without any privilege, and takes them down
 *  again. Fails where one of them does, by a status that is not 0. */
void bpf_hosts_run(const bpf_hosts_t *hosts, int (*function)(bpf_host_t *h));

/** Likewise, beside this process, with members that do nothing until it ends or calls `release`:
 *  other processes go to their networks. Once in a process. @return whether they are there */
bool bpf_hosts_keep(const bpf_hosts_t *hosts);
/** This process goes to the network of a host that is kept, and gives up all privilege. */
void bpf_hosts_go(int host);
/** Takes them down; false where something is left behind in the kernel. */
bool bpf_hosts_release(void);

/** All hosts have come here. */
void bpf_host_meet(bpf_host_t *h);
/** Installs the member's group for a client. 0, or -1 and the reason. */
int bpf_host_install(bpf_host_t *h, nicbarrier_bpf_client_t *c, nicbarrier_reason_t *why);
/** Shows the programs the packets of the member, and waits for those of the others. Called by all.
 */
bool bpf_host_teach(bpf_host_t *h);
/** Waits until the epoch is complete; false after some seconds. */
bool bpf_host_wait(const bpf_host_t *h, uint64_t epoch);
