/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * How a process leaves: not before those that may still need it have left, too.
 *
 * The last message of a process may be lost, and who misses it asks for it: so the process must
 * stay until it is known that nobody will. A barrier of the runtime tells nothing of that, since
 * barriers may be made behind it.
 *
 * A process that needs nothing any more says LEFT to all *peers*: the processes that it has
 * completed a barrier with as partners. It says so to each until that has been heard (a bounded
 * number of times), and stays until LEFT has come from each of them. Whoever is asked and goes on
 * says STAY: that is life, and one waits on. Where a peer's host says that nobody listens there any
 * more, it has left, or died. Where there is nothing but silence for PATIENCE, nothing better can
 * be known: host or network have gone, and to stay for ever would hang a job that has ended well.
 *
 * Where nothing is lost this takes a round trip behind the slower one, and four packets for each
 * pair.
 *
 * Pure: time is an argument, in nanoseconds of any clock that does not go back. The caller
 * serialises.
 */
#ifndef NICBARRIER_FAREWELL_H
#define NICBARRIER_FAREWELL_H

#include <stdbool.h>
#include <stdint.h>

#include "coll_nicbarrier/engines/datagram/packet.h"
#include "coll_nicbarrier/engines/datagram/reach.h"

/** Peers that are remembered; of more the one is forgotten that was needed least recently. */
#define NICBARRIER_PEERS 256
/** Nanoseconds to the first repetition of LEFT, and between repetitions at most: to who has left,
 *  and to who has not, of whom only life is to be heard. */
#define NICBARRIER_FAREWELL_FIRST UINT64_C(2000000)
#define NICBARRIER_FAREWELL_LEFT  UINT64_C(16000000)
#define NICBARRIER_FAREWELL_CAP   UINT64_C(250000000)
/** How often LEFT is said to who has left, but not said that it heard mine; some tens of
 *  milliseconds altogether. */
#define NICBARRIER_FAREWELL_TIMES 8
/** Nanoseconds of silence after which a peer counts as gone, if it was asked so often meanwhile
 * (this process may have been stopped itself). */
#define NICBARRIER_FAREWELL_PATIENCE UINT64_C(5000000000)
#define NICBARRIER_FAREWELL_ASKED    10
/** So many refusals of its host, and it is gone. */
#define NICBARRIER_FAREWELL_REFUSALS 2

/** A process that has been a partner. */
typedef struct nicbarrier_peer {
    uint32_t cookie;         /**< names it */
    uint32_t groups;         /**< of this process that have it as a partner */
    uint64_t used;           /**< when one was freed last, as a count */
    nicbarrier_address_t at; /**< where it was reached last */
    bool left;               /**< has said that it needs nothing any more */
    bool told;               /**< has heard that I have left */
    bool gone;
    uint8_t refused;
    unsigned times;    /**< LEFT said, since it left or, before, since it was last heard */
    uint64_t heard;    /**< when something came last, or the farewell began */
    uint64_t deadline; /**< of the next LEFT */
    uint64_t interval;
} nicbarrier_peer_t;

/** Zero-initialise. */
typedef struct nicbarrier_farewell {
    unsigned n;
    uint64_t freed;
    bool leaving; /**< from nicbarrier_farewell_begin on */
    nicbarrier_peer_t peer[NICBARRIER_PEERS];
} nicbarrier_farewell_t;

/** A group has completed a first epoch with that process as a partner. */
void nicbarrier_farewell_met(nicbarrier_farewell_t *f, uint32_t cookie,
                             const nicbarrier_address_t *at);

/** Such a group is freed, or the farewell about to begin: where the process is reached now. */
void nicbarrier_farewell_parted(nicbarrier_farewell_t *f, uint32_t cookie,
                                const nicbarrier_address_t *at);

/** This process needs nothing any more. */
void nicbarrier_farewell_begin(nicbarrier_farewell_t *f, uint64_t now);

/**
 * LEFT or STAY came. The sender need not be known.
 *
 * @param reply  gets kind and flags of the answer, and the sender's cookie
 * @return true where it must be sent, to where the packet came from
 */
bool nicbarrier_farewell_hear(nicbarrier_farewell_t *f, const nicbarrier_packet_t *p, uint64_t now,
                              nicbarrier_packet_t *reply);

/** The peer's host says that nobody listens there. */
void nicbarrier_farewell_refused(nicbarrier_farewell_t *f, uint32_t cookie);

/** Behind begin: a peer to which LEFT must be said now, with these flags; NULL: none. To be called
 *  until then. */
nicbarrier_peer_t *nicbarrier_farewell_expire(nicbarrier_farewell_t *f, uint64_t now,
                                              uint8_t *flags);

/** Behind that: when to call it again; UINT64_MAX: nobody is waited for, and the process may go. */
uint64_t nicbarrier_farewell_deadline(const nicbarrier_farewell_t *f);

#endif
