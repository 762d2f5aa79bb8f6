/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Counted epochs: in active target, operations are not acknowledged. An origin that closes
 *  an epoch publishes how many messages it has sent; the target waits until it has applied that
 *  many. MPI threads, no lock held. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "osc_nicstride/window/module.h"

/** The origin's part: waits until all operations are locally complete and on their way, and writes
 *  for each process of the node how many messages that took; `*sent_p` becomes true if there were
 *  some. Returns the first error that a target has reported. */
int nicstride_close_epoch(nicstride_module_t *m, bool *sent_p);

/** Sends the end of the epoch to a process of another node, in one message with the last operations
 *  if these wait to be sent. False if that is not possible yet: then close the epoch first. */
bool nicstride_complete_along(nicstride_peer_t *p);

/** The target's part: true if the operations of the origin's completed access epoch are applied
 *  here. Transport lock. */
bool nicstride_is_applied_locked(const nicstride_peer_t *p);
/** The first error of an operation applied here since the last call, or 0. Prints a text that names
 *  the call. `call` NULL: discards the error and returns 0. */
int nicstride_take_applied_error(nicstride_module_t *m, const char *call);

/** Waits until all members have called this, in the order of their fences. Returns 0, or the error
 *  class of a loss that makes it impossible. */
int nicstride_meet(nicstride_module_t *m);

/** A fence without MPI's checks. `counted`: operations may have preceded it. */
int nicstride_fence_all(nicstride_module_t *m, bool counted);

/* ---- access to targets ----------------------------------------------------------------------- */

/** Waits until the target of an access is done with the last fence that had a mark. */
void nicstride_await_done(nicstride_module_t *m, int target);

/** Returns NULL, or why the target may not be accessed now. Notes the access, and waits until the
 *  target is done with the last fence. */
static inline const char *nicstride_enter(nicstride_module_t *m, int target)
{
    const char *wrong;

    NICSTRIDE_LOCKED(m, wrong = nicstride_epoch_access(&m->epoch, (uint32_t)target));
    if (wrong == NULL && !nicstride_is_past_fence(m, target))
        nicstride_await_done(m, target);
    return wrong;
}

/** Checks a request-based call, which needs a passive-target epoch. */
int nicstride_check_passive(nicstride_module_t *m, const char *call, int target);

/** Set Open MPI's functions for synchronisation. The functions have Open MPI's arguments, which
 *  Open MPI has checked unless a function says otherwise. MPI threads, no lock held. They return
 *  OMPI_SUCCESS, or an error of MPI's or Open MPI's after a text. */
void nicstride_active_calls(ompi_osc_base_module_t *calls);
void nicstride_passive_calls(ompi_osc_base_module_t *calls);

/* ---- flushes --------------------------------------------------------------------------------- */

/** What a flush waits for. */
typedef enum nicstride_flush {
    NICSTRIDE_FLUSH_LOCAL, /**< all operations are locally complete */
    NICSTRIDE_FLUSH_GIVEN, /**< the same, and they reach their targets without further MPI calls */
    NICSTRIDE_FLUSH_REMOTE /**< they are done at the target */
} nicstride_flush_t;

/** Waits for all operations to the peer. Returns the first error that came back. */
int nicstride_flush_peer(nicstride_peer_t *p, nicstride_flush_t kind);
/** The same for all peers; every target is asked before any is awaited. */
int nicstride_flush_all_peers(nicstride_module_t *m, nicstride_flush_t kind);
/** Waits until all operations to the peer have landed, before an operation that would overtake
 *  them. Their errors are left to the next call that synchronises. */
void nicstride_land(nicstride_peer_t *p);
/** A phrase that says what an error class from a target means. */
const char *nicstride_error_reason(int error);

/** MPI_Win_fence. */
int nicstride_win_fence(int assert, ompi_win_t *win);
