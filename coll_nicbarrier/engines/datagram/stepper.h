/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * A stepper: what executes the rule of barriers (rule.h) for groups of engine datagram. The host's
 * is here (stepper_host.c); others may do it on a network adapter or in the kernel. A new one is a
 * file, its declaration here, and a row in the table of connect.c. The engine knows a group's state
 * through this table only, and serialises its calls for all groups. The contract:
 *
 *  - It gets everything when a group is installed: the steps, where the receiver of each is
 *    reached, and the packet for it, complete but for the word of the step, which goes to
 *    NICBARRIER_PACKET_EPOCH_AT in network byte order whenever rule.h says that it is to be sent.
 *    A word is sent once. Repetition is the engine's, from the snapshot.
 *  - It takes in the words of packets of kind EPOCH, REPEAT and PROMISED for the group, where these
 *    come to itself; those that come to the engine the engine hands over (take). The same word may
 *    come both ways. All other packets are the engine's, and the engine acknowledges (ACK), too.
 *  - A snapshot is a state that the rule had at one time: later ones are nowhere less. It may be
 *    old, but what `enter`, `take` and `fail` of the same thread have led to is in it, as far as
 *    that does not depend on others.
 */
#ifndef NICBARRIER_STEPPER_H
#define NICBARRIER_STEPPER_H

#include <stdint.h>

#include "coll_nicbarrier/engines/datagram/wire/packet.h"
#include "coll_nicbarrier/engines/datagram/reach.h"
#include "coll_nicbarrier/epoch/rule.h"
#include "coll_nicbarrier/schedule/schedule.h"

_Static_assert(NICBARRIER_STEPS_MAX == NICBARRIER_RULE_STEPS, "a schedule fits the rule");

/** What is installed; read during the call only. */
typedef struct nicbarrier_stepping {
    uint64_t key; /**< of the group */
    uint32_t nsteps;
    const nicbarrier_step_t *step;
    const nicbarrier_address_t *to[NICBARRIER_STEPS_MAX]; /**< NULL: nothing is sent */
    unsigned char packet[NICBARRIER_STEPS_MAX][NICBARRIER_PACKET_SIZE]; /**< likewise */
} nicbarrier_stepping_t;

/** A group that is installed. */
typedef struct nicbarrier_stepped nicbarrier_stepped_t;

typedef struct nicbarrier_stepper {
    /** @return NULL where it cannot be had (memory, or what the stepper lives on) */
    nicbarrier_stepped_t *(*install)(const nicbarrier_stepping_t *what);
    /** Enters all epochs up to this one. */
    void (*enter)(nicbarrier_stepped_t *s, uint64_t epoch);
    /** A word for my step k has come to the engine. */
    nicbarrier_word_t (*take)(nicbarrier_stepped_t *s, uint32_t k, uint64_t word);
    /** The group has failed. */
    void (*fail)(nicbarrier_stepped_t *s);
    /** @return the state: `room`, filled in, or where it stands until the next call */
    const nicbarrier_rule_t *(*snapshot)(const nicbarrier_stepped_t *s, nicbarrier_rule_t *room);
    /** The receiver of step k is reached by another address from now on. */
    void (*readdress)(nicbarrier_stepped_t *s, uint32_t k, const nicbarrier_address_t *to);
    void (*remove)(nicbarrier_stepped_t *s);
} nicbarrier_stepper_t;

extern const nicbarrier_stepper_t nicbarrier_stepper_host;

#endif
