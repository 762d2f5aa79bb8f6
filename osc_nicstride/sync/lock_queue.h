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

/** A lock request or release that came by message. False where the queue is busy: try later. */
bool nicstride_lock_message_locked(nicstride_peer_t *p, const nicstride_msg_t *msg);

/** A process asks for a lock by message. Is it lost? With a connection back to it that is known if
 *  it happens while it waits. What came before a loss and is handled only now would never be
 *  forgotten. */
bool nicstride_asker_is_gone_locked(nicstride_peer_t *p);

/** Ends the operations under way to peers that were lost since the last call, those of requests
 *  among them, for which nobody else waits. Costs a comparison where nothing was lost. Wire lock.
 *  Returns how many peers; a negative value, and asks to be called again, where a lock was busy. */
int nicstride_end_lost_locked(void);

/* ---- changes of queues, and the grants that follow (change_queue.c) -------------------------- */

/** A queue's lock is not free. */
#define NICSTRIDE_QUEUE_BUSY (-1)

/** What is to be done with the queue of a target of this node, or the window's
 *  (nicstride_ctl_of_window), whose lock is had. True where the origin has the lock by that, and is
 *  to be told so. */
typedef bool (*nicstride_change_t)(nicstride_module_t *m, int local, uint32_t origin,
                                   unsigned what);

/** Changes such a queue, if `change` is not NULL, and tells those that have the lock by that, never
 *  will, or are to leave. Nothing is sent, and no endpoint made, before the queue's lock is given
 *  back. An error where that cannot be had any more. Without the transport lock: MPI threads. With
 * it NICSTRIDE_QUEUE_BUSY where the lock is not free, and nothing has changed. Where that happens
 * when all is done but the telling, or `change` is NULL, the rest is told later
 *  (nicstride_queues_flush_locked). */
int nicstride_change_queue(nicstride_module_t *m, int local, nicstride_change_t change,
                           uint32_t origin, unsigned what, bool wire_locked);

/** Does something wait for a queue that was busy? Wire lock. */
extern bool nicstride_queue_waits;

/** Goes on with that. False where a queue still is. */
bool nicstride_queues_flush_locked(void);

/** One is: has the above called. */
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

/** Begins an epoch's use of the window's lock of that type; waits for it. `holds` as in lockq.h. An
 *  error where it cannot be had. MPI threads, no lock held. */
int nicstride_window_lock_take(nicstride_module_t *m, unsigned type, bool holds);

/** Ends that use. */
void nicstride_window_lock_give(nicstride_module_t *m);

/** A request or a release came to rank 0. False where the queue is busy: try later. */
bool nicstride_window_lock_message_locked(nicstride_peer_t *p, const nicstride_msg_t *msg);

/** It is granted, or, by an error class, refused; it is to be given back. */
void nicstride_window_lock_answered_locked(nicstride_module_t *m, unsigned type, int error);
void nicstride_window_lock_leave_locked(nicstride_module_t *m);
