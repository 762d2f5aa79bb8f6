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

/** What the origin of a change is to be told. */
typedef enum nicstride_tell {
    NICSTRIDE_TELL_NOTHING,
    NICSTRIDE_TELL_GRANTED, /**< it has the lock */
    NICSTRIDE_TELL_REFUSED  /**< it will not: it has it, or waits for it */
} nicstride_tell_t;

/** What is to be done with the queue of a target of this node, or the window's
 *  (nicstride_ctl_of_window), whose lock is had. */
typedef nicstride_tell_t (*nicstride_change_t)(nicstride_module_t *m, int local, uint32_t origin,
                                               unsigned what);

/** Changes such a queue, if `change` is not NULL, and tells those that have the lock by that, never
 *  will, or are to leave. Nothing is sent, and no endpoint made, before the queue's lock is given
 *  back. An error where that cannot be had any more; OMPI_ERR_RMA_SYNC where this process's request
 *  is refused. Without the wire lock: MPI threads. With it NICSTRIDE_QUEUE_BUSY where the lock is
 *  not free, and nothing has changed. Where that happens when all is done but the telling, or
 *  `change` is NULL, the rest is told later (nicstride_queues_settle_locked). */
int nicstride_change_queue(nicstride_module_t *m, int local, nicstride_change_t change,
                           uint32_t origin, unsigned what, bool wire_locked);

/** Does something wait for a queue that was busy? Wire lock. */
extern bool nicstride_queue_waits;

/** Goes on with that. False where a queue still is. */
bool nicstride_queues_settle_locked(void);

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

/* ---- the gate -----------------------------------------------------------------------------------
 *
 * Locks by the gate (protocol/lockq.h): of the target, which opens and closes it, and of
 * origins, which go in and out. The gate is a word in registered memory, made when the first
 * origin asks for keys, where an adapter does atomics here. The answer brings the key. */

/* ---- the target; wire lock ------------------------------------------------------------------- */

/** The key for the own gate, which is made if need be; at most `cap` bytes. 0: there is none. */
size_t nicstride_gate_offer_locked(nicstride_module_t *m, void *bytes, size_t cap);

/** What has happened at the gate and is not dealt with yet. */
enum {
    NICSTRIDE_GATE_IS_CHANGED = 1,  /**< the word was */
    NICSTRIDE_GATE_IS_RELEASED = 2, /**< a far process has given the lock back in the queue */
    NICSTRIDE_GATE_IS_WANTED = 4,   /**< somebody waits, or has gone out */
    NICSTRIDE_GATE_BY_NEAR = 8      /**< that is a process of the node */
};

/** Something has happened at the own gate, a set of these; nothing where there is none. */
void nicstride_gate_note_locked(nicstride_module_t *m, unsigned happened);

/** Deals with that, as far as it has waited for the queue; nothing where there is no gate. */
void nicstride_gate_settle_locked(nicstride_module_t *m);

/** A process of another node is lost: the lock that it had by the gate is taken away. Where it may
 *  be one of those that share it the window has failed. False: later. */
bool nicstride_gate_lost_locked(nicstride_module_t *m, int rank);

/** Is no change of the word under way? */
bool nicstride_gate_is_still_locked(const nicstride_module_t *m);

/** The window goes away; nothing is under way with it. */
void nicstride_gate_free_locked(nicstride_module_t *m);

/* ---- origins --------------------------------------------------------------------------------- */

/** A target, which is not trusted, has told the key of its gate. Wire lock. */
void nicstride_gate_told_locked(nicstride_peer_t *p, const void *bytes, size_t len);

/** Takes the lock of a target of another node by its gate. False where that is not open, or not
 *  known, and another must be asked. MPI threads, no lock held. */
bool nicstride_gate_enter(nicstride_peer_t *p, unsigned type);

/** Has this process the lock of the peer in that way? By the thread that has locked it. */
bool nicstride_gate_holds(const nicstride_peer_t *p);

/** Gives it back. MPI_ERR_OTHER where the target is lost. MPI threads, no lock held. */
int nicstride_gate_leave(nicstride_peer_t *p);

/** The peer goes away; nothing is under way with it. Wire lock. */
void nicstride_entrance_free_locked(nicstride_peer_t *p);
