/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Ports of verbs devices: which one a process uses, what it tells its partners of it, and what a
 * received datagram tells of its sender.
 *
 * The Q_Key of a process is not among what it tells: it follows from the process's cookie
 * (packet.h), which partners know anyway and every packet to the process carries. So whoever can
 * write a packet can also address it.
 *
 * Pure. Decoding trusts nothing.
 */
#ifndef NICBARRIER_PORT_H
#define NICBARRIER_PORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum nicbarrier_link {
    NICBARRIER_LINK_INFINIBAND = 1,
    NICBARRIER_LINK_ROCE1, /**< RoCE below IP */
    NICBARRIER_LINK_ROCE2, /**< RoCE over UDP */
    NICBARRIER_LINKS
} nicbarrier_link_t;

/** Where a queue pair for datagrams is. Two are the same if all fields are. */
typedef struct nicbarrier_port_address {
    uint8_t link;    /**< nicbarrier_link_t */
    uint8_t gid[16]; /**< InfiniBand: the first 8 bytes name the subnet; all 0 where not known.
                          RoCE: not 0, no multicast address */
    uint16_t lid;    /**< InfiniBand: 1 .. 0xbfff; RoCE: 0 */
    uint32_t qpn;    /**< 2 .. 0xfffffe */
} nicbarrier_port_address_t;

/* ---- wire form --------------------------------------------------------------------------------
 */

/** Bytes of the encoded form. */
#define NICBARRIER_PORT_SIZE 28

/** The fields must be within their ranges. */
void nicbarrier_port_encode(const nicbarrier_port_address_t *a,
                            unsigned char bytes[NICBARRIER_PORT_SIZE]);

/** @return NULL, or what is wrong with it (a static English fragment); `*a` is undefined then */
const char *nicbarrier_port_decode(const void *bytes, size_t len, nicbarrier_port_address_t *a);

/** @return NULL, or why datagrams from my port cannot get to theirs (a static English fragment).
 *  The same for both sides. */
const char *nicbarrier_port_obstacle(const nicbarrier_port_address_t *mine,
                                     const nicbarrier_port_address_t *theirs);

/** The Q_Key of the process with that cookie; never one that is reserved for the privileged. */
uint32_t nicbarrier_port_qkey(uint32_t cookie);

/** Bytes before the data of each datagram received, of which those of a global route are valid. */
#define NICBARRIER_PORT_GRH 40

/**
 * Who sent a datagram that came to my port.
 *
 * @param grh  the first NICBARRIER_PORT_GRH bytes of the receive buffer; NULL: no global route
 * @param lid  and the sender's, with `qpn`, as the completion says
 * @return false where it cannot be told
 */
bool nicbarrier_port_source(const nicbarrier_port_address_t *mine, const unsigned char *grh,
                            uint16_t lid, uint32_t qpn, nicbarrier_port_address_t *from);

/* ---- choice -----------------------------------------------------------------------------------
 */

/** A port that is active. */
typedef struct nicbarrier_port_seen {
    const char *device;
    uint8_t port;
    bool infiniband; /**< the other link is Ethernet */
    uint32_t rate;   /**< tenths of Gbit/s; 0 where not known */
} nicbarrier_port_seen_t;

/** Of one lane, and of how many: the numbers that verbs gives (active_speed and active_width).
 *  @return tenths of Gbit/s, 0 for numbers without a known meaning */
uint32_t nicbarrier_port_rate(unsigned speed, unsigned width);

/**
 * Is the filter a list that can be? Its items are separated by commas: the name of a device, of a
 * port (name:port, port 1 .. 255), of one of its addresses (name:port:index, index 0 .. 255).
 * Empty: all.
 */
bool nicbarrier_port_filter_valid(const char *filter);

/** Can ports of this device be wanted? The filter is valid. */
bool nicbarrier_port_device_wanted(const char *filter, const char *device);

/**
 * The port to use. The first item of the filter that fits any decides; of those that fit it the
 * best is taken: InfiniBand before Ethernet, then the fastest, then the first.
 *
 * @param filter   valid
 * @param index_p  the address of the port that the filter names, or -1
 * @return which of the `n`, or -1
 */
int nicbarrier_port_choose(const nicbarrier_port_seen_t *seen, int n, const char *filter,
                           int *index_p);

/** An address of an Ethernet port. */
typedef struct nicbarrier_port_gid {
    uint8_t link; /**< nicbarrier_link_t; others are not used */
    uint8_t gid[16];
} nicbarrier_port_gid_t;

/** The address to use: RoCE 2 before 1; of IPv4, then of IPv6, then one that is good for the local
 *  network only; then the first. @return which of the `n`, or -1 */
int nicbarrier_port_choose_gid(const nicbarrier_port_gid_t *gids, int n);

#endif
