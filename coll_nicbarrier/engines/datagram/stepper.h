/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * A stepper executes the rule of barriers (rule.h) for groups of engine datagram. A new one is a
 * file with a row, and a line in steppers.c. When a group is made, the rows are asked in turn
 * whether they can have it. The last one, host, steps in the process and can always.
 *
 * Others go on by themselves, on a network adapter or in the kernel, even while no process of the
 * node is running. They show what they have done in a *view*; a group with a view has such a
 * stepper. If it can no longer do its work, the process takes the steps over (steps.c).
 *
 * *Words.* Whenever rule.h says that a step is to be sent, its packet goes out once, with the word
 * at NICBARRIER_PACKET_EPOCH_AT in network byte order. The engine does everything else: it asks for
 * what does not come, and repeats what others have missed, from a snapshot.
 *
 * *Packets in.* A stepper with a view may keep packets of kind EPOCH whose word is not wrong, by
 * key, cookie, sender and steps. All others reach the engine's socket unchanged, and so do words
 * that bring a failure. Packets that it might keep may reach the socket, too.
 *
 * *State.* A snapshot is a state that the rule had at one time; no number in a later one is less.
 * It may be old, but it includes the effects of earlier calls by the same thread, and no number in
 * it is less than what the view showed before.
 *
 * *Threads.* Calls hold the engine's lock, except for `install`, which may wait: no other thread
 * knows the group then. The stepper's own work runs concurrently.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "coll_nicbarrier/engines/engine.h"
#include "coll_nicbarrier/epoch/rule.h"
#include "coll_nicbarrier/schedule/schedule.h"

_Static_assert(NICBARRIER_STEPS_MAX == NICBARRIER_RULE_STEPS, "a schedule fits the rule");

/** What a stepper shows of a group. Written by the stepper, and `wanted` also by the engine. `word`
 *  and `taken` only grow. Any thread reads it without the lock, from `install` to `remove`. */
typedef struct nicbarrier_view {
    /** The last complete epoch, and NICBARRIER_WORD_FAILED. Stored with release. */
    _Atomic uint64_t word;
    /** Partners' words that the stepper has taken in by itself. */
    _Atomic uint64_t taken;
    /** Not 0: a thread of the engine sleeps on its socket, or is about to. After it has stored a
     *  new word, and a full fence, the stepper exchanges this with 0, and where it was not 0 it
     *  passes up the packet that has led to the new word. If an entry and not a packet led to the
     *  new word, it leaves this as it is: the thread that has entered sees both. */
    _Atomic uint64_t wanted;
} nicbarrier_view_t;

_Static_assert(sizeof(nicbarrier_view_t) == 24, "a program in the kernel writes it");

static inline uint64_t nicbarrier_view_completed(const nicbarrier_view_t *v)
{
    return atomic_load_explicit(&v->word, memory_order_acquire) & ~NICBARRIER_WORD_FAILED;
}

static inline bool nicbarrier_view_failed(const nicbarrier_view_t *v)
{
    return atomic_load_explicit(&v->word, memory_order_acquire) >= NICBARRIER_WORD_FAILED;
}

/** What a stepper has of a group: net->offload. */
typedef struct nicbarrier_offload nicbarrier_offload_t;

typedef struct nicbarrier_stepper {
    const char *name; /**< a value of coll_nicbarrier_stepper */

    /** Takes the group, whose steps and partners are known; sets net->offload and net->view.
     *  @return false and the reason if it cannot have it; both are NULL then */
    bool (*install)(nicbarrier_net_t *net, nicbarrier_reason_t *why);

    /* If one of the next two returns false, its request has not been carried out, and the stepper
     * does nothing more for the group: the engine calls `stop` and goes on from the snapshot. */

    /** Enters all epochs up to this one. */
    bool (*enter)(nicbarrier_net_t *net, uint64_t epoch);
    /** A word for my step k has come to the engine, and is new by the snapshot; or the engine has
     *  found that the group has failed, and repeats the last epoch with the failure bit. */
    bool (*take)(nicbarrier_net_t *net, uint32_t k, uint64_t word);

    /* Only of steppers with a view. */

    /** Brings net->rule up to date. */
    void (*snapshot)(nicbarrier_net_t *net);
    /** From now on the stepper neither keeps nor sends packets; view and snapshot stay as they are.
     */
    void (*stop)(nicbarrier_net_t *net);
    /** Frees net->offload; `stop` may not have been called. */
    void (*remove)(nicbarrier_net_t *net);
} nicbarrier_stepper_t;

/** The best first, and host last; ends with NULL. See steppers.c. */
extern const nicbarrier_stepper_t *const nicbarrier_steppers[];

extern const nicbarrier_stepper_t nicbarrier_stepper_bpf;  /* stepper_bpf.c */
extern const nicbarrier_stepper_t nicbarrier_stepper_host; /* stepper_host.c */
