/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Watching transfers: is the target in MPI, which can be told of peers of the node, and what did a
 * method cost?
 *
 * Only transfers between which nothing else comes are measured: one that begins when all before it
 * are done, and that is flushed at once.
 */
#ifndef NICSTRIDE_OBSERVE_H
#define NICSTRIDE_OBSERVE_H

#include "common/model/learn.h"
#include "osc_nicstride/window/module.h"

/** Who is likely to answer a message to the peer. */
nicstride_presence_t nicstride_presence(nicstride_peer_t *p);

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

/** Calls `f` with all that was learned: of each process of the node, and of the network. Wire lock,
 * or nobody else is there any more. */
void nicstride_learned_each(void (*f)(const onic_learn_t *learn, bool on_network));

#endif
