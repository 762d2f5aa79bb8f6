/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The pipeline: long transfers between two layouts in user memory, through buffers that the
 *  receiver owns. The superpipeline of A. Denis (2011), section 4, and the host-based method of
 *  HBNA in one.
 *
 *  Each process has one pool of at most 64 receive buffers. A sender leases some of the receiver's,
 *  packs chunk after chunk into them and publishes what is there, block by block, while the
 *  receiver unpacks. A transfer that is longer than its lease goes round in it (folding,
 *  N-buffering). So what all senders together leave at a receiver is never more than its receive
 *  pool.
 *
 *  core/ has what decides; shm/ and rma/ are the carriers, within a node and between hosts. Here
 *  stand the transfers that are under way, and what components call. The component sends the ticket
 *  in a message of its own, so that data and its description arrive together:
 *
 *      put: origin  onic_pipeline_send_locked, message with the ticket, unlock, onic_pipeline_run
 *           target  onic_pipeline_receive_locked, in the handler of that message
 *      get: origin  onic_pipeline_expect_locked, message with the ticket
 *           target  onic_pipeline_answer_locked, in the handler of that message
 *
 *  A transfer's pointer stays valid memory, but may stand for another one once `done` has been
 *  called.
 *
 *  Threads: a function named ..._locked is called with the transport lock held, by any thread,
 *  handlers included, and never waits; all others without it. Packing, unpacking and `take` run
 *  without the transport lock within a node, and with it between hosts; `done` with it. They run in
 *  any thread that makes progress, and must not touch an Open MPI object. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/pipeline/core/counters.h"
#include "common/pipeline/core/carrier.h"
#include "common/pipeline/core/schedules.h"
#include "common/support/export.h"
#include "common/support/component.h"
#include "common/transport/transport.h"

/** Which peers of other hosts are put to, where their adapters can (rma/carrier_rma.h). */
typedef enum onic_pipeline_rma {
    ONIC_PIPELINE_RMA_AUTO,  /**< those that an adapter reaches */
    ONIC_PIPELINE_RMA_NEVER, /**< nobody */
    ONIC_PIPELINE_RMA_ALWAYS /**< all, for tests: UCX puts by messages where it must */
} onic_pipeline_rma_t;

/** In a component's open function, before anybody opens the transport: it is to be able to put,
 *  where there is an adapter. Else peers of other hosts are not reached. */
ONIC_EXPORT void onic_pipeline_announce(onic_pipeline_rma_t rma);

/** Sizes of the receive pool; values come from a component's parameters. */
typedef struct onic_pipeline_config {
    /** Bytes of all buffers, 4 KiB .. 1 GiB; 0: derived from the caches. Less where shared memory
     *  is small (common/transport/shm/segment.h). */
    size_t rx_pool;
    /** Bytes of a buffer, rounded up to 4 KiB; 0: derived from the receive pool. */
    size_t rx_buffer;
    onic_pipeline_rma_t rma;
    /** The chunks of what this process sends, */
    onic_schedule_kind_t schedule;
    const onic_links_t *links; /**< and what they are made from; not NULL */
} onic_pipeline_config_t;

/** Makes this process's receive pool, or takes another reference to the pipeline (the first
 *  caller's sizes hold). MPI thread, after onic_transport_open. OMPI_SUCCESS, also where no receive
 *  pool can be had: then others do not reach this process. */
ONIC_EXPORT int onic_pipeline_open(const onic_pipeline_config_t *config);

/** Releases a reference. With the last one what is under way is ended with an error. MPI thread,
 *  before onic_transport_close and without the transport lock. */
ONIC_EXPORT void onic_pipeline_close(void);

/** Bytes that all senders together may leave at this process; 0 where there is no receive pool. */
ONIC_EXPORT size_t onic_pipeline_rx_bytes(void);

/** Bytes of one of its buffers, or of those that it would have. */
ONIC_EXPORT uint32_t onic_pipeline_rx_buffer(void);

/** True if the pipeline reaches this peer. Tries to map its receive pool until that has worked or
 *  is known not to: best called once when a connection is set up. False for this process itself. */
ONIC_EXPORT bool onic_pipeline_reaches_locked(onic_peer_t *peer);

/** Put, at the origin: leases buffers at `to` and fills in the ticket. NULL where no buffer can be
 *  had now: the caller sends by message, or comes again, and if soon, has its turn before
 *  others. */
ONIC_EXPORT onic_transfer_t *onic_pipeline_send_locked(onic_peer_t *to, onic_pipeline_end_t *source,
                                                       onic_ticket_t *ticket);

/** Put, at the target, in the handler: queues the transfer. `sink` NULL: throws away what comes,
 *  for a message that is refused, so that the lease comes to its end. OMPI_ERR_BAD_PARAM where
 *  `from` has not got those buffers any more or the length is not the sink's: nothing is queued. */
ONIC_EXPORT int onic_pipeline_receive_locked(onic_peer_t *from, const onic_ticket_t *ticket,
                                             onic_pipeline_end_t *sink);

/** Get, at the origin, before it asks: leases buffers of its own for `from`. NULL as above. */
ONIC_EXPORT onic_transfer_t *
onic_pipeline_expect_locked(onic_peer_t *from, onic_pipeline_end_t *sink, onic_ticket_t *ticket);

/** Get, at the target: queues the answer. An error as above, for want of memory, or
 *  OMPI_ERR_UNREACH where the receive pool of `to` is not mapped here: to be reported to `to`,
 *  which calls onic_pipeline_withdraw_locked. */
ONIC_EXPORT int onic_pipeline_answer_locked(onic_peer_t *to, const onic_ticket_t *ticket,
                                            onic_pipeline_end_t *source);

/** Get, at the origin: the other side has said that it will do nothing with the ticket, and no byte
 *  has come. Releases the lease; `done` is not called. False where the transfer is over already and
 *  `done` is about to be called. */
ONIC_EXPORT bool onic_pipeline_withdraw_locked(onic_transfer_t *t);

/** Does what can be done now for this transfer; also before the message with the ticket is sent. */
ONIC_EXPORT void onic_pipeline_run(onic_transfer_t *t);

/** Moves what can be moved; returns chunks and ends handled. A load where there is nothing. */
ONIC_EXPORT int onic_pipeline_progress(void);

/** True if nothing is under way. One load. */
ONIC_EXPORT bool onic_pipeline_idle(void);

/** Registers the counters (core/counters.h) as performance variables of a component. */
ONIC_EXPORT void onic_pipeline_register_counters(const mca_base_component_t *c);

/** The memory behind `arg` goes away, or its peer is lost: each end with this `arg` that is not
 *  done is ended with OMPI_ERROR. Waits for nobody: false where a thread is inside a copy of such
 *  an end; call again, without the lock in between. When it is true none of its memory is touched
 *  any more. The other side of a sender gets an error; what comes for a receiver is thrown away. */
ONIC_EXPORT bool onic_pipeline_cancel_locked(void *arg);
