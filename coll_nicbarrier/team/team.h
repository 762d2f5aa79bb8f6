/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The team: what carries the barriers of one communicator, or of one persistent request. Flags
 * on the node, a network engine between the leaders of the nodes, or both, one below the other.
 *
 * The network part is driven by the leader's process alone: by its threads while they are in MPI,
 * otherwise by the engine's helper thread, which the last process of the node to arrive wakes.
 *
 * No MPI, no header of Open MPI: what a thread that waits has to move on besides comes with the
 * configuration.
 *
 * Threads: enter, done, progress and wait may be called by any number of MPI threads.
 */
#ifndef NICBARRIER_TEAM_H
#define NICBARRIER_TEAM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/node/node.h"
#include "coll_nicbarrier/engines/engine.h"
#include "coll_nicbarrier/engines/shm/shm.h"

/** What a process wants of its teams. */
typedef struct nicbarrier_team_config {
    int spins_max; /**< looks before a waiting thread yields, where it is alone on its processor */
    bool skew;     /**< measure the time from first to last arrival */
    bool oversubscribed;    /**< more ranks on this node than processors */
    void (*progress)(void); /**< what a thread that waits calls now and then; never NULL */
} nicbarrier_team_config_t;

typedef struct nicbarrier_team {
    int kind;     /**< the engine's number, in nicbarrier_engines */
    bool on_node; /**< there are others on my node: shm and segment are in use */
    nicbarrier_shm_t shm;
    onic_segment_t segment;
    const nicbarrier_engine_t *engine; /**< network part, or NULL */
    nicbarrier_net_t *net;             /**< the leader's; NULL in others */
    _Atomic uint64_t given;            /**< leader: last epoch given to the engine */
    bool prepared;                     /**< others have my endpoint, or will get it */
    bool agreed;                       /**< all have agreed on this team */
    nicbarrier_team_config_t config;
    _Atomic uint64_t next_look; /**< when to look again whether members have died; 0: not set */
    _Atomic uint32_t looked;    /**< which one is looked at next */
    bool (*ended)(void *arg);   /**< has something else ended all waiting? NULL: it never does */
    void *ended_arg;
    _Atomic int spins; /**< looks before a waiting thread yields, as things are */
} nicbarrier_team_t;

/** A team without parts. NULL where memory is exhausted. */
nicbarrier_team_t *nicbarrier_team_new(const nicbarrier_team_config_t *config);

/**
 * Adds the part on the node: flags in the segment, `offset` bytes behind its beginning (a multiple
 * of 128), where the first of the `n` members has arranged them and this one has introduced
 * itself (shm.h). `network` says whether the team has a network part. Returns 0, and has taken the
 * segment over, which is empty then; or -1 where memory is exhausted or the segment does not hold
 * that.
 */
int nicbarrier_team_attach(nicbarrier_team_t *t, onic_segment_t *segment, size_t offset, int n,
                           int me, int fanout, bool network);

/** Adds the network part: my endpoint for the group. 0, or -1 and the reason. */
int nicbarrier_team_prepare(nicbarrier_team_t *t, const nicbarrier_group_t *group, void *bytes,
                            uint32_t *len_p, nicbarrier_reason_t *why);
/** Everybody's endpoints are here. 0, or -1 and the reason. */
int nicbarrier_team_connect(nicbarrier_team_t *t, const nicbarrier_endpoints_t *endpoints,
                            nicbarrier_reason_t *why);

/** Takes the network part away, if there is one, so that another can be prepared: the trial has
 *  failed, and no barrier has been entered. */
void nicbarrier_team_drop_network(nicbarrier_team_t *t);

/** Leader: enters the first epoch, which is no barrier of the user's but shows that the engine gets
 *  through. */
void nicbarrier_team_begin_trial(nicbarrier_team_t *t);
/** All leaders have begun it. */
void nicbarrier_team_expect(nicbarrier_team_t *t);
/** Is it complete? Makes progress. */
bool nicbarrier_team_trial_done(nicbarrier_team_t *t);
/** It never will be, for a reason. */
bool nicbarrier_team_trial_hopeless(nicbarrier_team_t *t, nicbarrier_reason_t *why);

/** The epoch of the trial; barriers are numbered from the next. */
#define NICBARRIER_TRIAL_EPOCH 1

/** The agreement has ended in an error here, while others may use what it has made: they are told
 *  that it is of no use. Before nicbarrier_team_free. */
void nicbarrier_team_break(nicbarrier_team_t *t);

/** Takes everything apart. Nobody waits; peers that are slower are served from what remains. */
void nicbarrier_team_free(nicbarrier_team_t *t);

/** Enters all epochs up to `epoch`. Waits for nothing. */
void nicbarrier_team_enter(nicbarrier_team_t *t, uint64_t epoch);

/** To be called after enter by those who do not call nicbarrier_team_wait. */
void nicbarrier_team_depart(nicbarrier_team_t *t);

/** Can a helper thread stand in here for MPI threads that go away? Then `leave` makes it do so. */
bool nicbarrier_team_helped(const nicbarrier_team_t *t);
void nicbarrier_team_leave(nicbarrier_team_t *t);

bool nicbarrier_team_done(nicbarrier_team_t *t, uint64_t epoch);

/** Is a connection lost that this team needs, or a process of it dead, so that what is not complete
 *  now may never be? All of a node know from each other, and by the leader's engine all others.
 *  Stays so. */
nicbarrier_failure_t nicbarrier_team_failure(nicbarrier_team_t *t);

/** An MPI thread has waited for long: looks whether processes of this node have died, unless that
 *  was done a short time ago. `now` is onic_now_nsec. nicbarrier_team_wait does so itself. */
void nicbarrier_team_look_around(nicbarrier_team_t *t, uint64_t now);

/** Moves the network part on. Returns events. */
int nicbarrier_team_progress(nicbarrier_team_t *t);

/** Returns when the epoch, which has been entered, is complete: true; or when the team has
 *  failed, or is ended: false. Calls the configured progress meanwhile. */
bool nicbarrier_team_wait(nicbarrier_team_t *t, uint64_t epoch);

#endif
