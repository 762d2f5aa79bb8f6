/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The locks of targets of this node: for its own processes, and as others ask by message. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "osc_nicstride/protocol/message.h"
#include "osc_nicstride/window/module.h"

/** Takes the lock of a target of this node; waits for its holder to hand it over. `type` and
 * `since` as in lockq.h. ONIC_ERR_PROC_FAILED where it will never be had: the target has died, or
 * the window has failed (control.h). MPI threads, no lock held. */
int nicstride_take_on_node(nicstride_peer_t *p, unsigned type, uint64_t since);

/** Gives it back, and hands it to those that can have it now. An error as above, where that could
 *  not be done. */
int nicstride_give_back_on_node(nicstride_module_t *m, int local);

/** A lock request or release that came by message. False where the queue is busy: try later. */
bool nicstride_lock_message_locked(nicstride_peer_t *p, const nicstride_msg_t *msg);

/** The request for a lock with what is to be done under it behind it: true where the lock is had at
 *  once. Else nothing was done, and the above is to be called. */
bool nicstride_lock_at_once_locked(nicstride_peer_t *p, const nicstride_msg_t *msg);

/** Ends the operations under way to peers that were lost since the last call, those of requests
 *  among them, for which nobody else waits. Costs a comparison where nothing was lost. Wire lock.
 *  Returns how many peers; a negative value, and asks to be called again, where a lock was busy. */
int nicstride_end_lost_locked(void);

/* ---- changes of queues, and the grants that follow (change_queue.c) -------------------------- */

/** A queue's lock is not free. */
#define NICSTRIDE_QUEUE_BUSY (-1)

/** What is to be done with the queue of a target of this node, whose lock is had. False: nothing
 *  has changed, and nobody can have got the lock by it. */
typedef bool (*nicstride_change_t)(nicstride_module_t *m, int local, uint32_t origin);

/** Changes the queue of a target of this node, if `change` is not NULL, and sends to those that
 *  have the lock by that, or never will. Nothing is sent, and no endpoint made, before the queue's
 *  lock is given back. An error where that cannot be had any more. Without the wire lock: MPI
 *  threads. With it NICSTRIDE_QUEUE_BUSY where the lock is not free. */
int nicstride_change_queue(nicstride_module_t *m, int local, nicstride_change_t change,
                           uint32_t origin, bool wire_locked);

/** Changes my queue. False where that must be tried again. */
bool nicstride_change_mine_locked(nicstride_module_t *m, nicstride_change_t change,
                                  uint32_t origin);

/** Tells a process of another node that it has the lock of a target, or, by `status`, that it will
 *  not. */
void nicstride_send_grant_locked(nicstride_module_t *m, int local, uint32_t origin, int status);
