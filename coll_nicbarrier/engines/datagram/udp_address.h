/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Where a process can be reached by datagrams: the content of its endpoint record, and the order in
 * which a partner tries its addresses.
 *
 * A host has addresses that others cannot reach (bridges of containers and virtual machines, which
 * have the same address on every host; networks that not all hosts are on). An address alone does
 * not show this, so all are published; the most likely is tried first, and the next one if nothing
 * comes back.
 *
 * Pure. Input to be decoded is not trusted.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/** An IPv6 address; an IPv4 address is mapped into one (::ffff:10.0.0.7). */
typedef struct nicbarrier_ip {
    uint8_t bytes[16]; /**< network byte order */
    uint8_t prefix;    /**< bits of its network, 0 .. 128; IPv4: 96 more than usual */
} nicbarrier_ip_t;

#define NICBARRIER_IPS_MAX 8

/** Only its beginning is sent, without the unused addresses. All hosts of a job have one byte
 *  order. */
typedef struct nicbarrier_udp_address {
    uint64_t host;   /**< equal if the processes can talk through the loopback interface */
    uint32_t cookie; /**< must be in packets to it, see packet.h */
    uint16_t port;   /**< not 0; the same for all addresses */
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

/** 127.0.0.1, and the wildcard address of IPv4. */
extern const nicbarrier_ip_t nicbarrier_ip_loopback;
static inline bool nicbarrier_ip_is_v4(const nicbarrier_ip_t *p)
{
    return memcmp(p->bytes, nicbarrier_ip_loopback.bytes, 12) == 0;
}

/**
 * Chooses which of the partner's addresses to try, best first: on the same host the loopback
 * address; then those in one of my networks, in the partner's order; then the others. An address
 * that I have, too, would lead back to me and is left out, unless we share the host.
 *
 * @param ipv6  my socket takes IPv6 addresses; otherwise they are left out
 * @param order gets the addresses, NICBARRIER_IPS_MAX + 1 at most
 * @return how many; 0: the partner cannot be reached
 */
int nicbarrier_udp_address_choose(const nicbarrier_udp_address_t *mine,
                                  const nicbarrier_udp_address_t *theirs, bool ipv6,
                                  nicbarrier_ip_t order[NICBARRIER_IPS_MAX + 1]);

/** True if the address lies in the network. */
bool nicbarrier_ip_within(const nicbarrier_ip_t *p, const nicbarrier_ip_t *network);

/**
 * Matches an interface's address against a filter. The filter is a list of interface names and
 * networks (10.0.0.0/8, fd00::/8, an address alone), separated by commas; if it begins with ^, the
 * list says what is not wanted.
 *
 * @return 1 if wanted, 0 if not, -1 if the filter is malformed: an item is neither an address nor a
 * possible name
 */
int nicbarrier_ip_wanted(const nicbarrier_ip_t *p, const char *interface, const char *filter);

/** True if the filter is well-formed. */
bool nicbarrier_ip_filter_valid(const char *filter);
