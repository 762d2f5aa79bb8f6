/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * By which of its addresses engine datagram reaches a partner.
 *
 * A partner may have several addresses, and it is not known beforehand which of them work: networks
 * that are not connected may have the same numbers, and a firewall may let pass some packets only.
 * Nothing is agreed: each member listens to all its addresses, and tries the partner's by turns,
 * until something comes. The address that it came from is *proven*, and used from then on.
 *
 * Pure: time is an argument, in nanoseconds of any clock that does not go back and has left 0. The
 * caller serialises.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "coll_nicbarrier/engines/datagram/wire/packet.h"
#include "coll_nicbarrier/engines/datagram/udp_address.h"

/** NACKs to an unproven address before the next one is tried. */
#define NICBARRIER_REACH_PATIENCE 2
/** Nanoseconds of silence of a partner that is there, before it counts as out of reach, if
 *  NICBARRIER_REACH_TRIES NACKs were sent meanwhile to each of the addresses. Shorter silence may
 * be a process that has lost its processor. */
#define NICBARRIER_REACH_ALL_PATIENCE 1000000000U
#define NICBARRIER_REACH_TRIES        4
/** NACKs in a row that a host has refused where a partner is known to be, or where it is not known,
 *  all hosts where it may be: it is dead, if something came from it before. */
#define NICBARRIER_REACH_REFUSALS 3

/** An address as the socket understands it; compared as bytes. */
typedef struct nicbarrier_address {
    _Alignas(8) unsigned char bytes[40];
    uint32_t len;
} nicbarrier_address_t;

/** A member that messages go to or come from. Zero-initialise; its creator fills in what names it,
 *  its candidates, and as `at` the first of them. */
typedef struct nicbarrier_partner {
    int32_t member;
    uint32_t cookie;           /**< that its packets must carry */
    nicbarrier_address_t at;   /**< in use */
    bool proven;               /**< something came from there */
    uint8_t tries;             /**< not proven: NACKs sent there */
    bool alive;                /**< something came from it, whatever it was */
    uint8_t refused;           /**< NACKs that its host has refused since something came */
    uint32_t refusers;         /**< a bit for each candidate whose host has since then */
    uint32_t unanswered;       /**< NACKs sent since a message or a LATE came */
    uint64_t silent_since;     /**< time of the first of these */
    uint8_t ncandidates, next; /**< others to try where it is not proven */
    uint64_t since;            /**< of the first NACK that should have been answered, or 0 */
    nicbarrier_address_t candidate[NICBARRIER_IPS_MAX + 1];
    uint8_t asked[NICBARRIER_IPS_MAX + 1]; /**< NACKs to each candidate since then, up to
                                                NICBARRIER_REACH_TRIES */
} nicbarrier_partner_t;

/** Something of the partner's came from there. Returns true where p->at has changed. `message`: it
 *  was no NACK, and answers mine. */
bool nicbarrier_reach_heard(nicbarrier_partner_t *p, const nicbarrier_address_t *from,
                            bool message);

/** A NACK is about to be sent to the partner; it goes to p->at, which this may change. `expected`:
 *  the partner is known to be there. */
void nicbarrier_reach_nack(nicbarrier_partner_t *p, bool expected, uint64_t now);

/** Is there reason to believe that the partner cannot be reached? It is known to be there, NACKs
 *  went to all its addresses again and again, and nothing at all ever came. */
bool nicbarrier_reach_is_lost(const nicbarrier_partner_t *p, uint64_t now);

/** The host there has refused a packet to the partner, whose address that may not be: true where
 *  the partner must be dead by now. */
bool nicbarrier_reach_refused(nicbarrier_partner_t *p, const nicbarrier_address_t *at);
