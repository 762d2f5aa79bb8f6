/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The functions of this folder, by file: a file calls functions of files listed above it.
 *
 *  Functions named ..._locked are called with the transport's lock held, by any thread, handlers
 *  included; all others are called without it, by MPI threads. Objects of Open MPI are touched by
 *  MPI threads only: a request that a handler has finished is queued, and completed by the next MPI
 *  thread that makes progress, or at once if there is only this thread. */
#pragma once

#include "common/layout/flatten.h"
#include "common/layout/pack.h"
#include "pml_superpipe/protocols/state.h"

/* ---- request.c ------------------------------------------------------------------------------- */

/** Makes the request of a call, retaining communicator and datatype; the user has a reference. NULL
 *  if memory is exhausted. */
superpipe_request_t *superpipe_request_new(ompi_communicator_t *comm, ompi_datatype_t *datatype,
                                           void *buffer, size_t count, int rank, int tag,
                                           bool sends);

/** Makes a request without a user for a copy of a send's data, already begun. `in_buffer`: the copy
 *  is in the buffer from MPI_Buffer_attach. NULL if there is no room. */
superpipe_request_t *superpipe_request_copy(superpipe_request_t *r, bool in_buffer);

/** superpipe_describe_buffer, for all but the most frequent case. */
int superpipe_describe_any(const void *buffer, size_t count, const ompi_datatype_t *datatype,
                           onic_layout_t *layout);

/** Describes the memory of a call. Returns OMPI_SUCCESS, an error of onic_flatten, or, after a help
 *  text, MPI_ERR_BUFFER for device memory. After an error nothing need be freed. */
static inline int superpipe_describe_buffer(const void *buffer, size_t count,
                                            const ompi_datatype_t *datatype, onic_layout_t *layout)
{
    size_t bytes;

    if (onic_devices_told() || !onic_type_is_plain(datatype, count, &bytes))
        return superpipe_describe_any(buffer, count, datatype, layout);
    onic_layout_set(layout, bytes);
    return OMPI_SUCCESS;
}

/** Activates a described request: it has one more reference until it is complete. */
void superpipe_request_begin(superpipe_request_t *r);

/** Makes, describes and begins a receive in one function, which saves a tenth of a short MPI_Irecv.
 */
superpipe_request_t *superpipe_request_receive(ompi_communicator_t *comm, ompi_datatype_t *datatype,
                                               void *buffer, size_t count, int rank, int tag,
                                               int *rc_p);

/** Drops a reference; the last one frees the request. */
void superpipe_request_drop(superpipe_request_t *r);

/** Adds the request to those of a peer. */
void superpipe_attach_locked(superpipe_request_t *r, superpipe_peer_t *p);

/** superpipe_place for a layout with gaps. */
void superpipe_scatter(superpipe_request_t *r, uint64_t at, const void *data, uint64_t bytes);

/** Puts data into the user's memory, from byte `at` of the packed message on. */
static inline void superpipe_place(superpipe_request_t *r, uint64_t at, const void *data,
                                   uint64_t bytes)
{
    if (bytes == 0)
        return;
    if (onic_layout_is_contig(&r->layout))
        onic_copy_bytes(r->base + r->layout.offset + at, data, bytes);
    else
        superpipe_scatter(r, at, data, bytes);
}

/** Releases the lock, which an MPI thread holds, and completes the request if it is finished.
 *  Completes no other requests: these may call back, and may need a lock that the caller holds
 *  (coll/adapt's mutex). */
void superpipe_unlock(superpipe_request_t *r);

/** A queue; the check needs no lock. What is taken is linked by `next`. */
static inline bool superpipe_is_empty(const superpipe_queue_t *q)
{
    return __atomic_load_n(&q->first, __ATOMIC_RELAXED) == NULL;
}
void superpipe_append_locked(superpipe_queue_t *q, superpipe_request_t *r);
superpipe_request_t *superpipe_take_all_locked(superpipe_queue_t *q);

/** Finishes the request if nothing of it is left or in flight, and has it completed. */
void superpipe_finish_locked(superpipe_request_t *r);

/** Completes a finished request (state.done) without other references, either at once or in the
 *  next progress of an MPI thread. */
void superpipe_complete_locked(superpipe_request_t *r);

/** Finishes the request with an error, as soon as nothing of it is in flight. */
void superpipe_fail_locked(superpipe_request_t *r, int error);

