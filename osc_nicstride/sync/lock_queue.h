/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Locks of targets on this node, for its own processes and for others, which ask by
 *  message. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "osc_nicstride/protocol/message.h"
#include "osc_nicstride/window/module.h"

/** Takes the lock of a target on this node; waits for its holder to hand it over. `type` and
 *  `holds` are as in lockq.h. ONIC_ERR_PROC_FAILED if it can never be granted: the target has died,
 *  or the window has failed (control.h). MPI threads, no lock held. */
int nicstride_take_on_node(nicstride_peer_t *p, unsigned type, bool holds);

/** Gives the lock back, and grants it to those that can have it now. An error as above if that
 *  could not be done. */
int nicstride_give_back_on_node(nicstride_module_t *m, int local);

/** Handles a request or release of a lock that came by message. False if the queue is busy: try
 *  again later. `*granted_p` becomes true if the lock was free. The grant then says that what came
 *  with the request is done, which the caller does next. */
bool nicstride_lock_message_locked(nicstride_peer_t *p, const nicstride_msg_t *msg,
                                   bool *granted_p);

/** True if a process that asks for a lock by message is lost. Connects back to it, so that its loss
 *  is noticed while it waits: the request of a process that was lost before would never leave the
 *  queue. */
bool nicstride_asker_is_gone_locked(nicstride_peer_t *p);

/** Ends operations under way to peers that were lost since the last call, including those of
 *  requests, which nobody else ends. Costs one comparison if nothing was lost. Returns the number
 *  of these peers; if a lock was busy, asks to be called again and returns a negative value.
 *  Transport lock. */
int nicstride_end_lost_locked(void);

/* ---- changes of queues, and the grants that follow (change_queue.c) -------------------------- */

/** The queue's lock is not free. */
#define NICSTRIDE_QUEUE_BUSY (-1)

/** A change of the queue of a target on this node, or of the window's queue
 *  (nicstride_ctl_of_window). Called with the queue's lock held. True if the origin has got the
 *  lock and must be told. */
typedef bool (*nicstride_change_t)(nicstride_module_t *m, int local, uint32_t origin,
                                   unsigned what);

/** Changes such a queue (`change` may be NULL) and tells processes that have got the lock, will
 *  never get it, or must leave. Nothing is sent, and no endpoint made, before the queue's lock is
 *  released. MPI threads call this without the transport lock and wait for the queue's lock. With
 *  `wire_locked` it returns NICSTRIDE_QUEUE_BUSY, with nothing changed, if that lock is not free.
 *  If the lock becomes busy when only telling is left, the rest is told later
 *  (nicstride_queues_flush_locked). An error if the queue's lock can never be taken. */
int nicstride_change_queue(nicstride_module_t *m, int local, nicstride_change_t change,
                           uint32_t origin, unsigned what, bool wire_locked);

/** True if work for a busy queue is left. Transport lock. */
extern bool nicstride_queue_waits;

/** Continues that work. False if a queue is still busy. */
bool nicstride_queues_flush_locked(void);

/** Notes that a queue is busy, so that nicstride_queues_flush_locked is called. */
void nicstride_queue_is_busy_locked(void);

/** Tells what was left to be told in a window. */
void nicstride_tell_rest_locked(nicstride_module_t *m);

/** Changes this process's queue, or, on rank 0, the window's. False if that must be tried again. */
bool nicstride_change_mine_locked(nicstride_module_t *m, nicstride_change_t change,
                                  uint32_t origin);
bool nicstride_change_windows_locked(nicstride_module_t *m, nicstride_change_t change,
                                     uint32_t origin, unsigned what);

/** Tells a process of another node that it has a target's lock, or the window's with that type; or,
 *  by `status`, that it will not get it. */
void nicstride_send_grant_locked(nicstride_module_t *m, int local, uint32_t origin, uint32_t type,
                                 int status);

/** Waits until this process `has` the lock of that queue, which is in the memory of `p`. An error
 *  if it will never get it; its request was then withdrawn. MPI threads, no lock held. */
int nicstride_await_grant(nicstride_peer_t *p, int local,
                          bool (*has)(nicstride_module_t *m, int local));

/* ---- the lock of the window (window_lock.c) -------------------------------------------------- */

/** Begins an epoch's use of the window's lock with that type; waits for the lock. `holds` is as in
 *  lockq.h. An error if it cannot be granted. MPI threads, no lock held. */
int nicstride_window_lock_take(nicstride_module_t *m, unsigned type, bool holds);

/** Ends such a use. */
void nicstride_window_lock_give(nicstride_module_t *m);

/** Handles a request or release that came to rank 0. False if the queue is busy: try again
 *  later. */
bool nicstride_window_lock_message_locked(nicstride_peer_t *p, const nicstride_msg_t *msg);

/** Handles rank 0's answers: the lock is granted, or refused with an error class; or it must be
 *  given back. */
void nicstride_window_lock_answered_locked(nicstride_module_t *m, unsigned type, int error);
void nicstride_window_lock_leave_locked(nicstride_module_t *m);
