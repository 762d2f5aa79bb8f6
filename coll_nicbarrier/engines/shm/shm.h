/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The barrier within a node, by flags in shared memory. Uses no MPI, and the kernel only to sleep.
 *
 * A flag holds an epoch (engine.h) and only grows. Each process stores the epoch it has entered in
 * its own flag, on cache lines of its own. After that no process depends on another's progress:
 *
 * - *Flat*: few processes and no network part. An epoch is complete when all flags have reached it;
 *   waiting processes read them. A store and n - 1 loads, no locked instruction.
 * - *Tree*: each `fanout` processes in a row are a group with a flag of its own, each `fanout`
 *   groups in a row likewise, up to the root. A process that has stored its flag reads those of its
 *   group, all of it sequentially consistent; if all have reached an epoch, it raises the group's
 *   flag to that by an atomic maximum and does the same one level up. If several come at once, the
 *   last in that order sees all flags, so one climbs; it is harmless if several do. The process
 * that raises the root has found the node *arrived*. To release the node, a release flag is raised
 * for each group of processes, which its members read. Without a network part the process that
 * raised the root does so, else the leader, once the network part is complete.
 *
 * A process that has waited for long sleeps on a futex, the leader until the node has arrived, the
 * others until the epoch is complete. It first counts itself as a sleeper and then reads the flags
 * once more; others store, fence and read the counter.
 *
 * When each process has attached, others may look whether it lives; the caller sees to that order.
 * All other functions may be called by all processes and threads at once.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/support/life.h"
#include "coll_nicbarrier/engines/engine.h"

/** Members of a group; tests take less. */
#define NICBARRIER_SHM_FANOUT 16

/** A flag on two cache lines of its own, because processors fetch lines in pairs. */
typedef struct nicbarrier_flag {
    _Alignas(128) _Atomic uint64_t epoch;
} nicbarrier_flag_t;

/** Where threads sleep. */
typedef struct nicbarrier_bed {
    _Alignas(128) _Atomic uint32_t sleepers; /**< threads that sleep or are about to */
    _Alignas(128) _Atomic uint32_t wakes;    /**< the futex: incremented to wake sleepers */
} nicbarrier_bed_t;

/** Shared by the processes of a node besides the flags. Valid when zeroed. */
typedef struct nicbarrier_head {
    nicbarrier_bed_t completion;           /**< until an epoch is complete, or the barrier fails */
    nicbarrier_bed_t arrival;              /**< the leader, until its node has arrived */
    _Alignas(128) _Atomic uint32_t failed; /**< 1: incomplete epochs may never be complete */
} nicbarrier_head_t;

/** One process's view of its node. */
typedef struct nicbarrier_shm {
    nicbarrier_head_t *head;
    nicbarrier_flag_t *flag;    /**< those of processes, then level by level those of groups */
    nicbarrier_flag_t *release; /**< one flag for each group of processes */
    nicbarrier_flag_t *mine;
    nicbarrier_flag_t *my_release;
    nicbarrier_flag_t *root;
    const onic_life_t *life; /**< whether members live */
    int me;
    int n;
    int fanout;
    bool flat;
    bool network;           /**< the leader completes epochs */
    _Atomic int behind;     /**< flat: a process whose flag was last seen too low; read first */
    _Atomic uint64_t woken; /**< flat: the last epoch for which I have woken sleepers */
} nicbarrier_shm_t;

/** Bytes of shared memory for `n` >= 1 processes in groups of `fanout` >= 2. */
size_t nicbarrier_shm_bytes(int n, int fanout);

/** Makes the view that process `me` (0 .. n - 1) has of zeroed shared memory at `base` (aligned to
 *  128), and records its identity there, so that others can see whether it lives. All processes
 *  give the same n, fanout and network. */
void nicbarrier_shm_attach(nicbarrier_shm_t *s, void *base, int n, int me, int fanout,
                           bool network);

/** Enters all epochs up to `epoch`. */
void nicbarrier_shm_enter(nicbarrier_shm_t *s, uint64_t epoch);

/** Must be called after nicbarrier_shm_enter by a caller that will not wait, or has finished
 *  waiting. Wakes sleepers that may go on. Costs one fence if there are none. */
void nicbarrier_shm_depart(nicbarrier_shm_t *s);

/** The last epoch that is complete on this node (with its network part, if there is one). */
uint64_t nicbarrier_shm_completed(nicbarrier_shm_t *s);

/** True if epoch `epoch` is complete. Cheaper than nicbarrier_shm_completed. */
bool nicbarrier_shm_done(nicbarrier_shm_t *s, uint64_t epoch);

/** The last epoch that all processes of the node have entered. Only with a network part. */
uint64_t nicbarrier_shm_arrived(const nicbarrier_shm_t *s);

/** The last epoch that this process has entered. Only with a network part. */
uint64_t nicbarrier_shm_begun(const nicbarrier_shm_t *s);

/** Called by the leader: the network part is complete up to `epoch`. Any thread. */
void nicbarrier_shm_release(nicbarrier_shm_t *s, uint64_t epoch);

/** Marks the barrier as failed: incomplete epochs may never be complete. Stays so. Any thread. */
void nicbarrier_shm_fail(nicbarrier_shm_t *s);
/** True if a member has called nicbarrier_shm_fail. */
bool nicbarrier_shm_failed(const nicbarrier_shm_t *s);

/** True if one of `count` members has died, counted from member `from` modulo the number of
 *  members. Takes some tens of microseconds for each. */
bool nicbarrier_shm_has_dead(const nicbarrier_shm_t *s, int from, int count);

/** Sleeps until `epoch` is complete or the barrier has failed, for at most `usec` microseconds. May
 *  return early. */
void nicbarrier_shm_sleep(nicbarrier_shm_t *s, uint64_t epoch, unsigned usec);

/** The same until the node has arrived in `epoch`. Only with a network part. */
void nicbarrier_shm_sleep_for_node(nicbarrier_shm_t *s, uint64_t epoch, unsigned usec);
