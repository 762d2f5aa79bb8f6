/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Lazy locks, asked for with the first operation (lockq.h): those of MPI_Win_lock of targets
 *  on other nodes, one at a time in this process.
 *
 *  A program may rely on getting several locks in the order in which it asks for them, or processes
 *  that take them in the same order would wait for each other in a circle. So a thread that asks
 *  for a lock first gets the one that it has held back. A lock that one thread asks for while
 *  another's is held back is asked for at once.
 *
 *  A lock without an operation stays until there is one, since nobody waits for it. With one it
 *  leaves as what waits for others does (send.h): with a flush or the release, and whenever anybody
 *  progresses the transport.
 *
 *  It earns a round trip of the two that lock, put of 8 bytes, unlock took. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "osc_nicstride/window/module.h"

/** The lock of the peer will be asked for later. `holds`: as in lockq.h. False where that is not
 *  possible. */
bool nicstride_lazy_lock_begin(nicstride_peer_t *p, unsigned type, bool holds);

/** Is the lock of the peer held back, or asked for but not granted yet? Inlined is what happens
 *  mostly; without the transport lock `false` is sure, where no other thread is in the epoch. */
static inline bool nicstride_lazy_lock_may_be(const nicstride_peer_t *p)
{
    return __atomic_load_n(&p->lock.lazy, __ATOMIC_RELAXED) != NULL;
}
bool nicstride_lazy_lock_is_locked(nicstride_peer_t *p);

/** The lock of the peer is wanted, with all that waits for it, and more is to come. Does not wait.
 *  Wire lock. */
void nicstride_lazy_lock_ask_locked(nicstride_peer_t *p);

/** The same for the one that something waits for. Returns 1 where there is one, else 0. Wire lock.
 */
int nicstride_lazy_lock_send_kept_locked(void);

/** The peer whose lock this thread holds back, of any window, by MPI_Win_lock, or NULL. */
nicstride_peer_t *nicstride_lazy_lock_mine(void);

/** The epoch ends: where one operation waits for the lock, all goes together, with the release.
 *  False where there is more to be done, or less. What was sent is to be flushed. */
bool nicstride_lazy_lock_release(nicstride_peer_t *p);

/** The epoch is over, in one way or the other. */
void nicstride_lazy_lock_end(nicstride_peer_t *p);
void nicstride_lazy_lock_end_locked(nicstride_peer_t *p);

/** May an operation whose message has at most `len` bytes be sent, or kept until the lock is
 * wanted? If not it must go the long way, which waits for the lock. Wire lock. */
bool nicstride_lazy_lock_allows_locked(nicstride_peer_t *p, size_t len);

/** Keeps the message of such an operation; it must ask for its acknowledgement. Wire lock. */
void nicstride_lazy_lock_keep_locked(nicstride_peer_t *p, const void *message, size_t len);

/** A grant of the peer's lock came, or the refusal. False where it is not one of a lock that was
 *  held back. Wire lock. */
bool nicstride_lazy_lock_granted_locked(nicstride_peer_t *p, bool refused);
