/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The carrier: what carries the barriers of one communicator, or of one persistent request. Flags
 * on the node, a network engine between the leaders of the nodes, or both, one below the other.
 *
 * The network part is driven by the leader's process alone: by its threads while they are in MPI,
 * otherwise by the engine's helper thread, which the last process of the node to arrive wakes.
 *
 * Threads: enter, done, progress and wait may be called by any number of MPI threads.
 */
#ifndef NICBARRIER_CARRIER_H
#define NICBARRIER_CARRIER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/node.h"
#include "coll_nicbarrier/engine.h"
#include "coll_nicbarrier/shm.h"

/** Engines by their number; the names are in params.c. */
typedef enum nicbarrier_kind {
    NICBARRIER_AUTO,
    NICBARRIER_SHM,
    NICBARRIER_PUT,
    NICBARRIER_DATAGRAM,
    NICBARRIER_KINDS
} nicbarrier_kind_t;

/** The network engine of a kind, NULL for the others. */
const nicbarrier_engine_t *nicbarrier_engine(nicbarrier_kind_t kind);

typedef struct nicbarrier_carrier {
    nicbarrier_kind_t kind;
    bool on_node; /**< there are others on my node: shm and segment are in use */
    nicbarrier_shm_t shm;
    onic_segment_t segment;
    const nicbarrier_engine_t *engine; /**< network part, or NULL */
    nicbarrier_net_t *net;             /**< the leader's; NULL in others */
    _Atomic uint64_t given;            /**< leader: last epoch given to the engine */
    bool offered;                      /**< others have my offer, or will get it */
    bool agreed;                       /**< all have agreed on this carrier */
    bool skew;                         /**< measure the time from first to last arrival */
    int spins_max; /**< looks before a waiting thread yields, where it is alone on its processor */
    _Atomic int spins; /**< and as things are */
} nicbarrier_carrier_t;

/** A carrier without parts. NULL where memory is exhausted. */
nicbarrier_carrier_t *nicbarrier_carrier_new(void);

/** Adds the network part: my offer for the group. 0, or -1 and the reason. */
int nicbarrier_carrier_offer(nicbarrier_carrier_t *c, const nicbarrier_group_t *group, void *bytes,
                             uint32_t *len_p, nicbarrier_reason_t *why);
/** Everybody's offers are here. 0, or -1 and the reason. */
int nicbarrier_carrier_connect(nicbarrier_carrier_t *c, const nicbarrier_offers_t *offers,
                               nicbarrier_reason_t *why);

/** Leader: enters the first epoch, which is no barrier of the user's but shows that the engine gets
 *  through. True once it is complete; makes progress. */
void nicbarrier_carrier_begin_trial(nicbarrier_carrier_t *c);
/** All leaders have begun it. */
void nicbarrier_carrier_expect(nicbarrier_carrier_t *c);
bool nicbarrier_carrier_trial_done(nicbarrier_carrier_t *c);
/** It never will be. */
void nicbarrier_carrier_trial_failed(nicbarrier_carrier_t *c);

/** The epoch of the trial; barriers are numbered from the next. */
#define NICBARRIER_TRIAL_EPOCH 1

/** Takes everything apart. Nobody waits; peers that are slower are served from what remains. */
void nicbarrier_carrier_free(nicbarrier_carrier_t *c);

/** Enters epoch `epoch`, the one after the last that was entered. Waits for nothing. */
void nicbarrier_carrier_enter(nicbarrier_carrier_t *c, uint64_t epoch);

/** To be called after enter by those who do not call nicbarrier_carrier_wait. */
void nicbarrier_carrier_depart(nicbarrier_carrier_t *c);

/** Can a helper thread stand in here for MPI threads that go away? Then `leave` makes it do so. */
bool nicbarrier_carrier_helped(const nicbarrier_carrier_t *c);
void nicbarrier_carrier_leave(nicbarrier_carrier_t *c);

bool nicbarrier_carrier_done(nicbarrier_carrier_t *c, uint64_t epoch);

/** Is a connection lost that this carrier needs, so that what is not complete now may never be? All
 *  of a node get to know it from the leader. Stays so. */
bool nicbarrier_carrier_failed(nicbarrier_carrier_t *c);

/** Moves the network part on. Returns events. */
int nicbarrier_carrier_progress(nicbarrier_carrier_t *c);

/** Returns when the epoch, which has been entered, is complete: true; or when the carrier has
 *  failed: false. Progresses Open MPI meanwhile. */
bool nicbarrier_carrier_wait(nicbarrier_carrier_t *c, uint64_t epoch);

#endif
