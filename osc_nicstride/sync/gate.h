/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Locks by the gate (protocol/gate.h): of the target, which opens and closes it, and of
 *  origins, which go in and out. The gate is a word in registered memory, made when the first
 *  origin asks for keys, where an adapter does atomics here. The answer brings the key.
 *
 *  Behind the word lies a mark for each rank that shares the lock, so that what a lost process had
 *  is known: that it may be inside, before it goes in and until it has gone out, and that it is. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "osc_nicstride/window/module.h"

/* ---- the target; wire lock ------------------------------------------------------------------- */

/** The key for the own gate, which is made if need be; at most `cap` bytes. 0: there is none. */
size_t nicstride_gate_offer_locked(nicstride_module_t *m, void *bytes, size_t cap);

/** What has happened at the gate and is not dealt with yet. */
enum {
    NICSTRIDE_GATE_IS_CHANGED = 1,  /**< the word was */
    NICSTRIDE_GATE_IS_RELEASED = 2, /**< a far process has given the lock back in the queue */
    NICSTRIDE_GATE_IS_WANTED = 4,   /**< somebody waits, or has gone out */
    NICSTRIDE_GATE_BY_NEAR = 8      /**< that is a process of the node */
};

/** Something has happened at the own gate, a set of these; nothing where there is none. */
void nicstride_gate_note_locked(nicstride_module_t *m, unsigned happened);

/** Goes on with what waits for a lock that was busy. False where it still is. */
bool nicstride_gates_settle_locked(void);

/** A process of another node is lost: what it had by the gate is taken away. Where that cannot be
 *  known the window has failed. False: later. */
bool nicstride_gate_lost_locked(nicstride_module_t *m, int rank);

/** Is no change of the word under way? */
bool nicstride_gate_is_still_locked(const nicstride_module_t *m);

/** The window goes away; nothing is under way with it. */
void nicstride_gate_free_locked(nicstride_module_t *m);

/* ---- origins --------------------------------------------------------------------------------- */

/** A target, which is not trusted, has told the key of its gate. Wire lock. */
void nicstride_gate_told_locked(nicstride_peer_t *p, const void *bytes, size_t len);

/** Takes the lock of a target of another node by its gate. False where that is not open, or not
 *  known, and another must be asked. MPI threads, no lock held. */
bool nicstride_gate_enter(nicstride_peer_t *p, unsigned type);

/** Has this process the lock of the peer in that way? By the thread that has locked it. */
bool nicstride_gate_holds(const nicstride_peer_t *p);

/** Gives it back. MPI_ERR_OTHER where the target is lost. MPI threads, no lock held. */
int nicstride_gate_leave(nicstride_peer_t *p);

/** The peer goes away; nothing is under way with it. Wire lock. */
void nicstride_entrance_free_locked(nicstride_peer_t *p);
