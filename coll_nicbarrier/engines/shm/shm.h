/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The barrier inside a node, on flags in shared memory. No MPI; the kernel only for sleeping.
 *
 * A flag holds an epoch (engine.h) and only grows. Each process stores the epoch it has entered in
 * its own flag, on cache lines of its own. After that no process depends on another's progress:
 *
 * - *Flat*: few processes and no network part. An epoch is complete when all flags have reached it;
 *   waiting processes read them. A store and n - 1 loads, no locked instruction.
 * - *Tree*: the flags are leaves of groups (arrange.h). A process that has stored its flag reads
 *   those of its siblings, all of it sequentially consistent; if all have reached an epoch, it
 * raises the group's flag to that by an atomic maximum and does the same one level up. Of several
 * that come at once the last in that order sees all flags, so one climbs; that several do is
 * harmless. The process that raises the root has found the node *arrived*. Without a network part
 * it releases the node, else the leader does when the network part is complete: it raises a release
 * flag for each group of leaves, which the members read.
 *
 * A process that has waited for long sleeps on a futex. It counts itself first and then reads the
 * flags once more; the others store, fence and read the counter.
 *
 * One process arranges the tree, in the shared memory, for all. When that is done and each has
 * introduced itself, all attach; the caller sees to that order. All other functions may be called
 * by all processes and threads at once.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/support/life.h"
#include "coll_nicbarrier/engines/shm/arrange.h"
#include "coll_nicbarrier/engines/engine.h"

/** Parameter fanout: most members of a group, at least 2. */
extern int nicbarrier_shm_fanout;

/** A flag with two cache lines of its own, because processors fetch lines by pairs. */
typedef struct nicbarrier_flag {
    _Alignas(128) _Atomic uint64_t epoch;
} nicbarrier_flag_t;

/** What the processes of a node share besides the flags. Zeroed memory is a good beginning. */
typedef struct nicbarrier_head {
    _Alignas(128) _Atomic uint32_t sleepers;  /**< threads that sleep or are about to */
    _Alignas(128) _Atomic uint32_t wakes;     /**< the futex: grows when sleepers are to look */
    _Atomic uint32_t failed;                  /**< 1: what is not complete now may never be */
    _Alignas(128) _Atomic uint32_t attentive; /**< leader's threads that poll `arrived` now */
    uint32_t follower_len; /**< of the leader's record for those behind it (engine.h); 0: none */
    unsigned char follower[NICBARRIER_FOLLOWER_MAX];
    /* From here on as nicbarrier_shm_arrange leaves it. */
    _Alignas(128) int32_t vertices; /**< of the tree */
    int32_t releases;               /**< groups of leaves */
} nicbarrier_head_t;

/** One process's view of its node. */
typedef struct nicbarrier_shm {
    nicbarrier_head_t *head;
    nicbarrier_flag_t *vertex;  /**< flags of the tree's vertices, leaves first */
    nicbarrier_flag_t *release; /**< one flag for each group of leaves */
    nicbarrier_flag_t *mine;
    nicbarrier_flag_t *my_release;
    nicbarrier_flag_t *root;
    const onic_life_t *life;         /**< of all members */
    const nicbarrier_vertex_t *tree; /**< its vertices, shared */
    int leaf;                        /**< mine */
    int n;
    int releases; /**< groups of leaves */
    bool flat;
    bool network;           /**< completion comes from the leader */
    _Atomic int behind;     /**< flat: a process whose flag was seen too low; read first */
    _Atomic uint64_t woken; /**< flat: I have woken those that slept for this epoch */
} nicbarrier_shm_t;

/** Bytes of shared memory for `n` >= 1 processes. */
size_t nicbarrier_shm_bytes(int n);

/** One process arranges all `n`, where[i] being the place of each, in zeroed shared memory
 * at `base` (aligned to 128): at most `fanout` >= 2 members to a group. Returns 0, or -1 where
 * memory is exhausted. */
int nicbarrier_shm_arrange(void *base, int n, const nicbarrier_locality_t *where, int fanout);

/** Process `me` writes down what it is, so that others may see whether it lives; before it enters
 *  anything. */
void nicbarrier_shm_introduce(void *base, int n, int me);

/** The view of process `me`, when all is arranged. All give the same n, fanout and network. */
void nicbarrier_shm_attach(nicbarrier_shm_t *s, void *base, int n, int me, int fanout,
                           bool network);

/** Enters all epochs up to `epoch`. Returns true where the caller must notify the leader: the node
 * has arrived and there is a network part. */
bool nicbarrier_shm_enter(nicbarrier_shm_t *s, uint64_t epoch);

/** To be called after nicbarrier_shm_enter when the caller will not wait, or has done waiting:
 * wakes sleepers that may go on. One fence if there are none. */
void nicbarrier_shm_depart(nicbarrier_shm_t *s);

/** The last epoch that is complete on this node (with its network part, if there is one). */
uint64_t nicbarrier_shm_completed(nicbarrier_shm_t *s);

/** True if epoch `epoch` is complete; cheaper than the above. */
bool nicbarrier_shm_done(nicbarrier_shm_t *s, uint64_t epoch);

/** The last epoch that all processes of the node have entered; with a network part. */
uint64_t nicbarrier_shm_arrived(const nicbarrier_shm_t *s);

/** The last epoch that this process has entered; with a network part. */
uint64_t nicbarrier_shm_begun(const nicbarrier_shm_t *s);

/** The leader: the network part is complete up to `epoch`. Any thread. */
void nicbarrier_shm_release(nicbarrier_shm_t *s, uint64_t epoch);

/** What is not complete now may never be. Stays so. Any thread. */
void nicbarrier_shm_fail(nicbarrier_shm_t *s);
/** True if a member has called that. */
bool nicbarrier_shm_failed(const nicbarrier_shm_t *s);

/** Has one of `count` members ended, from member `from` on, modulo their number? Some tens of
 *  microseconds for each. */
bool nicbarrier_shm_has_dead(const nicbarrier_shm_t *s, int from, int count);

/** Sleeps until `epoch` is complete, or the barrier has failed, for `usec` microseconds at most;
 * may return early. */
void nicbarrier_shm_sleep(nicbarrier_shm_t *s, uint64_t epoch, unsigned usec);
