/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The locks of targets of this node: for its own processes, and as others ask by message. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "osc_nicstride/protocol/message.h"
#include "osc_nicstride/window/module.h"

/** Takes the lock of a target of this node; waits for its holder to hand it over. `type` and
 * `holds` as in lockq.h. ONIC_ERR_PROC_FAILED where it will never be had: the target has died, or
 * the window has failed (control.h). MPI threads, no lock held. */
int nicstride_take_on_node(nicstride_peer_t *p, unsigned type, bool holds);

/** Gives it back, and hands it to those that can have it now. An error as above, where that could
 *  not be done. */
int nicstride_give_back_on_node(nicstride_module_t *m, int local);

/** A lock request or release that came by message. False where the queue is busy: try later.
 *  `*granted_p` becomes true where the lock was free; the grant says then that what came with the
 *  request is done, which the caller does next. */
bool nicstride_lock_message_locked(nicstride_peer_t *p, const nicstride_msg_t *msg,
                                   bool *granted_p);

/** True if a process that asks for a lock by message is lost. Connects back to it, so that a later
 *  loss is noticed while it waits: a request of a process that was lost before would never be taken
 *  out of the queue. */
bool nicstride_asker_is_gone_locked(nicstride_peer_t *p);

/** Ends the operations under way to peers that were lost since the last call, including those of
 *  requests, which nobody else ends. One comparison if nothing was lost. Returns the number of
 * peers; a negative value, and asks to be called again, if a lock was busy. Transport lock. */
int nicstride_end_lost_locked(void);

/* ---- changes of queues, and the grants that follow (change_queue.c) -------------------------- */

/** A queue's lock is not free. */
#define NICSTRIDE_QUEUE_BUSY (-1)

/** A change of the queue of a target of this node, or of the window's (nicstride_ctl_of_window).
 * The queue's lock is held. True if the origin has got the lock and is to be told. */
typedef bool (*nicstride_change_t)(nicstride_module_t *m, int local, uint32_t origin,
                                   unsigned what);

/** Changes such a queue (`change` may be NULL) and tells the processes that have got the lock, will
 *  never get it, or are to leave. Nothing is sent, and no endpoint made, before the queue's lock is
 *  released. MPI threads call it without the transport lock and wait for the queue's lock; with
 *  `wire_locked` it returns NICSTRIDE_QUEUE_BUSY, nothing changed, if that is not free. If the lock
 *  becomes busy when only the telling is left, the rest is told later
 *  (nicstride_queues_flush_locked). An error if the queue's lock can never be had. */
int nicstride_change_queue(nicstride_module_t *m, int local, nicstride_change_t change,
                           uint32_t origin, unsigned what, bool wire_locked);

/** True if something waits for a queue that was busy. Transport lock. */
extern bool nicstride_queue_waits;

/** Goes on with it. False if a queue is still busy. */
bool nicstride_queues_flush_locked(void);

/** A queue is busy: has nicstride_queues_flush_locked called. */
void nicstride_queue_is_busy_locked(void);

/** Tells what was left to tell in a window. */
void nicstride_tell_rest_locked(nicstride_module_t *m);

/** Changes my queue, or, at rank 0, the window's. False where that must be tried again. */
bool nicstride_change_mine_locked(nicstride_module_t *m, nicstride_change_t change,
                                  uint32_t origin);
bool nicstride_change_windows_locked(nicstride_module_t *m, nicstride_change_t change,
                                     uint32_t origin, unsigned what);

/** Tells a process of another node that it has the lock of a target, or the window's of that type,
 *  or, by `status`, that it will not. */
void nicstride_send_grant_locked(nicstride_module_t *m, int local, uint32_t origin, uint32_t type,
                                 int status);

/** Waits until this process `has` the lock of that queue. `p`: whose memory that is. An error where
 *  it will not have it any more, and then its request was taken back. MPI threads, no lock held. */
int nicstride_await_grant(nicstride_peer_t *p, int local,
                          bool (*has)(nicstride_module_t *m, int local));

/* ---- the lock of the window (window_lock.c) -------------------------------------------------- */

/** Begins an epoch's use of the window's lock with that type; waits for it. `holds` as in lockq.h.
 * An error if it cannot be had. MPI threads, no lock held. */
int nicstride_window_lock_take(nicstride_module_t *m, unsigned type, bool holds);

/** Ends that use. */
void nicstride_window_lock_give(nicstride_module_t *m);

/** A request or a release came to rank 0. False where the queue is busy: try later. */
bool nicstride_window_lock_message_locked(nicstride_peer_t *p, const nicstride_msg_t *msg);

/** It is granted, or, by an error class, refused; it is to be given back. */
void nicstride_window_lock_answered_locked(nicstride_module_t *m, unsigned type, int error);
void nicstride_window_lock_leave_locked(nicstride_module_t *m);
