/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Barriers in the kernel: descriptors that processes hand over to the service. They may be
 * of any kind. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/** The port of a UDP socket that nobody else can have on any address of that IP version at the
 *  interface; 0 if the descriptor is no such socket. `mine` is a socket of this network namespace.
 */
uint16_t nicbarrier_bpf_fd_port(int fd, bool six, int interface, int mine);

/** Closes the descriptor without waiting for that. */
void nicbarrier_bpf_fd_close(int fd, uid_t user);
/** True if so many of the user's descriptors are being closed that the user is not served until
 *  they are. */
bool nicbarrier_bpf_fd_many(uid_t user);
