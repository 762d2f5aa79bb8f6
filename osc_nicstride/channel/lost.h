/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Peers whose connection is lost: nothing that was sent to them will be answered, so all that waits
 * for them ends with an error. Open MPI ends a job of which a process dies; this is for connections
 * that break between processes that live, for jobs that were connected and have ended, and for
 * processes of this node that die in a job which goes on all the same.
 */
#ifndef NICSTRIDE_LOST_H
#define NICSTRIDE_LOST_H

#include <stdbool.h>

#include "osc_nicstride/window/module.h"

/** Is there no use in waiting for the peer? For all loops that wait. Says so once; wire lock. */
bool nicstride_peer_failed_locked(nicstride_peer_t *p);

/** The same of a rank that may not have been a peer yet. */
bool nicstride_rank_failed_locked(nicstride_module_t *m, int rank);

/** Ends all that is under way to the peer, which nothing is sent to any more, and gives back what
 * it has of the room at its process: other windows may still reach that. What the process was lent
 * here comes back where it has died. Wire lock. */
void nicstride_peer_end_locked(nicstride_peer_t *p);

/** The error class of what waited for a lost peer. */
int nicstride_lost_class(const onic_peer_t *wire);

/** Has a process of the node died, so that what is done with all of them cannot end? No lock. */
bool nicstride_node_has_lost(const nicstride_module_t *m);

#endif
