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

#include "common/model/learn.h"
#include "common/node/patience.h"
#include "common/support/clock.h"
#include "osc_nicstride/window/module.h"

enum {
    NICSTRIDE_WAKE = 1,           /**< `p`, which is waited for, is woken where it is away; */
    NICSTRIDE_WAKE_IF_NEEDED = 2, /**< or while what is under way needs it: no adapter does */
    NICSTRIDE_POLL = 4 /**< no event announces what is waited for: a flag in shared memory */
};

/** Waits until `done(arg)` holds, which is called with the wire lock held and may send. Progresses
 *  the wire closely and everything else now and then, and looks for what `p`, which may be NULL,
 *  answers in its slot. `how`: a set of the above. MPI threads, no lock held. */
void nicstride_wait(nicstride_peer_t *p, unsigned how, bool (*done)(void *arg), void *arg);

/** The lock of the peer is wanted, where it is held back (lazy_lock.h): waits until it is there,
 * and what waited for it is under way or done. MPI_ERR_OTHER where it cannot be had. */
int nicstride_await_lock(nicstride_peer_t *p);

/** The same for the lock that this thread holds back, of any peer of any window. A peer that cannot
 *  be reached is noted as failed. */
void nicstride_await_my_lock(void);

/** Can the peer's helper thread be woken? Then it answers soon, though nobody is in MPI there. */
bool nicstride_can_wake(nicstride_peer_t *p);

/** Can every other process of the window be woken from here? */
bool nicstride_can_wake_all(nicstride_module_t *m);

/** Something is waited for that the peer is to do or answer: wakes it if it is away. `p` may be
 *  NULL. MPI threads, no lock held. */
void nicstride_wake_waited(onic_patience_t *w, nicstride_peer_t *p);

/** Looks for processes that have died, and, where somebody may wait for requests or for room that
 * the replies of others take up, after the peers in use. A progress function of Open MPI's, of low
 * priority.
 */
int nicstride_look_after_peers(void);

/* ---- what transfers cost ------------------------------------------------------------------------
 *
 * Watching transfers: is the target in MPI, which is known of peers of the node, and what
 * did a method cost?
 *
 * Only transfers between which nothing else comes are watched: one that begins when all before it
 * are done, and those of its kind that follow it by the same method, until they are waited for
 * (common/model/watch.h).
 *
 * In active target nobody waits for the target, which publishes when it was busy: in memory that
 * both share, at the end of its epoch, whose end the origin waits for before its next access. A
 * fence that goes over several nodes waits for the target, as a flush does; of post/start epochs
 * with targets on other nodes nothing is learned. */

/** The longest messages that no target notes the time of. */
#define NICSTRIDE_OBSERVED 512

/** What is likely to answer a message to the peer. */
nicstride_presence_t nicstride_presence(nicstride_peer_t *p);

/** The way to the peer. */
const nicstride_path_t *nicstride_path(nicstride_peer_t *p);

/** What was learned of transfers like this one; its contents under the wire lock. */
onic_learned_t nicstride_observed(nicstride_peer_t *p, nicstride_direction_t dir,
                                  const onic_layout_t *origin, const onic_layout_t *target);

/** A transfer that is over when its call returns; `begun` is onic_ticks() before it. */
void nicstride_observe_call(nicstride_peer_t *p, onic_learn_cell_t *cell, nicstride_method_t method,
                            uint64_t bytes, uint64_t begun);

/** A transfer by message: the call begins, all of it has been started (both with the wire lock
 *  held), a flush begins, the flush is over. */
void nicstride_observe_begin_locked(nicstride_peer_t *p, onic_learn_cell_t *cell,
                                    nicstride_method_t method, uint64_t bytes);
void nicstride_observe_started_locked(nicstride_peer_t *p);
void nicstride_observe_flush_locked(nicstride_peer_t *p);
void nicstride_observe_end_locked(nicstride_peer_t *p);

/** The same in active target: after a flush that waits for this side alone the epoch is closed; the
 *  target is known to have ended its own. */
void nicstride_observe_close_locked(nicstride_peer_t *p);
void nicstride_observe_ended_locked(nicstride_peer_t *p);

/** At the target: a message begins to be handled, and has had its effect; `len` are its bytes. Of
 *  short ones nothing is noted. All of an epoch have had it: that is published for the origin. */
static inline void nicstride_observe_handled_locked(nicstride_peer_t *p, uint64_t len)
{
    if (len > NICSTRIDE_OBSERVED && p->observed.spent_from == 0)
        p->observed.spent_from = onic_ticks();
}

static inline void nicstride_observe_applied_locked(nicstride_peer_t *p, uint64_t len)
{
    if (len > NICSTRIDE_OBSERVED && p->observed.spent_from != 0)
        p->observed.spent_to = onic_ticks();
}

void nicstride_observe_publish_locked(nicstride_peer_t *p);
