/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Peers whose connection is lost: nothing that was sent to them will be answered, so all that waits
 * for them ends with an error. Open MPI ends a job of which a process dies; this is for connections
 * that break between processes that live, and for jobs that were connected and have ended.
 */
#ifndef NICSTRIDE_LOST_H
#define NICSTRIDE_LOST_H

#include <stdbool.h>

#include "osc_nicstride/module.h"

/** Is there no use in waiting for the peer? For all loops that wait. Says so once; wire lock. */
bool nicstride_peer_failed_locked(nicstride_peer_t *p);

/**
 * Ends the operations under way to peers that were lost since the last call, those of requests
 * among them, for whom nobody else waits. Costs a comparison where nothing was lost. Wire lock.
 * Returns how many peers.
 */
int nicstride_end_lost_locked(void);

#endif
