/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Barriers in the kernel: both ends of the socket between a process and the service of an
 *  interface. Messages stay whole; each may carry one descriptor. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "coll_nicbarrier/engines/datagram/bpf/request.h"

/** Binds a socket to the service's name. @return 0, or -1 and errno */
int nicbarrier_bpf_local_bind(int fd, const char *interface);

/** Connects to the service of an interface, after checking that it belongs to root or to this user.
 *  @return a socket, or -1 and errno: ECONNREFUSED if there is no service */
int nicbarrier_bpf_local_connect(const char *interface);

/** Sends a request to the service, and waits for the reply, some seconds at most. A descriptor that
 *  comes with it goes to `*page` (else -1); the caller closes it. The request's version
 *  is filled in. @return 0, or an errno, either local or from the reply, whose text is terminated
 *  then */
int nicbarrier_bpf_ask(int service, nicbarrier_bpf_request_t *r, nicbarrier_bpf_reply_t *reply,
                       int *page);

/** Sends one message, with a descriptor (-1: none). @return 0, or -1 and errno */
int nicbarrier_bpf_local_send(int fd, const void *bytes, size_t len, int descriptor);

/** Receives one message of at most `size` bytes (a longer one counts as one of size 1), and the
 *  descriptor that came with it, which the caller closes, or -1; with NULL the kernel closes it.
 *  @return its length, 0 at the end,
 *  or -1 and errno */
ssize_t nicbarrier_bpf_local_receive(int fd, void *bytes, size_t size, int *descriptor);
