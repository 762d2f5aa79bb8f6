/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Barriers in the kernel: a packet with its headers, complete except for the word of its
 * step (the static packet of Yu et al. 2004, section 6.2). Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "coll_nicbarrier/engines/datagram/bpf/state.h"
#include "coll_nicbarrier/engines/datagram/wire/packet.h"

/** One end of a packet's path. */
typedef struct nicbarrier_bpf_end {
    uint8_t mac[6]; /**< of the interface there, or of the router on the path */
    uint16_t port;  /**< UDP port */
    uint8_t ip[16]; /**< network byte order; IPv4: the first 4 bytes */
} nicbarrier_bpf_end_t;

/** Makes a UDP packet over IPv6 (`six`) or IPv4 that holds an encoded packet (packet.h) with its
 *  word set to 0. */
void nicbarrier_bpf_frame(nicbarrier_bpf_packet_t *p, bool six, const nicbarrier_bpf_end_t *from,
                          const nicbarrier_bpf_end_t *to,
                          const unsigned char payload[NICBARRIER_PACKET_SIZE]);
