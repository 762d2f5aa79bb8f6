/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Engine datagram: the socket of UDP by which a process's packets come and go.
 *
 * All functions but open, describe, close and send_once are called with the engine's lock held.
 */
#pragma once

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "coll_nicbarrier/engines/datagram/reach.h"
#include "coll_nicbarrier/engines/datagram/wire/packet.h"
#include "coll_nicbarrier/engines/engine.h"

/** `cookie`: what packets to this process must carry. 0, or -1 and the reason. */
int nicbarrier_udp_open(uint32_t cookie, nicbarrier_reason_t *why);
void nicbarrier_udp_close(void);

/** Writes what partners must know; some hundred bytes at most. Returns its length. */
uint32_t nicbarrier_udp_describe(void *bytes);

/** Understands a partner's description: its cookie and its addresses, at least one. 0, or -1 and
 *  the reason. */
int nicbarrier_udp_resolve(nicbarrier_partner_t *p, const void *bytes, uint32_t len,
                           nicbarrier_reason_t *why);

/** Sends one packet; false where it could not be sent, which is as if it were lost. */
bool nicbarrier_udp_send(const nicbarrier_address_t *to, const unsigned char *packet);

/** Takes one packet of up to `size` bytes; returns its length (0 .. size; size where it is longer),
 *  or -1 where there is none. Never waits. */
int nicbarrier_udp_receive(void *bytes, size_t size, nicbarrier_address_t *from);

/** Takes a packet that the host to which it was sent has refused, because the port is closed; false
 *  where there is none. */
bool nicbarrier_udp_refused(unsigned char packet[NICBARRIER_PACKET_SIZE], nicbarrier_address_t *to);

/** Becomes readable when something comes. Without the lock. */
int nicbarrier_udp_descriptor(void);

/** Sends one packet from a socket of its own: for processes that have not opened the engine.
 *  Errors are ignored. Any thread. */
void nicbarrier_udp_send_once(const nicbarrier_address_t *to, const unsigned char *packet);
/** How processes of this node reach my socket of UDP, which is open. */
void nicbarrier_udp_local(nicbarrier_address_t *a);

/** How the kernel sends to an address. */
typedef struct nicbarrier_way {
    nicbarrier_ip_t theirs;      /**< without its prefix; of IPv4 mapped */
    uint16_t their_port;         /**< in the host's byte order */
    char interface[IF_NAMESIZE]; /**< empty: none that is up */
} nicbarrier_way_t;

/** 0, or -1 and the reason: there is no route. The socket is open. Some system calls. */
int nicbarrier_udp_way(const nicbarrier_address_t *to, nicbarrier_way_t *way,
                       nicbarrier_reason_t *why);
