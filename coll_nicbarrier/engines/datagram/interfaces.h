/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The addresses of this host that partners are to try. */
#ifndef NICBARRIER_INTERFACES_H
#define NICBARRIER_INTERFACES_H

#include "coll_nicbarrier/engines/datagram/udp_address.h"
#include "coll_nicbarrier/engines/engine.h"

/** The addresses of all interfaces that are up and fit the filter (nicbarrier_ip_wanted; NULL: all
 *  but the loopback), bridges last. Returns how many, at least 1; or -1 and the reason. */
int nicbarrier_interfaces(const char *filter, nicbarrier_ip_t ip[NICBARRIER_IPS_MAX],
                          nicbarrier_reason_t *why);

/** Names the kernel and its network namespace. Where these are not known, a number that no other
 *  process has: then the loopback interface is not used. */
uint64_t nicbarrier_host_name(uint32_t cookie);

#endif
