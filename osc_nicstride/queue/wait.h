/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Waiting for what peers do.
 *
 *  Every loop in which an MPI thread waits for a peer wakes it now and then where it is away
 *  (presence.h). Who waits for a request does so in loops that are not ours: there a progress
 *  function looks after the peers. */
#pragma once

#include <stdbool.h>

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

/** Looks for processes that have died, and, where somebody may wait for requests, after the peers
 * in use. A progress function of Open MPI's, of low priority. */
int nicstride_look_after_peers(void);