/** A transport operation on the request's memory has ended: onic_send_cb_t. Locked. */
void superpipe_operation_ended(void *request, int status);

/** The protocol that had the whole request (state.moving) has packed or received it, or has given
 *  up: onic_pipeline_end_t.done. Locked. */
void superpipe_moved(void *request, int status);

/** Called by rows: sends CTS for a receive that has its message. `ticket`: of the pipeline, or
 *  NULL. */
void superpipe_request_data_locked(superpipe_request_t *r, const onic_ticket_t *ticket);

/** Completes finished requests; returns how many. */
int superpipe_complete_finished(void);

/** Handles messages that have come, and completes requests finished by them. MPI threads. */
void superpipe_poll(void);

/* ---- peer.c ---------------------------------------------------------------------------------- */

/** The state of a peer, made if need be; NULL if memory is exhausted. */
superpipe_peer_t *superpipe_peer_locked(onic_peer_t *peer);

/** superpipe_peer_of for a rank that is not known yet. */
superpipe_peer_t *superpipe_peer_find(ompi_communicator_t *comm, int rank, int *rc_p);

/** The peer of a rank in the remote group, if there is one, else in the local one. NULL and an
 *  error code if that fails. */
static inline superpipe_peer_t *superpipe_peer_of(ompi_communicator_t *comm, int rank, int *rc_p)
{
    superpipe_peer_t *p =
        __atomic_load_n(&((superpipe_channel_t *)comm->c_pml_comm)->peer[rank], __ATOMIC_ACQUIRE);

    return p != NULL ? p : superpipe_peer_find(comm, rank, rc_p);
}

/** Most bytes of data in one message to a peer, `wanted` if possible; 0 if not known yet. */
size_t superpipe_fragment_locked(superpipe_peer_t *p, uint64_t wanted);

/** Sends a message without data. If that fails the peer is given up. */
void superpipe_send_control_locked(superpipe_peer_t *p, superpipe_kind_t kind, uint64_t handle,
                                   uint64_t value);

/** The peer has violated the protocol, or memory is exhausted: accepts nothing more from it. */
void superpipe_break_locked(superpipe_peer_t *p, const char *why);

/* ---- unexpected.c ---------------------------------------------------------------------------- */

/** Keeps a message that no receive waits for. If memory is exhausted, breaks the peer. */
void superpipe_keep_locked(superpipe_peer_t *from, const superpipe_incoming_t *in);

/** Frees a message that was received or dropped, and returns its credit. */
void superpipe_unexpected_free_locked(superpipe_unexpected_t *m);
void superpipe_discard_locked(superpipe_unexpected_t *m);

/** An announced message has come, for a receive or as an unexpected one, which has been given the
 *  data that came with it. More of the early bytes may follow. */
void superpipe_early_begin_locked(superpipe_peer_t *from, const superpipe_incoming_t *in,
                                  superpipe_request_t *r, superpipe_unexpected_t *m);

/** EARLY has come. */
void superpipe_on_early_locked(superpipe_peer_t *from, const superpipe_incoming_t *in);

/** Gives a receive the first bytes of its message, as far as it wants them. */
void superpipe_early_take(superpipe_request_t *r, uint64_t at, const void *data, uint64_t bytes);

/** An unexpected message has found its receive: the receive gets the early bytes, present and
 *  future. */
void superpipe_early_deliver_locked(superpipe_request_t *r, superpipe_unexpected_t *m);

/** The credit that a message has cost besides its payload. */
static inline uint64_t superpipe_record(const superpipe_offer_t *offer)
{
    return offer->handle == 0 || offer->early > 0 ? SUPERPIPE_RECORD : 0;
}

/* ---- eager.c --------------------------------------------------------------------------------- */

/** Sends a short message of that layout without a request, if possible at once. */
bool superpipe_send_now_locked(ompi_communicator_t *comm, superpipe_peer_t *p, int tag,
                               const void *base, const onic_layout_t *layout);

/** Sends a short message whose credit has been taken, with a request. Returns as onic_peer_send. */
int superpipe_eager_send_locked(superpipe_request_t *r);

/* ---- stream.c -------------------------------------------------------------------------------- */

/** Passes a fragment to the transport, with flags of onic_peer_send. Returns as onic_peer_send. */
int superpipe_send_fragment_locked(superpipe_request_t *r, uint64_t bytes, unsigned flags);

