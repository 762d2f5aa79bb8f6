/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Locks by the gate (protocol/gate.h): of the target, which opens and closes it (gate.c), and of
 * origins, which go in and out (enter.c).
 */
#ifndef NICSTRIDE_SYNC_GATE_H
#define NICSTRIDE_SYNC_GATE_H

#include <stdbool.h>

#include "osc_nicstride/window/gate.h"

/* ---- the target; wire lock --------------------------------------------------------------------
 */

/** Something has happened at the own gate, a set of NICSTRIDE_GATE_IS_...; nothing where there is
 *  none. */
void nicstride_gate_note_locked(nicstride_module_t *m, unsigned happened);

/** Goes on with what waits for a lock that was busy. False where it still is. */
bool nicstride_gates_settle_locked(void);

/** A process of another node is lost: what it had by the gate is taken away. Where that cannot be
 *  known the window has failed. False: later. */
bool nicstride_gate_lost_locked(nicstride_module_t *m, int rank);

/** Is no change of the word under way? */
bool nicstride_gate_is_still_locked(const nicstride_module_t *m);

/* ---- origins; MPI threads, no lock held -------------------------------------------------------
 */

/** Takes the lock of a target of another node by its gate. False where that is not open, or not
 *  known, and another must be asked. */
bool nicstride_gate_enter(nicstride_peer_t *p, unsigned type);

/** Has this process the lock of the peer in that way? By the thread that has locked it. */
bool nicstride_gate_holds(const nicstride_peer_t *p);

/** Gives it back. MPI_ERR_OTHER where the target is lost. */
int nicstride_gate_leave(nicstride_peer_t *p);

#endif
