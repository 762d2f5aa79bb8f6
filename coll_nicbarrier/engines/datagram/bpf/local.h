/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Barriers in the kernel: the socket between a process and the service of an interface, on
 *  both sides. Messages stay whole, and one may carry a descriptor. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "coll_nicbarrier/engines/datagram/bpf/request.h"

/** The service's name for a socket. @return 0, or -1 and errno */
int nicbarrier_bpf_local_bind(int fd, const char *interface);

/** A connection to the service of an interface; it is known to be root's or this user's own.
 *  @return -1 and errno: ECONNREFUSED where there is none */
int nicbarrier_bpf_local_connect(const char *interface);

/** A process asks the service, with a socket or without one (-1), and waits for the reply, with
 * which a descriptor may come, which the caller closes: `*page`, or -1. The request's version and
 * order are filled in. @return 0, or an errno, its own or that of the reply, whose text ends then
 */
int nicbarrier_bpf_ask(int service, nicbarrier_bpf_request_t *r, nicbarrier_bpf_order_t order,
                       int socket, nicbarrier_bpf_reply_t *reply, int *page);

/** One message, and a descriptor with it (-1: none). @return 0, or -1 and errno */
int nicbarrier_bpf_local_send(int fd, const void *bytes, size_t len, int descriptor);

/** One message, of `size` bytes at most (a longer one counts as one of size 1); and the descriptor
 *  that came with it, which the caller closes, or -1. @return its length, 0 at the end, or -1 and
 *  errno */
ssize_t nicbarrier_bpf_local_receive(int fd, void *bytes, size_t size, int *descriptor);
