/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Watching transfers: is the target in MPI, which is known of peers of the node, and what
 *  did a method cost?
 *
 *  Only transfers between which nothing else comes are watched: one that begins when all before it
 *  are done, and those of its kind that follow it by the same method, until they are waited for
 *  (common/model/watch.h).
 *
 *  In active target nobody waits for the target, which publishes when it was busy: in memory that
 *  both share, at the end of its epoch, whose end the origin waits for before its next access. A
 *  fence that goes over several nodes waits for the target, as a flush does; of post/start epochs
 *  with targets on other nodes nothing is learned. */
#pragma once

#include "common/model/learn.h"
#include "common/support/clock.h"
#include "osc_nicstride/window/module.h"

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

/** Calls `f` with all that was learned, of each process of the node, and of the network, and the
 * way there. Wire lock, or nobody else is there any more. */
void nicstride_learned_each(void (*f)(const onic_learn_t *learn, const nicstride_path_t *path));
