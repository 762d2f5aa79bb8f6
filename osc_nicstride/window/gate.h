/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The gate of a target (protocol/gate.h) in registered memory, and the key for it. It is made when
 * the first origin asks for keys, where an adapter does atomics here. The answer brings the key.
 *
 * Behind the word lies a mark for each rank that shares the lock, so that what a lost process had
 * is known: that it may be inside, before it goes in and until it has gone out, and that it is.
 *
 * Wire lock.
 */
#ifndef NICSTRIDE_WINDOW_GATE_H
#define NICSTRIDE_WINDOW_GATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/wire/put.h"
#include "osc_nicstride/protocol/gate.h"
#include "osc_nicstride/window/module.h"

/** What a rank's mark says. */
enum { NICSTRIDE_MARK_OUT, NICSTRIDE_MARK_MAYBE, NICSTRIDE_MARK_IN };

/** Bytes from the word to the marks, of 4 bytes each. */
#define NICSTRIDE_GATE_MARKS 64

/** What has happened at the gate and is not dealt with yet. */
enum {
    NICSTRIDE_GATE_IS_CHANGED = 1,  /**< the word was */
    NICSTRIDE_GATE_IS_RELEASED = 2, /**< a far process has given the lock back in the queue */
    NICSTRIDE_GATE_IS_WANTED = 4,   /**< somebody waits, or has gone out */
    NICSTRIDE_GATE_BY_NEAR = 8      /**< that is a process of the node */
};

/** A target's: nicstride_module_t's `gate`. */
struct nicstride_gatehouse {
    nicstride_gate_t gate;
    uint64_t *word;
    uint32_t *marks;
    onic_region_t *region;
    onic_remote_t *own;          /**< its key for itself: only the adapter changes the word */
    unsigned happened;           /**< a set of the above */
    bool waits;                  /**< with that for a lock that is busy */
    nicstride_gate_do_t todo;    /**< what is to be done with the word then */
    bool busy;                   /**< a change of the word is under way */
    uint64_t operand, before;    /**< of that */
    bool repairs;                /**< it takes away what a lost process had */
    struct nicstride_module *of; /**< the window */
};

/** What an origin has of a target's: its keyring's `entrance`. */
typedef struct nicstride_entrance {
    onic_remote_t *key;
    nicstride_gate_luck_t luck;
    uint32_t type;    /**< of the lock that is had by the gate, or 0; the thread's that has it */
    unsigned pending; /**< operations of the adapter under way */
    bool failed;      /**< one has */
    struct {
        uint64_t operand, result;
    } step[5]; /**< those since the lock was asked for */
    unsigned steps;
} nicstride_entrance_t;

/** The key for the own gate, which is made if need be; at most `cap` bytes. 0: there is none. */
size_t nicstride_gate_offer_locked(nicstride_module_t *m, void *bytes, size_t cap);
/** A target, which is not trusted, has told its own. */
void nicstride_gate_told_locked(nicstride_peer_t *p, const void *bytes, size_t len);

/** The window goes away, or the peer; nothing is under way with it. */
void nicstride_gate_free_locked(nicstride_module_t *m);
void nicstride_entrance_free_locked(nicstride_entrance_t *e);

#endif
