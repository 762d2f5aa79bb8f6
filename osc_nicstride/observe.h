/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Watching transfers to peers of the node: is the target in MPI, and what did a method cost?
 *
 * Only transfers between which nothing else comes are measured: one that begins when all before it
 * are done, and that is flushed at once.
 */
#ifndef NICSTRIDE_OBSERVE_H
#define NICSTRIDE_OBSERVE_H

#include "osc_nicstride/module.h"

/** Who is likely to answer a message to the peer. */
nicstride_presence_t nicstride_presence(nicstride_peer_t *p);

/** What was learned of transfers like this one; its contents under the wire lock. */
nicstride_learned_t nicstride_observed(nicstride_peer_t *p, nicstride_direction_t dir,
                                       const onic_layout_t *origin, const onic_layout_t *target);

/**
 * The method for an operation of few bytes, PACK or CMA. `*cell_p` is where its cost is to be
 * noted, NULL for nowhere. Single copy must be possible. Takes the wire lock now and then.
 */
nicstride_method_t nicstride_quick_method(nicstride_module_t *m, nicstride_peer_t *p,
                                          nicstride_direction_t dir,
                                          nicstride_tune_cell_t **cell_p);

/** Is a contiguous transfer best done by single copy at once? That must be possible. */
bool nicstride_quick_copies(nicstride_module_t *m, nicstride_peer_t *p, nicstride_direction_t dir,
                            size_t bytes);

/** A transfer that is over when its call returns; `begun` is onic_ticks() before it. */
void nicstride_observe_call(nicstride_peer_t *p, nicstride_tune_cell_t *cell,
                            nicstride_method_t method, uint64_t bytes, uint64_t begun);

/** A transfer by message: the call begins, all of it has been started (both with the wire lock
 *  held), a flush begins, the flush is over. */
void nicstride_observe_begin_locked(nicstride_peer_t *p, nicstride_tune_cell_t *cell,
                                    nicstride_method_t method, uint64_t bytes);
void nicstride_observe_started_locked(nicstride_peer_t *p);
void nicstride_observe_flush_locked(nicstride_peer_t *p);
void nicstride_observe_end_locked(nicstride_peer_t *p);

/** Frees what was learned, at the end of the process. */
void nicstride_observe_fini(void);

#endif
