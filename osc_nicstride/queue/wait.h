/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Waiting for what peers do, and waking the helper thread of one that is waited for and away
 *  from MPI.
 *
 *  Every loop in which an MPI thread waits for a peer calls nicstride_wake_waited now and then. Who
 *  waits for a request does so in loops that are not ours: there a progress function looks after
 *  the peers. */
#pragma once

#include <stdbool.h>

#include "osc_nicstride/protocol/patience.h"
#include "common/support/clock.h"
#include "osc_nicstride/window/module.h"

enum {
    NICSTRIDE_WAKE = 1,           /**< `p`, which is waited for, is woken where it is away; */
    NICSTRIDE_WAKE_IF_NEEDED = 2, /**< or while what is under way needs it: no adapter does */
    NICSTRIDE_POLL = 4 /**< no event announces what is waited for: a flag in shared memory */
};

/** Waits until `done(arg)` holds, which is called with the transport lock held and may send.
 * Progresses the transport closely and everything else now and then, and looks for what `p`, which
 * may be NULL, answers in its reply line. `how`: a set of the above. MPI threads, no lock held. */
void nicstride_wait(nicstride_peer_t *p, unsigned how, bool (*done)(void *arg), void *arg);

/** Can the peer's helper thread be woken? Then it answers soon, though nobody is in MPI there. */
bool nicstride_can_wake(nicstride_peer_t *p);

/** Can every other process of the window be woken from here? */
bool nicstride_can_wake_all(nicstride_module_t *m);

/** Something is waited for that the peer is to do or answer: wakes it if it is away. `p` may be
 *  NULL. MPI threads, no lock held. */
void nicstride_wake_waited(nicstride_patience_t *w, nicstride_peer_t *p);

/** Looks for processes that have died, and, where somebody may wait for requests, after the peers
 * in use. A progress function of Open MPI's, of low priority. */
int nicstride_look_after_peers(void);

/* ---- is the target there? -------------------------------------------------------------------- */

/** What is likely to answer a message to the peer. What shows no sign of life counts as present. */
nicstride_presence_t nicstride_presence(nicstride_peer_t *p);

/** The kind of peer, as choices know it, and the numbers for it. */
onic_kind_t nicstride_kind(nicstride_peer_t *p);
const nicstride_path_t *nicstride_path(nicstride_peer_t *p);

/** A flush is over: the peer was there when it began. Transport lock. */
void nicstride_answered_locked(nicstride_peer_t *p);
