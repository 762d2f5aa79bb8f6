/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Barriers in the kernel: descriptors that processes hand over to the service, which may be
 *  of anything. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/** The port of a socket of UDP, which nobody else has on any address of that kind of IP at the
 *  interface; 0: it is none. `mine` is a socket of this network. */
uint16_t nicbarrier_bpf_fd_port(int fd, bool six, int interface, int mine);

/** Closes it, without waiting for it. */
void nicbarrier_bpf_fd_close(int fd, uid_t user);
/** True if the user has so many under way that it is not served until they have ended. */
bool nicbarrier_bpf_fd_many(uid_t user);
