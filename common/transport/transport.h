/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The transport: active messages, puts and gets between processes, by one row for each way
 *  (row/row.h). A peer is known by its full process name and connected on first use.
 *
 *  Threads: the rows, the peers and everything that handlers touch are protected by one lock, the
 *  transport lock. Handlers and send callbacks run with it held, in whichever thread makes
 *  progress: an MPI thread, or the server thread that stands in for it. Handlers never wait and
 *  never take the lock, and never touch an Open MPI object, which below MPI_THREAD_MULTIPLE is not
 *  atomic; but see onic_transport_may_complete_locked. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/support/export.h"
#include "common/transport/guard.h"
#include "common/transport/message.h"
#include "common/transport/peer.h"
#include "common/transport/row/requirements.h"

/** Adds what a component asks of the transport. Some of that is fixed when the transport is first
 *  opened. */
ONIC_EXPORT void onic_transport_require(const onic_transport_config_t *config);

/** Starts the transport, or takes another reference to it. What the components ask for is put
 *  together (requirements.h), in any order. MPI thread. OMPI_SUCCESS or an error after a text. */
ONIC_EXPORT int onic_transport_open(const onic_transport_config_t *config);

/** Starts the server thread, unless it runs: work is left for which no MPI thread may come back.
 *  The lock is held. */
ONIC_EXPORT void onic_transport_need_help_locked(void);

/** Gives back a reference. With the last one, returns true and stops the server thread and all
 *  rows: in the framework's finalize step, by all processes of the job after a fence of the
 *  caller's, so that no peer still has messages for this process. */
ONIC_EXPORT bool onic_transport_close(void);

/** True if data for processes of the node may go through shared memory: not where the list of
 *  transports, UCX's or a component's, leaves that out. The transport is open. */
ONIC_EXPORT bool onic_transport_shares_memory(void);

/** Waits (a few seconds at most) until everything that this process has sent has left it. Before
 *  the fence that precedes onic_transport_close. MPI thread, lock not held. */
ONIC_EXPORT void onic_transport_flush(void);

/** For a component that closes the transport when no point-to-point layer can send a barrier:
 *  flushes, then waits, progressing, until the others have come here too, in a fence of the
 *  launcher's; not for those that have died, nor longer than `usec`. True where all have come. MPI
 *  thread. */
ONIC_EXPORT bool onic_transport_leave(unsigned usec);

/** The transport lock. */
ONIC_EXPORT extern onic_guard_t onic_transport_guard;

/** Takes the lock if it is free. Not recursive. */
static inline bool onic_transport_trylock(void)
{
    return onic_guard_try(&onic_transport_guard);
}

/** True if a handler may complete a request of Open MPI at once: its thread is the only one that
 *  can be in MPI. Else the request is queued for ONIC_MPI. The lock is held. */
static inline bool onic_transport_may_complete_locked(void)
{
    const onic_guard_t *g = &onic_transport_guard;

    return !*g->threads && !onic_guard_is_helper(g);
}

/** Waits for the lock, which another thread holds. */
ONIC_EXPORT void onic_transport_lock_wait(void);

/* Taking the lock is no sign of life: a thread that only sends does not progress what comes. */
static inline void onic_transport_lock(void)
{
    if (!onic_transport_trylock())
        onic_transport_lock_wait();
}

static inline void onic_transport_unlock(void)
{
    onic_guard_release(&onic_transport_guard);
}

/** Makes progress once. Takes the lock if it is free; else only what needs no lock is done. Returns
 *  the number of events. Registered with opal_progress by onic_transport_open. The lock must not be
 *  held. */
ONIC_EXPORT int onic_transport_progress(void);

/** The same of what needs the lock, which is held. */
ONIC_EXPORT int onic_transport_progress_locked(void);

/** True if onic_transport_poll_locked may find a message. Any thread; no lock. */
ONIC_EXPORT bool onic_transport_has_messages(void);

/** Takes the lock if it is free and a message may have come. A single thread takes it without
 *  looking: else it would look at each message twice. */
static inline bool onic_transport_lock_for_messages(void)
{
    return (!onic_guard_is_shared(&onic_transport_guard) || onic_transport_has_messages()) &&
           onic_transport_trylock();
}

/** Handles messages that have come, and nothing else: for callers that call onic_transport_progress
 *  now and then, too. Returns the number of events. */
ONIC_EXPORT int onic_transport_poll_locked(void);

/** Tells the server thread whether passive progress may be needed now for processes that cannot
 *  wake it. Counted: each true must be matched by a false. While the count is 0 the thread sleeps
 *  without a timer; it still serves those that wake it, and does work that this process has left.
 */
ONIC_EXPORT void onic_transport_want_server(bool want);

/** When and by whom a component's work is done. */
typedef enum onic_place {
    ONIC_LOCKED, /**< behind the next progress with the lock held, on any thread; also when it was
                      set, and when a connection was lost */
    ONIC_MPI,    /**< on MPI threads only, from opal_progress and without the lock: here components
                      complete requests */
    ONIC_PLACES
} onic_place_t;

/** Does the work. Returns how much was done, or a negative value where something is left that
 *  cannot be done yet: then it is run again, also by the server thread. */
typedef int (*onic_work_fn_t)(void);

/** Has a component's function of that place run once. Any thread; the function itself may ask. */
ONIC_EXPORT void onic_transport_ask(unsigned am_id, onic_place_t place);

/** What the transport calls for an identifier of messages. Each may be NULL. */
typedef struct onic_transport_fns {
    onic_am_fn_t am;
    onic_work_fn_t work[ONIC_PLACES];
} onic_transport_fns_t;

/** Sets these functions in place of the former ones. The lock must not be held. */
ONIC_EXPORT void onic_transport_set_fns(unsigned am_id, const onic_transport_fns_t *fns);
#define ONIC_TRANSPORT_NO_FNS (&(onic_transport_fns_t){.am = NULL})

/** An MPI thread is in MPI now: marks this process's page, and keeps its server thread from taking
 *  over. Called by every progress of the transport, and by waits that do not progress. */
ONIC_EXPORT void onic_transport_mark(void);
