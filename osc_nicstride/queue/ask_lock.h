/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Asking for the locks of targets on other nodes, with the first operation where that can be
 *  (protocol/asked_lock.h).
 *
 *  A program may rely on getting several locks in the order in which it asks for them, or processes
 *  that take them in the same order could wait for each other in a circle. So a thread that asks
 *  for another lock gets first the one whose request it holds back. A process holds back one
 *  request at a time; while it does another thread's are sent at once. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "osc_nicstride/queue/send.h"
#include "osc_nicstride/window/module.h"

/** MPI_Win_lock of a target on another node: the request is held back, or, where that cannot be,
 *  sent and its answer waited for. `what`: type of the lock and NICSTRIDE_LOCK_HOLDS. An error
 *  where the lock will not be had. MPI threads, no lock held. */
int nicstride_want_lock(nicstride_peer_t *p, unsigned what);

/** Waits until the lock of the peer is had, where that was not waited for yet. Returns as above.
 *  MPI threads, no lock held. */
int nicstride_await_lock(nicstride_peer_t *p);

/** The same of the lock whose request this thread holds back, in whatever window: to be called
 *  before another lock is asked for. An error shows with the epoch of that lock. */
void nicstride_await_my_lock(void);

/** The epoch ends: the release goes with the request where that has not left yet and the epoch has
 *  one operation. To be called before the flush. MPI threads, no lock held. */
void nicstride_release_along(nicstride_peer_t *p);

/** Gives the lock back, if that was not done along with the request, and forgets the request. An
 *  error where it was not had, or the target does not hear of it. As above. */
int nicstride_give_lock(nicstride_peer_t *p);

/** True if the next operation may go with the request. */
static inline bool nicstride_lock_is_held_back(const nicstride_peer_t *p)
{
    return p->lock.asked.state == NICSTRIDE_ASKED_HELD;
}

/** True if the next operation may be sent now, in a message that is copied, perhaps with the
 *  request. Transport lock. */
static inline bool nicstride_may_post_locked(const nicstride_peer_t *p, uint64_t kept)
{
    return nicstride_has_credit_locked(p, kept) && p->lock.asked.state != NICSTRIDE_ASKED_WAITS;
}

/** Posts the message of an operation as nicstride_post_locked, or with the request. */
void nicstride_post_operation_locked(nicstride_peer_t *p, const void *message, size_t len,
                                     bool may_wait);

/** Sends the request if it is held back: something is in the queue that it cannot carry. */
void nicstride_ask_lock_locked(nicstride_peer_t *p);

/** The lock is granted, or, by an error class, refused; `done`: so is what went with the request.
 *  Transport lock. */
void nicstride_lock_answered_locked(nicstride_peer_t *p, int error, bool done);
