/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Barriers in the kernel: the router and Ethernet addresses by which the kernel would reach
 * a partner, and whether the interface still exists. */
#pragma once

#include <net/if.h>
#include <stdbool.h>

#include "coll_nicbarrier/engines/datagram/bpf/frame.h"

/**
 * Finds the Ethernet address of the partner, or of the router towards it, and my own addresses on
 * that path. Never waits.
 *
 * @param interface through which the partner must be reached
 * @param to        its `ip` is given, its `mac` is filled in
 * @param from      gets `ip` and `mac`
 * @return 0, or an errno: EAGAIN while the kernel looks up the address, ENETUNREACH if the partner
 * is not reached through this interface, or not by Ethernet
 */
int nicbarrier_bpf_neighbour(int interface, bool six, nicbarrier_bpf_end_t *to,
                             nicbarrier_bpf_end_t *from);

/** The interface's own Ethernet address. @return 0, or ENETUNREACH if it has none */
int nicbarrier_bpf_mac(int interface, uint8_t mac[6]);

/** A descriptor that becomes readable when interfaces change; or -1 and errno. */
int nicbarrier_bpf_link_watch(void);
/** Reads the descriptor. True if the interface has been removed. */
bool nicbarrier_bpf_link_is_gone(int watch, int interface);
