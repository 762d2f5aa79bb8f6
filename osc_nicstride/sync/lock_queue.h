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

/** Takes the lock of a queue that this node keeps, in the memory of `p`: a target's, or the
 *  window's (nicstride_ctl_of_window); waits for its holder to hand it over. `what`: its type,
 *  perhaps with NICSTRIDE_LOCK_HOLDS. ONIC_ERR_PROC_FAILED if it can never be granted: the target
 *  has died, or the window has failed (control.h). MPI threads, no lock held. */
int nicstride_take_on_node(nicstride_peer_t *p, int local, unsigned what);

/** Gives it back, and grants it to those that can have it now. An error as above if that could not
 *  be done. */
int nicstride_give_back_on_node(nicstride_module_t *m, int local);

/** Handles a request for this process's lock, or on rank 0 for the window's, that came by message.
 *  True if the lock was free: the grant, which is sent, says that what came with the request is
 *  done, which the caller does next. */
bool nicstride_lock_message_locked(nicstride_peer_t *p, const nicstride_msg_t *msg);

/** Handles the release of such a lock. */
void nicstride_unlock_message_locked(nicstride_peer_t *p);

/** Ends operations under way to peers that were lost since the last call, including those of
 *  requests, which nobody else ends. Costs one comparison if nothing was lost. Returns the number
 *  of these peers. Transport lock. */
int nicstride_end_lost_locked(void);

/* ---- changes of queues, and the grants that follow (change_queue.c) -------------------------- */

/** What changes for one origin in the queue of a target on this node, or in the window's queue
 *  (nicstride_ctl_of_window). */
typedef enum nicstride_change {
    NICSTRIDE_LOCK_UNCHANGED,
    NICSTRIDE_LOCK_RELEASED,
    /** It leaves the queue, or does not want the lock any more. If it has died, on this node, and
     *  may have used the lock, the window has failed. */
    NICSTRIDE_LOCK_LOST
} nicstride_change_t;

/** Changes such a queue and tells processes that have got the lock, will never get it, or must
 *  leave. Waits for the queue's lock, which is held for less than a microsecond by a process that
 *  waits for nothing meanwhile; so handlers wait for it, too. Nothing is sent, and no endpoint
 *  made, before it is released. `locked`: the caller has the transport lock. An error if the
 *  queue's lock can never be taken, as its owner has died. */
int nicstride_change_queue(nicstride_module_t *m, int local, nicstride_change_t change,
                           uint32_t origin, bool locked);

/** Tells a process of another node that it has a target's lock, or the window's with that type; or,
 *  by `status`, that it will not get it. */
void nicstride_send_grant_locked(nicstride_module_t *m, int local, uint32_t origin, uint32_t type,
                                 int status);

/* ---- the lock of the window (window_lock.c) -------------------------------------------------- */

/** Begins an epoch's use of the window's lock; waits for the lock. `what` is as above. An error if
 *  it cannot be granted. MPI threads, no lock held. */
int nicstride_window_lock_take(nicstride_module_t *m, unsigned what);

/** Ends such a use. */
void nicstride_window_lock_give(nicstride_module_t *m);

/** Handles rank 0's answers: the lock is granted, or refused with an error class. */
void nicstride_window_lock_answered_locked(nicstride_module_t *m, unsigned type, int error);

/** Handles a message that gives the lock back to rank 0, or by which one of rank 0's node wants it
 *  back. */
void nicstride_window_lock_leave_locked(nicstride_peer_t *p);
