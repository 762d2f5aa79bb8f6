/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Asking for locks of targets on other nodes, together with the first operation if possible
 *  (protocol/asked_lock.h).
 *
 *  A program may rely on getting several locks in the order in which it asks for them; otherwise
 *  processes that take locks in the same order could deadlock. So a thread that asks for another
 *  lock first gets the one whose request it holds back. A process holds back only one request at a
 *  time; meanwhile other threads' requests are sent at once. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "osc_nicstride/queue/send.h"
#include "osc_nicstride/window/peer.h"

/** MPI_Win_lock of a target on another node. The request is held back, or, if that is impossible,
 *  sent and its answer awaited. `what`: type of the lock and NICSTRIDE_LOCK_HOLDS. An error if the
 *  lock will not be granted. MPI threads, no lock held. */
int nicstride_want_lock(nicstride_peer_t *p, unsigned what);

/** Waits until the peer's lock is granted, unless that happened already. Returns as above. MPI
 *  threads, no lock held. */
int nicstride_await_lock(nicstride_peer_t *p);

/** The same for the lock whose request this thread holds back, in any window. Must be called before
 *  another lock is asked for. An error is reported with the epoch of that lock. */
void nicstride_await_my_lock(void);

/** Ends the epoch: the release goes with the request, if that has not left yet and the epoch has
 *  only one operation. Must be called before the flush. MPI threads, no lock held. */
void nicstride_release_along(nicstride_peer_t *p);

/** Gives the lock back, unless the request carried the release, and forgets the request. An error
 *  if the lock was not granted, or the target cannot be told. MPI threads, no lock held. */
int nicstride_give_lock(nicstride_peer_t *p);

/** Forgets the lock and its request. Transport lock. */
void nicstride_forget_lock_locked(nicstride_peer_t *p);

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

/** Posts the message of an operation like nicstride_post_locked, or with the request. */
void nicstride_post_operation_locked(nicstride_peer_t *p, const void *message, size_t len,
                                     bool may_wait);

/** Sends the request, which is held back, with what it carries. It may wait for other messages, as
 *  the release may follow. */
void nicstride_send_request_locked(nicstride_peer_t *p);

/** Sends the request if it is held back, because an operation that it cannot carry is queued. */
static inline void nicstride_ask_lock_locked(nicstride_peer_t *p)
{
    if (nicstride_lock_is_held_back(p))
        nicstride_send_request_locked(p);
}

/** Notes that the lock is granted, or refused with an error class; `done`: what went with the
 *  request is done, too. Transport lock. */
void nicstride_lock_answered_locked(nicstride_peer_t *p, int error, bool done);
