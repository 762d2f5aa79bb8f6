/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Locks asked for by message.
 */
#ifndef NICSTRIDE_LOCK_H
#define NICSTRIDE_LOCK_H

#include <stdbool.h>

#include "osc_nicstride/window/module.h"
#include "osc_nicstride/protocol/message.h"

/** A lock request or release that came by message. False where the queue is busy: try later. */
bool nicstride_lock_message_locked(nicstride_module_t *m, nicstride_peer_t *p,
                                   const nicstride_msg_t *msg);

/** The request for a lock with what is to be done under it behind it: true where the lock is had at
 *  once. Else nothing was done, and the above is to be called. */
bool nicstride_lock_at_once_locked(nicstride_module_t *m, nicstride_peer_t *p,
                                   const nicstride_msg_t *msg);

/** The connection to a process is lost: what it holds of my lock goes to those who wait for it, and
 *  it waits for it no more. But where it is of this node and has died with the lock the window has
 *  failed. False where the queue is busy: try later. */
bool nicstride_lock_forget_locked(nicstride_module_t *m, int rank);

/** The window has failed: processes of other nodes that wait for my lock are told. False where the
 *  queue is busy: try later. */
bool nicstride_lock_refuse_locked(nicstride_module_t *m);

#endif
