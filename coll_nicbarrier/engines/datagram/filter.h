/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * What the kernel drops of the datagrams that come to a process, so that nobody is woken by it: all
 * that has not the size and the magic of a packet and this process's cookie, or that was not sent
 * to one of the addresses that the process has named to its partners (or to the loopback address,
 * by which processes of the same host come).
 *
 * Pure: it builds a program of classic BPF for a UDP socket.
 */
#ifndef NICBARRIER_FILTER_H
#define NICBARRIER_FILTER_H

#include <linux/filter.h>

#include "coll_nicbarrier/engines/datagram/udp_address.h"

/** No program is longer. */
#define NICBARRIER_FILTER_MAX (20 + 9 * (NICBARRIER_IPS_MAX + 1))

/** @return the number of instructions */
unsigned short nicbarrier_filter_build(const nicbarrier_udp_address_t *mine,
                                       struct sock_filter program[NICBARRIER_FILTER_MAX]);

#endif
