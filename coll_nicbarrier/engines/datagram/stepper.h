/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * A stepper: what executes the rule of barriers (rule.h) for groups of engine datagram by itself,
 * on a network adapter or in the kernel, while no process of the node has a processor. A new one is
 * a file and a row of steppers.c. Of each group it is asked in turn, when the group is made,
 * whether it can have it; where none can, the process takes the steps (offload.c).
 *
 * *Words.* Whenever rule.h says that a step is to be sent, its packet goes out once, with the word
 * at NICBARRIER_PACKET_EPOCH_AT in network byte order. All else is the engine's: what was lost is
 * repeated from a snapshot.
 *
 * *Packets in.* A stepper may keep packets of kind EPOCH and REPEAT that come from the address
 * where the sender of the step is expected and whose word is not wrong. All others reach the
 * engine's socket unchanged: other kinds, other addresses, from which the engine learns, groups
 * that are not known, and words that bring a failure. What it might keep may come up, too.
 *
 * *State.* A snapshot is a state that the rule had at one time; later ones are nowhere less. It may
 * be old, but what calls of the same thread have led to is in it, as far as that does not depend on
 * others, and it is nowhere less than what the view said before.
 *
 * *Threads.* The engine's lock is held for calls of a process, but for `install` of a group that no
 * other thread knows yet, which may wait. `enter` in other processes of the node, of any thread
 * there, runs at the same time, and so does what the stepper does by itself.
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
 * the stepper; `wanted` also by the engine. What is shown only grows. Any thread reads it without
 * the lock, from `install` to `remove`. */
typedef struct nicbarrier_view {
    /** The last epoch that is complete, and NICBARRIER_WORD_FAILED beside it. Stored with release.
     */
    _Atomic uint64_t word;
    _Atomic uint64_t entered;
    /** Words of partners that it has taken in by itself. */
    _Atomic uint64_t taken;
    /** Not 0: a thread of the engine sleeps on its socket, or is about to. After it has stored a
     *  new word, and a full fence, the stepper exchanges this with 0, and where it was not 0 it
     *  passes up the packet that has led to the new word. Where it was an entry and no packet, it
     *  leaves this as it is: who has entered sees it and the word. */
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

/** A group that is installed, or another process's access to one. */
typedef struct nicbarrier_offload nicbarrier_offload_t;

/** Longest record of `share`, in bytes. */
#define NICBARRIER_SHARE_MAX 96

/** Where a function returns false, what was asked for has not been done, and the stepper does
 *  nothing more for the group: the engine calls `stop`, and goes on from the snapshot. */
typedef struct nicbarrier_stepper {
    const char *name; /**< as in coll_nicbarrier_stepper */

    /** *view_p gets what it shows. Group, steps and partners are read in this call and in readdress
     *  only. @return NULL and the reason where it cannot have the group */
    nicbarrier_offload_t *(*install)(const nicbarrier_net_t *net, nicbarrier_view_t **view_p,
                                     nicbarrier_reason_t *why);
    /** Enters all epochs up to this one. */
    bool (*enter)(nicbarrier_offload_t *s, uint64_t epoch);
    /** A word for my step k has come to the engine, or is made up by it, with the epoch that has
     * come before, where it has found that the group has failed. It is new by the snapshot. */
    bool (*take)(nicbarrier_offload_t *s, uint32_t k, uint64_t word);
    /** Partners of step k are reached by other addresses from now on. */
    bool (*readdress)(nicbarrier_offload_t *s, const nicbarrier_net_t *net, uint32_t k);
    void (*snapshot)(const nicbarrier_offload_t *s, nicbarrier_rule_t *state);
    void (*remove)(nicbarrier_offload_t *s);
    /** From now on it neither keeps nor sends anything; view and snapshot stay as they are. May be
     *  called again. */
    void (*stop)(nicbarrier_offload_t *s);
    /** Lets other processes of this node see the view and enter: writes a record of at most
     *  NICBARRIER_SHARE_MAX bytes. Returns its length; 0: it cannot. */
    uint32_t (*share)(const nicbarrier_offload_t *s, void *record);
    /** In another process, which may have opened nothing: NULL where that cannot be. Of what it
     * gives there are `enter` and `remove`. Attach and remove are called by one thread at a time.
     * The group may be removed before. */
    nicbarrier_offload_t *(*attach)(const void *record, uint32_t len,
                                    const nicbarrier_view_t **view_p);
} nicbarrier_stepper_t;

/** Ended by NULL: steppers.c. */
extern const nicbarrier_stepper_t *const nicbarrier_steppers[];

extern const nicbarrier_stepper_t nicbarrier_stepper_bpf; /* stepper_bpf.c */
