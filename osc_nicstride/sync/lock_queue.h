/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The locks of targets of this node, for its own processes. MPI threads, no lock held. */
#ifndef NICSTRIDE_LOCK_QUEUE_H
#define NICSTRIDE_LOCK_QUEUE_H

#include "osc_nicstride/window/module.h"

/** Takes the lock of a target of this node; waits for whoever holds it to hand it over. `type` as
 * in lockq.h. ONIC_ERR_PROC_FAILED where it will never be had: the target has died, or the window
 * has failed (control.h). */
int nicstride_take_on_node(nicstride_module_t *m, nicstride_peer_t *p, unsigned type);

/** Gives it back, and hands it to those who can have it now. An error as above, where that could
 *  not be done. */
int nicstride_give_back_on_node(nicstride_module_t *m, int local);

#endif
