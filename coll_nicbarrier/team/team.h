/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The team: what carries the barriers of one communicator, or of one persistent request. Flags on
 * the node, a network engine between the leaders of the nodes, or both, one below the other. The
 * network part is driven by the leader's process: by its threads while they are in MPI, otherwise
 * by the engine's helper thread, which the last process of the node to arrive wakes. Where the
 * engine takes the steps without a process, the last to arrive enters in the leader's place, and
 * all processes see what is complete.
 *
 * No MPI here: the configuration has what a waiting thread must call. Any number of MPI threads may
 * call enter, done, progress and wait.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/transport/shm/node.h"
#include "coll_nicbarrier/engines/engine.h"
#include "coll_nicbarrier/engines/shm/shm.h"

/** Settings for all teams of a process. */
typedef struct nicbarrier_team_config {
    int polls;              /**< waiting.h */
    bool crowded;           /**< the node has more ranks than processors */
    void (*progress)(void); /**< called by waiting threads now and then; never NULL */
} nicbarrier_team_config_t;

typedef struct nicbarrier_team {
    int kind;     /**< the engine's number, in nicbarrier_engines */
    bool on_node; /**< there are others on my node: shm and segment are in use */
    nicbarrier_shm_t shm;
    onic_segment_t segment;
    const nicbarrier_engine_t *engine; /**< network part, or NULL */
    nicbarrier_net_t *net;             /**< the leader's; NULL in others */
    nicbarrier_follower_t *follower;   /**< what others have of the leader's; or NULL */
    uint64_t trial_ends;               /**< nanoseconds; 0: no trial has begun */
    _Atomic uint64_t given;            /**< leader: last epoch given to the engine */
    nicbarrier_team_config_t config;
    _Atomic uint64_t next_check; /**< when to check again whether members have died; 0: not set */
    _Atomic uint32_t checked;    /**< the member to check next */
    bool (*ended)(void *arg);    /**< true once all waiting must end (revoked); or NULL */
    void *ended_arg;
} nicbarrier_team_t;

/** A team without parts. NULL where memory is exhausted. */
nicbarrier_team_t *nicbarrier_team_new(const nicbarrier_team_config_t *config);

/** Adds the part on the node: flags in the segment, `offset` bytes behind its beginning (a multiple
 *  of 128), where all has been arranged (shm.h) for `n` members. `network` says whether the team
 *  has a network part. Takes the segment over, which is empty then. */
void nicbarrier_team_attach(nicbarrier_team_t *t, onic_segment_t *segment, size_t offset, int n,
                            int me, int fanout, bool network);

/** Adds the network part: the group that t->engine has prepared as t->net is connected to the
 *  partners. 0, or -1 and the reason. */
int nicbarrier_team_connect(nicbarrier_team_t *t, const nicbarrier_endpoints_t *endpoints,
                            nicbarrier_reason_t *why);

/** Removes the network part, if there is one, so that another can be prepared. The trial has
 * failed, and no barrier has been entered. */
void nicbarrier_team_drop_network(nicbarrier_team_t *t);

/** Leader, when all leaders are connected: the first epoch is no barrier of the user's but shows
 *  that the engine gets through. To be called until it is complete (1), or never will be, for a
 *  reason (-1); else 0. An engine that cannot find that by itself is given
 *  NICBARRIER_TRIAL_SECONDS: its notice of a loss may have gone by what was lost. */
int nicbarrier_team_try(nicbarrier_team_t *t, nicbarrier_reason_t *why);

#define NICBARRIER_TRIAL_SECONDS 30
/** The epoch of the trial; barriers are numbered from the next. */
#define NICBARRIER_TRIAL_EPOCH 1

/** All parts are there, on all processes: barriers may be entered from now on. */
void nicbarrier_team_begin(nicbarrier_team_t *t);

/** The team has failed: all its processes are notified, those of other nodes by the leader. */
void nicbarrier_team_fail(nicbarrier_team_t *t);

/** Frees all parts. No thread may be waiting. The engine still serves slower peers. */
void nicbarrier_team_free(nicbarrier_team_t *t);

/** Enters all epochs up to `epoch`. Never waits. */
void nicbarrier_team_enter(nicbarrier_team_t *t, uint64_t epoch);

/** A thread that has entered and does not call nicbarrier_team_wait must call this. */
void nicbarrier_team_depart(nicbarrier_team_t *t);

/** True if the epoch, which has been entered, is complete. */
bool nicbarrier_team_done(nicbarrier_team_t *t, uint64_t epoch);

/** True if a connection is lost that this team needs, or a process of it is dead: what is not
 *  complete now may never be. All of a node know from each other, and by the leader's engine all
 * others. Stays so. */
bool nicbarrier_team_failed(nicbarrier_team_t *t);

/** A thread has waited for long: checks whether processes of this node have died, unless that was
 *  done a short time ago. `now` is onic_now_nsec. nicbarrier_team_wait does so itself. */
void nicbarrier_team_check_members(nicbarrier_team_t *t, uint64_t now);

/** Leader of a node: the engine enters what the node has. */
void nicbarrier_team_submit(nicbarrier_team_t *t);

/** Progresses the network part. @return how many things were new */
int nicbarrier_team_progress(nicbarrier_team_t *t);

/** Returns when the epoch, which has been entered, is complete: true; or when the team has
 *  failed, or is ended: false. Calls the configured progress meanwhile. */
bool nicbarrier_team_wait(nicbarrier_team_t *t, uint64_t epoch);
