/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Where a process can be reached by datagrams: the content of its endpoint record, and which of its
 * addresses a partner uses.
 *
 * A host has addresses that others cannot reach (bridges of containers and virtual machines, which
 * have the same address on every host; networks that not all hosts are on). An address alone does
 * not show this, so all are published, and the receiver of the record, which knows its own,
 * chooses.
 *
 * IPv4 only. Pure. Input to be decoded is not trusted.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "coll_nicbarrier/engines/datagram/wire/packet.h"

/** An address and the network that it is in. Both in network byte order. */
typedef struct nicbarrier_ip {
    uint32_t ip;
    uint32_t mask; /**< of the network */
} nicbarrier_ip_t;

#define NICBARRIER_IPS_MAX 8

/** Only its beginning is sent, without the unused addresses. All hosts of a job have one byte
 *  order. */
typedef struct nicbarrier_udp_address {
    uint32_t cookie; /**< must be in packets to it, see packet.h */
    uint16_t port;   /**< network byte order, not 0; the same for all addresses */
    uint8_t n;       /**< number of addresses, 1 .. NICBARRIER_IPS_MAX */
    uint8_t zero;
    nicbarrier_ip_t ip[NICBARRIER_IPS_MAX];
} nicbarrier_udp_address_t;

/** Bytes that are sent. */
static inline uint32_t nicbarrier_udp_address_size(const nicbarrier_udp_address_t *p)
{
    return (uint32_t)(offsetof(nicbarrier_udp_address_t, ip) + p->n * sizeof(p->ip[0]));
}

/** @return NULL, or what is wrong with it (a static English fragment); `*p` is undefined then */
const char *nicbarrier_udp_address_decode(const void *bytes, size_t len,
                                          nicbarrier_udp_address_t *p);

/** Chooses where to send to the partner: to the first of its addresses that is in one of my
 *  networks, or, where none is, to the first one. An address that I have, too, would lead back to
 *  me and is left out; if the partner has no other, it is on this host, and gets the loopback
 *  address. */
nicbarrier_address_t nicbarrier_udp_address_choose(const nicbarrier_udp_address_t *mine,
                                                   const nicbarrier_udp_address_t *theirs);

/** True if the name of the interface is in the list, which is separated by commas. */
bool nicbarrier_interface_is_in(const char *interface, const char *list);
