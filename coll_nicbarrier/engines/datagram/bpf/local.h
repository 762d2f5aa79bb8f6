/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Barriers in the kernel: the socket between a process and the service of an interface (service.h),
 * and what they say to each other: a process asks for one group, and gets a reply, with which comes
 * the group's page. Messages stay whole; each may carry one descriptor.
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "coll_nicbarrier/engines/datagram/bpf/state.h"
#include "coll_nicbarrier/engines/engine.h"

/** Changes with the layout of anything that both sides, or the programs, use. */
#define NICBARRIER_BPF_VERSION 7

/** Installs the connection's group, once. */
typedef struct nicbarrier_bpf_request {
    uint64_t version;
    nicbarrier_bpf_id_t id;
} nicbarrier_bpf_request_t;

/** Most bytes of a reply, in all versions a text with its zero: why there is no group, or nothing.
 */
#define NICBARRIER_BPF_REPLY 120

/** A socket that has the name of the interface's service, but does not listen.
 *  @return -1 and errno: EADDRINUSE if a service has it */
int nicbarrier_bpf_local_bind(const char *interface);

/** Connects to the service of an interface, after checking that it belongs to root or to this user.
 *  @return a socket, or -1 and errno: ECONNREFUSED if there is no service */
int nicbarrier_bpf_local_connect(const char *interface);

/** Asks the service for a group, and waits for the reply, some seconds at most.
 *  @return a descriptor of the group's page, which the caller closes; or -1 and the reason */
int nicbarrier_bpf_ask(int service, const nicbarrier_bpf_id_t *id, nicbarrier_reason_t *why);

/** Sends one message, with a descriptor (-1: none). @return 0, or -1 and errno */
int nicbarrier_bpf_local_send(int fd, const void *bytes, size_t len, int descriptor);

/** Receives one message of at most `size` bytes (a longer one counts as one of size 1), and the
 *  descriptor that came with it, which the caller closes, or -1; with NULL the kernel closes it.
 *  @return its length, 0 at the end, or -1 and errno */
ssize_t nicbarrier_bpf_local_receive(int fd, void *bytes, size_t size, int *descriptor);
