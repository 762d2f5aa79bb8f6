/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Ports of verbs devices: which one a process uses, and what it tells its partners
 *  of it.
 *
 *  Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/support/export.h"

typedef enum onic_verbs_link {
    ONIC_VERBS_INFINIBAND = 1,
    ONIC_VERBS_ROCE1, /**< RoCE below IP */
    ONIC_VERBS_ROCE2, /**< RoCE over UDP */
    ONIC_VERBS_LINKS
} onic_verbs_link_t;

/** Where a queue pair is. Travels as it is, so it has no gaps. Two are the same if all fields are.
 */
typedef struct onic_verbs_address {
    uint32_t qpn; /**< 2 .. 0xfffffe */
    uint16_t lid; /**< InfiniBand: 1 .. 0xbfff; RoCE: 0 */
    uint8_t link; /**< onic_verbs_link_t */
    uint8_t zero;
    uint8_t gid[16]; /**< InfiniBand: the first 8 bytes name the subnet; all 0 where not known.
                          RoCE: not 0, no multicast address */
} onic_verbs_address_t;

/** False if packets from my port cannot get to theirs: the links are of different kinds, or the
 *  subnets differ, or one has an address of IPv4 only, the other one of IPv6. The same for both
 *  sides. */
ONIC_EXPORT bool onic_verbs_reaches(const onic_verbs_address_t *mine,
                                    const onic_verbs_address_t *theirs);

/* ---- choice ---------------------------------------------------------------------------------- */

/** A port that is active. */
typedef struct onic_verbs_seen {
    uint8_t port;
    bool infiniband; /**< the other link is Ethernet */
    uint32_t rate;   /**< tenths of Gbit/s; 0 where not known */
} onic_verbs_seen_t;

/** Of one lane, and of how many: the numbers that verbs gives (active_speed and active_width).
 *  @return tenths of Gbit/s, 0 for numbers without a known meaning */
ONIC_EXPORT uint32_t onic_verbs_rate(unsigned speed, unsigned width);

/** True if port `a` is to be used rather than `b`: InfiniBand before Ethernet, then the fastest. */
ONIC_EXPORT bool onic_verbs_is_better(const onic_verbs_seen_t *a, const onic_verbs_seen_t *b);

/** What the address of an Ethernet port is worth, 0: it is of no use. RoCE 2 before 1; of IPv4,
 *  then of IPv6, then one that is good for the local network only. */
ONIC_EXPORT int onic_verbs_worth(const onic_verbs_address_t *a);
