/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Which of a partner's addresses engine datagram uses.
 *
 * A partner may have several addresses, and it is not known beforehand which of them work:
 * unconnected networks may use the same numbers, and a firewall may drop some packets. Members do
 * not negotiate: each listens on all its addresses and tries the partner's in turn until something
 * comes. The address that it came from is *proven*, and used from then on.
 *
 * Pure: time is an argument, in nanoseconds of any monotonic clock that is past 0. The
 * caller serialises.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "coll_nicbarrier/engines/datagram/wire/packet.h"
#include "coll_nicbarrier/engines/datagram/udp_address.h"

/** NACKs to an unproven address before the next one is tried. */
#define NICBARRIER_REACH_PATIENCE 2
/** Nanoseconds of silence after which a partner that is known to be there counts as out of reach,
 *  if NICBARRIER_REACH_TRIES NACKs were sent to each of its addresses meanwhile. Shorter silence
 *  may mean that a process has lost its processor. */
#define NICBARRIER_REACH_ALL_PATIENCE 1000000000U
#define NICBARRIER_REACH_TRIES        4
/** Consecutive NACKs refused by a host after which the partner is dead, if it was ever heard from:
 *  refused by the host where it is known to be, or, where that is not known, by all hosts where it
 *  may be. */
#define NICBARRIER_REACH_REFUSALS 3

/** An address in the socket's format; compared as bytes. */
typedef struct nicbarrier_address {
    _Alignas(8) unsigned char bytes[40];
    uint32_t len;
} nicbarrier_address_t;

/** A member that sends to this one or receives from it. Zero-initialise; then its creator fills in
 *  cookie, candidates, and the first candidate as `at`. */
typedef struct nicbarrier_partner {
    int32_t member;
    uint32_t cookie;           /**< must be in its packets */
    nicbarrier_address_t at;   /**< the address in use */
    bool proven;               /**< something came from that address */
    uint8_t tries;             /**< if not proven: NACKs sent there */
    bool alive;                /**< something came from it, from any address */
    uint8_t refused;           /**< NACKs refused by its host since something came */
    uint32_t refusers;         /**< bit per candidate: its host has refused a NACK since then */
    uint32_t unanswered;       /**< NACKs sent since a message or a LATE came */
    uint64_t silent_since;     /**< time of the first of these */
    uint8_t ncandidates, next; /**< other addresses to try while `at` is not proven */
    uint64_t since;            /**< time of the first NACK that should have been answered, or 0 */
    nicbarrier_address_t candidate[NICBARRIER_IPS_MAX + 1];
    uint8_t asked[NICBARRIER_IPS_MAX + 1]; /**< NACKs to each candidate since then, up to
                                                NICBARRIER_REACH_TRIES */
} nicbarrier_partner_t;

/** A packet of the partner has come from this address. Returns true if p->at has changed.
 *  `message`: the packet was not a NACK, so it may answer mine. */
bool nicbarrier_reach_heard(nicbarrier_partner_t *p, const nicbarrier_address_t *from,
                            bool message);

/** A NACK is about to be sent to the partner, to p->at, which this call may change. `expected`: the
 *  partner is known to be there. */
void nicbarrier_reach_nack(nicbarrier_partner_t *p, bool expected, uint64_t now);

/** True if there is reason to believe that the partner cannot be reached: it is known to be there,
 *  NACKs went to all its addresses again and again, and nothing has ever come. */
bool nicbarrier_reach_is_lost(const nicbarrier_partner_t *p, uint64_t now);

/** The host at this address, which may not be the partner's, has refused a packet to the partner.
 *  True if the partner must be dead by now. */
bool nicbarrier_reach_refused(nicbarrier_partner_t *p, const nicbarrier_address_t *at);
