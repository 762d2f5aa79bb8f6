/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * A stepper executes the rule of barriers (rule.h) for groups of engine datagram by itself, on a
 * network adapter or in the kernel, even while no process of the node is running. A new one is a
 * file and a row of steppers.c. When a group is made, steppers are asked in turn whether they can
 * have it; if none can, the process takes the steps (offload.c).
 *
 * *Words.* Whenever rule.h says that a step is to be sent, its packet goes out once, with the word
 * at NICBARRIER_PACKET_EPOCH_AT in network byte order. The engine does everything else: it repeats
 * lost messages from a snapshot.
 *
 * *Packets in.* A stepper may keep packets of kind EPOCH and REPEAT that come from the address
 * where the sender of the step is expected and whose word is not wrong. All others reach the
 * engine's socket unchanged: other kinds, other addresses, from which the engine learns, unknown
 * groups, and words that bring a failure. Packets that it might keep may reach the socket, too.
 *
 * *State.* A snapshot is a state that the rule had at one time; no number in a later one is less.
 * It may be old, but it includes the effects of earlier calls by the same thread, as far as they do
 * not depend on others, and no number in it is less than what the view showed before.
 *
 * *Threads.* Calls in the leader's process hold the engine's lock, except for `install`, which may
 * wait: no other thread knows the group then. `enter` by any thread of other processes of the node
 * runs concurrently, and so does the stepper's own work.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "coll_nicbarrier/engines/engine.h"
#include "coll_nicbarrier/epoch/rule.h"
#include "coll_nicbarrier/schedule/schedule.h"

_Static_assert(NICBARRIER_STEPS_MAX == NICBARRIER_RULE_STEPS, "a schedule fits the rule");

/** What a stepper shows of a group, in memory that all processes of the node may map. Written by
 *  the stepper, and `wanted` also by the engine. `word` and `taken` only grow. Any thread reads it
 *  without the lock, from `install` to `remove`. */
typedef struct nicbarrier_view {
    /** The last complete epoch, and NICBARRIER_WORD_FAILED. Stored with release. */
    _Atomic uint64_t word;
    _Atomic uint64_t entered;
    /** Partners' words that the stepper has taken in by itself. */
    _Atomic uint64_t taken;
    /** Not 0: a thread of the engine sleeps on its socket, or is about to. After it has stored a
     *  new word, and a full fence, the stepper exchanges this with 0, and where it was not 0 it
     *  passes up the packet that has led to the new word. If an entry and not a packet led to the
     * new word, it leaves this as it is: the thread that has entered sees both. */
    _Atomic uint64_t wanted;
} nicbarrier_view_t;

_Static_assert(sizeof(nicbarrier_view_t) == 32, "a program in the kernel writes it");

static inline uint64_t nicbarrier_view_completed(const nicbarrier_view_t *v)
{
    return atomic_load_explicit(&v->word, memory_order_acquire) & ~NICBARRIER_WORD_FAILED;
}

static inline bool nicbarrier_view_failed(const nicbarrier_view_t *v)
{
    return atomic_load_explicit(&v->word, memory_order_acquire) >= NICBARRIER_WORD_FAILED;
}

/** An installed group, or another process's access to one. */
typedef struct nicbarrier_offload nicbarrier_offload_t;

/** Longest record of `share`, in bytes. */
#define NICBARRIER_SHARE_MAX 96

/** If a function returns false, its request has not been carried out, and the stepper does nothing
 *  more for the group: the engine calls `stop` and goes on from the snapshot. */
typedef struct nicbarrier_stepper {
    const char *name; /**< a value of coll_nicbarrier_stepper */

    /** *view_p gets the view. Group, steps and partners are read only in this call and in
     *  readdress.
     *  @return NULL and the reason if it cannot have the group */
    nicbarrier_offload_t *(*install)(const nicbarrier_net_t *net, nicbarrier_view_t **view_p,
                                     nicbarrier_reason_t *why);
    /** Enters all epochs up to this one. */
    bool (*enter)(nicbarrier_offload_t *s, uint64_t epoch);
    /** A word for my step k has come to the engine, and is new by the snapshot; or the engine has
     *  found that the group has failed, and repeats the last epoch with the failure bit. */
    bool (*take)(nicbarrier_offload_t *s, uint32_t k, uint64_t word);
    /** The partners of step k have new addresses. */
    bool (*readdress)(nicbarrier_offload_t *s, const nicbarrier_net_t *net, uint32_t k);
    void (*snapshot)(const nicbarrier_offload_t *s, nicbarrier_rule_t *state);
    void (*remove)(nicbarrier_offload_t *s);
    /** From now on the stepper neither keeps nor sends packets; view and snapshot stay as they are.
     *  May be called again. */
    void (*stop)(nicbarrier_offload_t *s);
    /** Lets other processes of this node read the view and enter: writes a record of at most
     *  NICBARRIER_SHARE_MAX bytes. Returns its length, or 0 if it cannot. */
    uint32_t (*share)(const nicbarrier_offload_t *s, void *record);
    /** In another process, which may not have opened the engine. Returns NULL if that is
     *  impossible. Only `enter` and `remove` may be called for the result. Attach and remove are
     *  called by one thread at a time. The group itself may be removed earlier. */
    nicbarrier_offload_t *(*attach)(const void *record, uint32_t len,
                                    const nicbarrier_view_t **view_p);
} nicbarrier_stepper_t;

/** Ends with NULL; see steppers.c. */
extern const nicbarrier_stepper_t *const nicbarrier_steppers[];

extern const nicbarrier_stepper_t nicbarrier_stepper_bpf; /* stepper_bpf.c */
