/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Waiting for what peers do. */
#ifndef NICSTRIDE_WAIT_H
#define NICSTRIDE_WAIT_H

#include <stdbool.h>

#include "osc_nicstride/window/module.h"

/** Progresses everything once; for waiting loops of MPI threads, no lock held. */
void nicstride_progress(void);

/** Waits until `done(arg)` holds, which is called with the wire lock held and may send. Progresses
 *  the wire closely and everything else now and then, looks for what `p`, who is waited for,
 *  answers in its slot, and wakes it where it is away. MPI threads, no lock held. */
void nicstride_wait_until(nicstride_peer_t *p, bool (*done)(void *arg), void *arg);

/** The same, but wakes nobody. */
void nicstride_wait_patiently(nicstride_peer_t *p, bool (*done)(void *arg), void *arg);

/** The same where no event announces what is waited for: a flag in shared memory. */
void nicstride_wait_polling(bool (*done)(void *arg), void *arg);

#endif
