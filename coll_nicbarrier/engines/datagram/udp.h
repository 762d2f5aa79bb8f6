/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Engine datagram: the UDP socket for all packets of a process.
 *
 * All functions but open, describe and close are called with the engine's lock held.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "coll_nicbarrier/engines/datagram/udp_address.h"
#include "coll_nicbarrier/engines/datagram/wire/packet.h"
#include "coll_nicbarrier/engines/engine.h"

/** Opens the socket. `cookie`: must be in packets to this process. 0, or -1 and the reason. */
int nicbarrier_udp_open(uint32_t cookie, nicbarrier_reason_t *why);
void nicbarrier_udp_close(void);

/** Writes what partners must know, at most some hundred bytes. Returns its length. */
uint32_t nicbarrier_udp_describe(void *bytes);

/** Decodes what a partner has described: its cookie, and where to send to it.
 *  @return NULL, or what is wrong (an English fragment) */
const char *nicbarrier_udp_resolve(const void *bytes, uint32_t len, uint32_t *cookie,
                                   nicbarrier_address_t *to);

/** Sends one packet. One that cannot be sent counts as lost. */
void nicbarrier_udp_send(nicbarrier_address_t to, const unsigned char *packet);

/** Receives one packet of up to `size` bytes. Returns its length (0 .. size; size if it is longer),
 *  or -1 if there is none. Never waits. */
int nicbarrier_udp_receive(void *bytes, size_t size, nicbarrier_address_t *from);

/** Takes one sent packet that the receiving host has refused because the port is closed. False if
 *  there is none. */
bool nicbarrier_udp_refused(unsigned char packet[NICBARRIER_PACKET_SIZE]);

/** A descriptor that becomes readable when something comes. Without the lock. */
int nicbarrier_udp_descriptor(void);
