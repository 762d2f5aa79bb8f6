/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Barriers in the kernel: by which router and Ethernet addresses a partner is reached, as
 *  the kernel would send to it; and whether the interface is still there. */
#pragma once

#include <net/if.h>
#include <stdbool.h>

#include "coll_nicbarrier/engines/datagram/bpf/frame.h"

/**
 * The Ethernet address of the partner, or of the router on the way to it, and my own addresses on
 * the way. Never waits.
 *
 * @param interface by which it must be reached
 * @param to        its `ip` is given, its `mac` is filled in
 * @param from      gets `ip` and `mac`
 * @return 0, or an errno: EAGAIN while the kernel looks for the address, ENETUNREACH where it is
 *         not reached by this interface, or not by Ethernet
 */
int nicbarrier_bpf_neighbour(int interface, bool six, nicbarrier_bpf_end_t *to,
                             nicbarrier_bpf_end_t *from);

/** An interface's own Ethernet address. @return 0, or ENETUNREACH where it has none */
int nicbarrier_bpf_mac(int interface, uint8_t mac[6]);

/** A descriptor that becomes readable when interfaces change; or -1 and errno. */
int nicbarrier_bpf_link_watch(void);
/** After that: has the interface been removed? */
bool nicbarrier_bpf_link_is_gone(int watch, int interface);
