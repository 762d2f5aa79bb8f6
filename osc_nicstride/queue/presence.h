/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What kind of peer a target is, whether it responds, and how its helper thread is woken
 *  while it is away from MPI. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "osc_nicstride/window/peer.h"
#include "osc_nicstride/window/state.h"

/** Finds the kind of peer, and has the transport find its signs of life. Several threads may do
 *  this at once: what the first one has written is by then read without a lock. */
void nicstride_look_up(nicstride_peer_t *p);

/** The kind of peer for choices, and its cost numbers. MPI threads, no lock held. */
static inline onic_kind_t nicstride_kind(nicstride_peer_t *p)
{
    if (!__atomic_load_n(&p->observed.looked_up, __ATOMIC_ACQUIRE))
        nicstride_look_up(p);
    return p->observed.kind;
}
static inline const nicstride_path_t *nicstride_path(nicstride_peer_t *p)
{
    return &nicstride_component.path[nicstride_kind(p)];
}

/** Who is likely to answer a message to the peer. A peer that shows no signs of life counts as
 *  present. MPI threads, no lock held. */
nicstride_presence_t nicstride_presence(nicstride_peer_t *p);

/** Notes the end of a flush: the peer responded after its begin. Transport lock. */
void nicstride_answered_locked(nicstride_peer_t *p);

/* ---- waking ---------------------------------------------------------------------------------- */

/** Nanoseconds without a sign of life after which a peer counts as away. A peer that waits in MPI
 *  gives one every few microseconds, unless its progress functions are slow. */
#define NICSTRIDE_WAKE_AWAY 15000
/** Nanoseconds from one wake-up to the next. */
#define NICSTRIDE_WAKE_PAUSE 250000

/** True if the peer's helper thread can be woken. Then it answers soon even if no thread is in MPI
 *  there. No lock held. */
bool nicstride_can_wake(nicstride_peer_t *p);

/** True if this process can wake every other process of the window. */
bool nicstride_can_wake_all(nicstride_module_t *m);

/** Wakes the peer if it is away, because this process waits for an action or answer of it. It may
 *  only have lost its processor, or be busy in one long call, and then its helper thread merely
 *  takes a processor away: so it is woken again only after NICSTRIDE_WAKE_PAUSE. `*woken`: when
 *  it was last woken in this wait; 0: not yet. `p` may be NULL. MPI threads, no lock held. */
void nicstride_wake_waited(uint64_t *woken, nicstride_peer_t *p);

/** The same, for a peer that can be woken; `now` is onic_now_nsec(). Any thread. */
void nicstride_wake(uint64_t *woken, nicstride_peer_t *p, uint64_t now);
