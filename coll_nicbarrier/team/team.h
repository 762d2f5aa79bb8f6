/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The team: what carries the barriers of one communicator. It has flags on the node, a network
 * engine between the leaders of nodes, or both, one below the other. The network part is driven by
 * the leader's process: by its threads while they are in MPI, otherwise by the engine's helper
 * thread.
 *
 * Uses no MPI: the caller names the function that waiting threads call. Any number of MPI
 * threads may call enter, done, progress and wait.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/transport/shm/node.h"
#include "coll_nicbarrier/engines/engine.h"
#include "coll_nicbarrier/engines/shm/shm.h"
#include "coll_nicbarrier/team/waiting.h"

typedef struct nicbarrier_team {
    int kind;     /**< the engine's number, in nicbarrier_engines */
    bool on_node; /**< my node has several members: shm and segment are in use */
    nicbarrier_shm_t shm;
    onic_segment_t segment;
    const nicbarrier_engine_t *engine; /**< network part, or NULL */
    nicbarrier_net_t *net; /**< the leader's, connected with the shm of this team; NULL in others */
    _Atomic uint64_t given; /**< leader: the last epoch entered in the engine */
    unsigned polls;         /**< waiting.h */
    nicbarrier_processors_t processors;
    void (*progress)(void);      /**< called by waiting threads now and then */
    _Atomic uint64_t next_check; /**< when to check again whether members have died; 0: not set */
    _Atomic uint32_t checked;    /**< the member to check next */
    bool (*ended)(void *arg);    /**< true once all waiting must end (revoked); or NULL */
    void *ended_arg;
} nicbarrier_team_t;

/** A team without parts, as where there are processors enough. NULL where memory is exhausted. */
nicbarrier_team_t *nicbarrier_team_new(int polls, void (*progress)(void));

/** Adds the node's part: flags in the segment at `offset` (a multiple of 128) for `n`
 * members, of whom this is number `me` (shm.h). `network` says whether the team has a network part.
 *  Takes over the segment and clears *segment. */
void nicbarrier_team_attach(nicbarrier_team_t *t, onic_segment_t *segment, size_t offset, int n,
                            int me, int fanout, bool network);

/** Marks the team as failed. All its processes are notified, those of other nodes by the leader. */
void nicbarrier_team_fail(nicbarrier_team_t *t);

/** Frees all parts. No thread may be waiting. The engine keeps answering slower peers. */
void nicbarrier_team_free(nicbarrier_team_t *t);

/** Enters all epochs up to `epoch`. Never waits. */
void nicbarrier_team_enter(nicbarrier_team_t *t, uint64_t epoch);

/** Must be called by a thread that has entered and does not call nicbarrier_team_wait. */
void nicbarrier_team_depart(nicbarrier_team_t *t);

/** True if the epoch, which must have been entered, is complete. */
bool nicbarrier_team_done(nicbarrier_team_t *t, uint64_t epoch);

/** True if a connection that this team needs is lost or one of its processes is dead, so that
 *  incomplete epochs may never be complete. The members of a node know it from each other, those of
 *  other nodes by the leader's engine. Stays so. */
bool nicbarrier_team_failed(nicbarrier_team_t *t);

/** For a thread that has waited for long: checks whether processes of this node have died, unless
 *  that was checked a short time ago. `now` is onic_now_nsec. nicbarrier_team_wait does so itself.
 */
void nicbarrier_team_check_members(nicbarrier_team_t *t, uint64_t now);

/** Progresses the network part. @return how many events were new */
int nicbarrier_team_progress(nicbarrier_team_t *t);

/** Waits until the epoch, which must have been entered, is complete, and returns true; returns
 *  false if the team has failed or was ended. Calls the configured progress meanwhile. */
bool nicbarrier_team_wait(nicbarrier_team_t *t, uint64_t epoch);