/** Passes some requested fragments to the transport. The send may be over afterwards. */
void superpipe_send_fragments_locked(superpipe_request_t *r);

/** A header or fragment has been sent: onic_send_cb_t. */
void superpipe_fragment_left(void *request, int status);

/** Sends a header with the first `bytes` of the data. Returns as onic_peer_send; after a failure
 *  nothing was sent. */
int superpipe_send_header_locked(superpipe_request_t *r, unsigned am_id, const void *header,
                                 size_t len, uint64_t bytes);

/** Continues sending fragments: onic_work_fn_t. */
int superpipe_stream_locked(void);

/* ---- start.c --------------------------------------------------------------------------------- */

/** Counts bytes of a receive that come by that protocol. */
static inline void superpipe_count(superpipe_protocol_t p, uint64_t bytes)
{
    superpipe_counters.messages[p]++;
    superpipe_counters.bytes[p] += bytes;
}

/** Gets the data as a stream, because the protocol has failed. The receive may be over afterwards.
 */
void superpipe_fall_back_locked(superpipe_request_t *r);

/** Called by rows that read the sender's memory themselves, and have counted that as an operation
 *  (state.in_flight): the data is here (`good`), or the message has to come as a stream. */
void superpipe_fetched_locked(superpipe_request_t *r, bool good);

/* ---- the rows -------------------------------------------------------------------------------- */

extern const superpipe_row_t superpipe_eager_row, superpipe_stream_row, superpipe_pipeline_row,
    superpipe_copy_row, superpipe_rendezvous_row;

/* ---- pick.c ---------------------------------------------------------------------------------- */

/** Bytes of a long message that follow its RTS without a CTS. */
uint64_t superpipe_early_locked(const superpipe_request_t *r);

/** The part of the cost of registering a long message's memory that this side has to bear (cost.h).
 */
double superpipe_pin_share_locked(const superpipe_request_t *r);

/** Picks the protocol of a long message that has found its receive, which from now on counts as in
 *  flight. */
superpipe_protocol_t superpipe_pick_locked(superpipe_request_t *r, const superpipe_offer_t *offer);

/* ---- send.c ---------------------------------------------------------------------------------- */

/** Starts a send that was described and begun. If it fails it is finished with an error. */
void superpipe_send_start(superpipe_request_t *r, superpipe_peer_t *p);

/** CTS, or ACK, has come. */
void superpipe_on_cts_locked(const superpipe_incoming_t *in);
void superpipe_on_ack_locked(const superpipe_incoming_t *in);

/* ---- receive.c ------------------------------------------------------------------------------- */

/** Starts a receive that was described and begun. */
void superpipe_receive_start(superpipe_request_t *r);

/** Starts a receive of a message that MPI_Mprobe has taken out. */
void superpipe_receive_message(superpipe_request_t *r, superpipe_unexpected_t *m);

/** RTS or SHORT has come. */
void superpipe_on_envelope_locked(superpipe_peer_t *from, const superpipe_incoming_t *in);

/** The handler of SHORT messages: onic_am_fn_t. */
void superpipe_short_arrived(onic_peer_t *from, const void *header, size_t header_len,
                             const void *data, size_t len, onic_rndv_t *rndv);

/* ---- loss.c ---------------------------------------------------------------------------------- */

/** Ends requests that wait for lost connections. */
void superpipe_end_lost(void);

/** Waits until copies of sends to processes of other jobs are gone. */
void superpipe_drain(void);

/** The module's pml_progress: in a program with threads yields the processor now and then, since
 *  the thread that polls for all may occupy the one that the others wait for. */
int superpipe_yield(void);

/* ---- dispatch.c ------------------------------------------------------------------------------ */

/** The handler of messages that carry the sender's name: onic_am_fn_t. */
void superpipe_arrived(onic_peer_t *from, const void *header, size_t header_len, const void *data,
                       size_t len, onic_rndv_t *rndv);

/** onic_work_fn_t: completes finished requests, lets rows continue, ends lost ones. */
int superpipe_complete_all(void);

/* ---- component.c ----------------------------------------------------------------------------- */

/** The component. A test uses it to add a row after the others, and to call what rows call. */
typedef struct superpipe_component {
    mca_pml_base_component_t super;                     /**< the first member */
    const superpipe_row_t **rows;                       /**< superpipe_rows */
    void (*fetched)(superpipe_request_t *r, bool good); /**< superpipe_fetched_locked */
} superpipe_component_t;
