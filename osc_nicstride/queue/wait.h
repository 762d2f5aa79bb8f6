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

/** When a wait wakes its peer, if that is away. */
typedef enum nicstride_wake_when {
    NICSTRIDE_WAKE_NOT,
    NICSTRIDE_WAKE,
    NICSTRIDE_WAKE_IF_NEEDED /**< if what is under way needs it; an adapter's work does not */
} nicstride_wake_when_t;

/** Waits until `done(arg)` returns true. `done` is called with the transport lock held and may
 *  send. Progresses the transport closely and everything else now and then, and looks for answers
 *  of `p` in its reply line. `p` is NULL if what is awaited is a flag in shared memory, which no
 *  event announces. MPI threads, no lock held. */
void nicstride_wait(nicstride_peer_t *p, nicstride_wake_when_t wake, bool (*done)(void *arg),
                    void *arg);

/** If requests may be awaited, looks after the peers in use. A progress function of Open MPI, of
 *  low priority. */
int nicstride_look_after_peers(void);
