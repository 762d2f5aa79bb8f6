/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * How a process ends: not before the partners that may still need it are ready to end, too. Its
 * last message may be lost, and the partner that misses it asks for it. A barrier of the runtime is
 * no evidence that none will, since barriers may be made behind it.
 *
 * A process that needs nothing any more sends FIN to all *peers*: the processes that it has
 * completed a barrier with as partners. Each answers at once, ready or not. FIN is repeated until
 * it has been answered (a bounded number of times to a peer that has sent its own), and the process
 * stays until a FIN has come from each of them, or the peer's host refuses packets, or there has
 * been nothing but silence for PATIENCE. Where nothing is lost this takes a round trip behind the
 * slower one, and four packets for each pair.
 *
 * Pure: time is an argument, in nanoseconds of any clock that does not go back. The caller
 * serialises.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "coll_nicbarrier/engines/datagram/wire/packet.h"
#include "coll_nicbarrier/engines/datagram/reach.h"

/** Peers that are remembered; of more the first are forgotten. */
#define NICBARRIER_PEERS 256
/** Nanoseconds to the first repetition of FIN, and between repetitions at most. */
#define NICBARRIER_LINGER_FIRST UINT64_C(2000000)
#define NICBARRIER_LINGER_CAP   UINT64_C(250000000)
/** How often FIN is sent to a peer that has sent its own, but does not answer; a quarter of a
 *  second altogether. */
#define NICBARRIER_LINGER_TIMES 8
/** Nanoseconds of silence after which a peer counts as gone, if FIN was sent so often meanwhile
 *  (this process may have been stopped itself). */
#define NICBARRIER_LINGER_PATIENCE UINT64_C(5000000000)
#define NICBARRIER_LINGER_ASKED    10
/** So many refusals of its host, and it is gone. */
#define NICBARRIER_LINGER_REFUSALS 2

/** A process that has been a partner. */
typedef struct nicbarrier_peer {
    uint32_t cookie;         /**< names it */
    nicbarrier_address_t at; /**< where it was reached last */
    bool done;               /**< has sent FIN */
    bool acked;              /**< has received mine */
    bool gone;
    uint8_t refused;
    unsigned times;    /**< FIN sent, since it was done or, before, since it last answered */
    uint64_t received; /**< when something came last, or the lingering began */
    uint64_t deadline; /**< of the next FIN */
    uint64_t interval;
} nicbarrier_peer_t;

/** Zero-initialise. */
typedef struct nicbarrier_linger {
    unsigned n; /**< peers added so far */
    bool begun; /**< from nicbarrier_linger_begin on */
    nicbarrier_peer_t peer[NICBARRIER_PEERS];
} nicbarrier_linger_t;

/** That process is a peer, reached at this address from now on: adds it where it is new. */
void nicbarrier_linger_add(nicbarrier_linger_t *l, uint32_t cookie, const nicbarrier_address_t *at);

/** This process needs nothing any more. */
void nicbarrier_linger_begin(nicbarrier_linger_t *l, uint64_t now);

/** FIN or FIN_ACK came. @return true where FIN_ACK must be sent, to where the packet came from */
bool nicbarrier_linger_receive(nicbarrier_linger_t *l, const nicbarrier_packet_t *p, uint64_t now);

/** The peer's host has refused a packet. */
void nicbarrier_linger_refused(nicbarrier_linger_t *l, uint32_t cookie);

/** After begin: a peer to which FIN must be sent now; NULL: none. To be called until then. */
const nicbarrier_peer_t *nicbarrier_linger_expire(nicbarrier_linger_t *l, uint64_t now);

/** After that: when to call it again; UINT64_MAX: no peer is waited for, and the process may end.
 */
uint64_t nicbarrier_linger_deadline(const nicbarrier_linger_t *l);
