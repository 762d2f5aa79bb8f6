/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What kind of peer a target is, whether it is there, and how its helper thread is woken
 *  where it is away from MPI. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "osc_nicstride/protocol/patience.h"
#include "osc_nicstride/window/module.h"

/** The kind of peer, as choices know it, and the numbers for it. MPI threads, no lock held. */
onic_kind_t nicstride_kind(nicstride_peer_t *p);
const nicstride_path_t *nicstride_path(nicstride_peer_t *p);

/** What is likely to answer a message to the peer. What shows no sign of life counts as present.
 *  MPI threads, no lock held. */
nicstride_presence_t nicstride_presence(nicstride_peer_t *p);

/** A flush is over: the peer was there when it began. Transport lock. */
void nicstride_answered_locked(nicstride_peer_t *p);

/* ---- waking ---------------------------------------------------------------------------------- */

/** True if the peer's helper thread can be woken: then it answers soon, though nobody is in MPI
 *  there. No lock held. */
bool nicstride_can_wake(nicstride_peer_t *p);

/** The same, found out with the transport lock held. */
void nicstride_find_wake_locked(nicstride_peer_t *p);

/** True if every other process of the window can be woken from here. */
bool nicstride_can_wake_all(nicstride_module_t *m);

/** Something is waited for that the peer is to do or answer: wakes it if it is away. `p` may be
 *  NULL. MPI threads, no lock held. */
void nicstride_wake_waited(nicstride_patience_t *w, nicstride_peer_t *p);

/** The same at `now`, in ticks, of a peer that can be woken. Any thread. */
void nicstride_wake(nicstride_patience_t *w, nicstride_peer_t *p, uint64_t now);

/** Ticks of a microsecond. */
double nicstride_usec(void);
