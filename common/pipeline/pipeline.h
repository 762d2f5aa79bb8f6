/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The pipeline: long transfers between two layouts in user memory, through buffers that the
 *  receiver owns. It implements both the superpipeline of A. Denis (2011), section 4, and the
 *  host-based method of HBNA.
 *
 *  Each process has one pool of at most 64 receive buffers. A sender leases some of the receiver's,
 *  packs chunk after chunk into them and publishes them block by block, while the receiver unpacks.
 *  A transfer that is longer than its lease reuses the buffers (folding, N-buffering). So all
 *  senders together never leave more at a receiver than its receive pool holds.
 *
 *  core/ makes the decisions; shm/ and rma/ are the carriers, within a node and between hosts. This
 *  folder has the list of running transfers, and the functions for components. The component sends
 *  the ticket in a message of its own, so that data and its description arrive together:
 *
 *      put: origin  onic_pipeline_send_locked, message with the ticket, onic_pipeline_run_locked
 *           target  onic_pipeline_receive_locked, in the handler of that message
 *      get: origin  onic_pipeline_expect_locked, message with the ticket
 *           target  onic_pipeline_answer_locked, in the handler of that message
 *
 *  The memory of a transfer stays valid, but may be reused for another one once `done` has been
 *  called.
 *
 *  Threads: functions named ..._locked are called with the transport lock held, by any thread,
 *  handlers included, and never wait; all others are called without it. Packing, unpacking, `take`
 *  and `done` run with the lock, in any thread that makes progress, and must not touch an Open MPI
 *  object. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/pipeline/core/counters.h"
#include "common/pipeline/core/carrier.h"
#include "common/pipeline/core/schedules.h"
#include "common/support/export.h"
#include "common/support/component.h"
#include "common/transport/transport.h"

/** Called in a component's open function, before anyone opens the transport: has it prepare for
 *  puts (rma/carrier_rma.h) if there is an adapter. Else peers on other hosts are not reached. */
ONIC_EXPORT void onic_pipeline_announce(void);

/** Sizes of the receive pool; values come from a component's parameters. */
typedef struct onic_pipeline_config {
    /** Bytes of all buffers, 4 KiB .. 1 GiB; 0: derived from the caches. Less if shared memory is
     *  small (common/transport/shm/segment.h). */
    size_t rx_pool;
    /** Bytes of a buffer, rounded up to 4 KiB; 0: derived from the receive pool. */
    size_t rx_buffer;
    bool puts_to_all; /**< for tests: not only to peers that an adapter reaches */
    /** How this process divides what it sends into chunks. */
    onic_schedule_kind_t schedule;
    const onic_links_t *links; /**< the numbers used for that; not NULL */
} onic_pipeline_config_t;

/** Makes this process's receive pool, or takes another reference to the pipeline (the first
 *  caller's sizes apply). MPI thread, after onic_transport_open. If there can be no receive pool
 *  others do not reach this process. */
ONIC_EXPORT void onic_pipeline_open(const onic_pipeline_config_t *config);

/** Releases a reference. The last one ends running transfers with an error. MPI thread, before
 *  onic_transport_close and without the transport lock. */
ONIC_EXPORT void onic_pipeline_close(void);

/** Bytes that all senders together may leave at this process; 0 if there is no receive pool. */
ONIC_EXPORT size_t onic_pipeline_rx_bytes(void);

/** Bytes of one buffer of the receive pool, even if there is no pool. */
ONIC_EXPORT uint32_t onic_pipeline_rx_buffer(void);

/** True if the pipeline reaches this peer. Tries to map its receive pool until that has succeeded
 *  or is known to be impossible: best called once when a connection is set up. False for this
 *  process itself. */
ONIC_EXPORT bool onic_pipeline_reaches_locked(onic_peer_t *peer);

/** Put, at the origin: leases buffers at `to` and fills in the ticket. NULL if no buffer is
 *  available now: the caller sends by message or tries again, and if it does so soon, has
 *  precedence over others. */
ONIC_EXPORT onic_transfer_t *onic_pipeline_send_locked(onic_peer_t *to, onic_pipeline_end_t *source,
                                                       onic_ticket_t *ticket);

/** Put, at the target, in the handler: queues the transfer. `sink` NULL: drops the data, for a
 * message that is refused, so that the lease ends. OMPI_ERR_BAD_PARAM if `from` no longer has those
 *  buffers or the length is not the sink's; nothing is queued then. */
ONIC_EXPORT int onic_pipeline_receive_locked(onic_peer_t *from, const onic_ticket_t *ticket,
                                             onic_pipeline_end_t *sink);

/** Get, at the origin, before it sends the request: leases own buffers for `from`. NULL as above.
 */
ONIC_EXPORT onic_transfer_t *
onic_pipeline_expect_locked(onic_peer_t *from, onic_pipeline_end_t *sink, onic_ticket_t *ticket);

/** Get, at the target: queues the answer. Errors as above, for lack of memory, or OMPI_ERR_UNREACH
 *  if the receive pool of `to` is not mapped here. The caller reports an error to `to`, which calls
 *  onic_pipeline_withdraw_locked. */
ONIC_EXPORT int onic_pipeline_answer_locked(onic_peer_t *to, const onic_ticket_t *ticket,
                                            onic_pipeline_end_t *source);

/** Get, at the origin: the other side has said that it will not use the ticket, and no byte has
 *  come. Releases the lease; `done` is not called. False if the transfer is already over and `done`
 *  is about to be called. */
ONIC_EXPORT bool onic_pipeline_withdraw_locked(onic_transfer_t *t);

/** Advances this transfer, of which nothing has been reported, as far as possible now. */
ONIC_EXPORT void onic_pipeline_run_locked(onic_transfer_t *t);

/** True if no transfer is running. One load. */
ONIC_EXPORT bool onic_pipeline_idle(void);

/** Registers the counters (core/counters.h) as performance variables of a component. */
ONIC_EXPORT void onic_pipeline_register_counters(const mca_base_component_t *c);

/** The memory belonging to `arg` will be freed, or its peer is lost: ends each unfinished end with
 * this `arg` with OMPI_ERROR, and has called `done` when it returns. None of the memory is accessed
 * any more. The other side of a sender gets an error; data that comes for a receiver is dropped. */
ONIC_EXPORT void onic_pipeline_cancel_locked(const void *arg);
