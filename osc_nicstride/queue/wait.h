/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Waiting for actions of peers.
 *
 *  Every loop in which an MPI thread waits for a peer wakes that peer now and then if it is away
 *  (presence.h). Waits for requests are loops in Open MPI: there a progress function looks after
 *  the peers. */
#pragma once

#include <stdbool.h>

#include "osc_nicstride/window/peer.h"

enum {
    NICSTRIDE_WAKE = 1, /**< wake `p`, which is awaited, if it is away */
    NICSTRIDE_WAKE_IF_NEEDED =
        2, /**< the same, but only if what is under way needs it; an adapter's work does not */
    NICSTRIDE_POLL = 4 /**< no event announces what is awaited: it is a flag in shared memory */
};

/** Waits until `done(arg)` returns true. `done` is called with the transport lock held and may
 *  send. Progresses the transport closely and everything else now and then, and looks for answers
 *  of `p`, which may be NULL, in its reply line. `how`: a set of the above. MPI threads, no lock
 *  held. */
void nicstride_wait(nicstride_peer_t *p, unsigned how, bool (*done)(void *arg), void *arg);

/** If requests may be awaited, looks after the peers in use. A progress function of Open MPI, of
 *  low priority. */
int nicstride_look_after_peers(void);
