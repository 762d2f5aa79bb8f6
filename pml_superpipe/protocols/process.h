/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The functions of this folder: each file calls those of files above it here.
 *
 *  Functions named ..._locked are called with the transport's lock held, by any thread, handlers
 *  included; all others without it, by MPI threads. Objects of Open MPI are touched by MPI threads
 *  only: a request that a handler has finished is queued, and completed by the next MPI thread that
 *  makes progress; or at once, where this is the only one. */
#pragma once

#include "common/layout/flatten.h"
#include "common/layout/pack.h"
#include "pml_superpipe/protocols/state.h"

/** Handles a message of the kind in its name. */
typedef void superpipe_handler_t(superpipe_peer_t *from, const superpipe_incoming_t *in);

/* ---- request.c ------------------------------------------------------------------------------- */

/** A request of a call, retaining communicator and datatype; its user has a reference. Or NULL. */
superpipe_request_t *superpipe_request_new(ompi_communicator_t *comm, ompi_datatype_t *datatype,
                                           void *buffer, size_t count, int rank, int tag,
                                           bool sends);

/** A request of its own for a copy of a send's data, which has no user. It is begun. `in_buffer`:
 *  the copy is in what MPI_Buffer_attach gave. NULL where there is no room. */
superpipe_request_t *superpipe_request_copy(superpipe_request_t *r, bool in_buffer);

/** superpipe_describe_buffer, but for the most frequent case. */
int superpipe_describe_any(const void *buffer, size_t count, const ompi_datatype_t *datatype,
                           onic_layout_t *layout);

/** Describes the memory of a call. OMPI_SUCCESS, an error of onic_flatten, or MPI_ERR_BUFFER, after
 *  a text, for memory of a device; then there is nothing to be freed. */
static inline int superpipe_describe_buffer(const void *buffer, size_t count,
                                            const ompi_datatype_t *datatype, onic_layout_t *layout)
{
    size_t bytes;

    if (onic_devices_told() || !onic_type_is_plain(datatype, count, &bytes))
        return superpipe_describe_any(buffer, count, datatype, layout);
    onic_layout_set(layout, bytes);
    return OMPI_SUCCESS;
}

/** Makes it active, once described: now there is a reference until it is complete. */
void superpipe_request_begin(superpipe_request_t *r);

/** All of that for a receive, in one function: saves a tenth of a short MPI_Irecv. */
superpipe_request_t *superpipe_request_receive(ompi_communicator_t *comm, ompi_datatype_t *datatype,
                                               void *buffer, size_t count, int rank, int tag,
                                               int *rc_p);

/** Gives back a reference; the last one gives back the request. */
void superpipe_request_drop(superpipe_request_t *r);

/** Enters it among the requests of a peer. */
void superpipe_attach_locked(superpipe_request_t *r, superpipe_peer_t *p);

/** superpipe_place of a layout with gaps. */
void superpipe_scatter(superpipe_request_t *r, uint64_t at, const void *data, uint64_t bytes);

/** Puts data where it belongs: byte `at` of the packed message and those after it. */
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

/** Releases the lock, which an MPI thread has, and completes the request where nothing of it is
 *  left. No other one: those may call back, and want what the caller holds (coll/adapt's mutex). */
void superpipe_unlock(superpipe_request_t *r);

/** Finishes it where nothing of it is left or under way, and has it completed. */
void superpipe_finish_locked(superpipe_request_t *r);

/** Completes a request that is over (state.done) and that nothing refers to any more, at once or in
 *  the next progress of an MPI thread. */
void superpipe_complete_locked(superpipe_request_t *r);

/** Finishes it with an error, as soon as nothing of it is under way. */
void superpipe_fail_locked(superpipe_request_t *r, int error);

/** An operation of the transport's on its memory has ended: onic_send_cb_t. Locked. */
void superpipe_operation_ended(void *request, int status);

/** A protocol that had all of it (state.moving) has packed or taken it, or given up:
 *  onic_pipeline_end_t.done. Locked. */
void superpipe_moved(void *request, int status);

/** What rows call: sends CTS for a receive that has its message. `ticket`: of the pipeline, or
 *  NULL.
 */
void superpipe_request_data_locked(superpipe_request_t *r, const onic_ticket_t *ticket);

/** Completes what is finished; returns how many. */
int superpipe_complete_finished(void);

/** Handles messages that have come, and completes what is finished by them. MPI threads. */
void superpipe_poll(void);

/* ---- peer.c ---------------------------------------------------------------------------------- */

/** What this process has of a peer, made if need be; NULL where memory is exhausted. */
superpipe_peer_t *superpipe_peer_locked(onic_peer_t *wire);

/** superpipe_peer_of, where it is not known yet. */
superpipe_peer_t *superpipe_peer_find(ompi_communicator_t *comm, int rank, int *rc_p);

/** The peer of a rank, of the remote group where there is one; NULL and an error code. */
static inline superpipe_peer_t *superpipe_peer_of(ompi_communicator_t *comm, int rank, int *rc_p)
{
    superpipe_peer_t *p =
        __atomic_load_n(&((superpipe_channel_t *)comm->c_pml_comm)->peer[rank], __ATOMIC_ACQUIRE);

    return p != NULL ? p : superpipe_peer_find(comm, rank, rc_p);
}

/** Bytes of data in one message to a peer, as many as are `wanted` if that can be; 0 where it is
 *  not known yet. */
size_t superpipe_fragment_locked(superpipe_peer_t *p, uint64_t wanted);

/** Sends a message without data. Where it cannot be sent the peer is given up. */
void superpipe_send_control_locked(superpipe_peer_t *p, superpipe_kind_t kind, uint64_t handle,
                                   uint64_t value);

/** The peer has sent what it must not, or memory is exhausted: nothing more is taken from it. */
void superpipe_break_locked(superpipe_peer_t *p, const char *why);

/** So many bytes of what the peer has sent by credit have come, or are gone. */
static inline void superpipe_came_locked(superpipe_peer_t *p, uint64_t bytes)
{
    onic_credit_arrived(p->wire, p->account, bytes, true);
}
static inline void superpipe_freed_locked(superpipe_peer_t *p, uint64_t bytes)
{
    onic_credit_freed(p->wire, p->account, bytes, true);
}

/* ---- unexpected.c ---------------------------------------------------------------------------- */

/** What an envelope says. */
static inline superpipe_announced_t superpipe_announced(const superpipe_incoming_t *in)
{
    return (superpipe_announced_t){.offer = in->offer,
                                   .early = in->early,
                                   .pins = in->prefix.pins,
                                   .rts = in->prefix.kind == SUPERPIPE_KIND_RTS,
                                   .synchronous = (in->prefix.flags & SUPERPIPE_SYNCHRONOUS) != 0};
}

/** Makes an unexpected message. NULL where memory is exhausted: the peer is broken. */
superpipe_unexpected_t *superpipe_unexpected_locked(superpipe_peer_t *from,
                                                    const superpipe_incoming_t *in);

/** It is received, or thrown away: frees it, and its credit. */
void superpipe_unexpected_free_locked(superpipe_unexpected_t *m);
void superpipe_discard_locked(superpipe_unexpected_t *m);

/** Early bytes will come, for a receive or a message. False where memory is exhausted. */
bool superpipe_early_begin_locked(superpipe_peer_t *from, uint64_t handle, uint64_t total,
                                  superpipe_request_t *r, superpipe_unexpected_t *m);

superpipe_handler_t superpipe_on_early_locked;

/** A message has found its receive, which gets the early bytes that are there and will come. */
void superpipe_early_deliver_locked(superpipe_request_t *r, superpipe_unexpected_t *m);

/** No more early bytes come from a peer. */
void superpipe_early_drop_locked(superpipe_peer_t *p);

/* ---- eager.c --------------------------------------------------------------------------------- */

static inline superpipe_envelope_t superpipe_envelope(superpipe_kind_t kind,
                                                      const superpipe_channel_t *c, int tag,
                                                      unsigned flags, uint32_t sequence)
{
    return (superpipe_envelope_t){.prefix = {.sender = onic_transport_me(),
                                             .kind = (uint8_t)kind,
                                             .flags = (uint8_t)flags,
                                             .context = (uint32_t)c->match.context},
                                  .source = ompi_comm_rank(c->comm),
                                  .tag = tag,
                                  .sequence = sequence};
}

/** Sends a short message of that layout without a request, if that can be done at once. */
onic_sent_t superpipe_send_now_locked(superpipe_channel_t *c, superpipe_peer_t *p, int rank,
                                      int tag, const void *base, const onic_layout_t *layout);

/** Sends a short message, which is paid for. Returns as onic_peer_send. */
int superpipe_eager_send_locked(superpipe_request_t *r, const superpipe_channel_t *c,
                                uint32_t sequence);

/* ---- stream.c -------------------------------------------------------------------------------- */

/** Gives a fragment to the transport, with flags of onic_peer_send. Returns as that. */
int superpipe_send_fragment_locked(superpipe_request_t *r, uint64_t bytes, unsigned flags);

/** Gives some fragments to it: early ones, or those of a CTS. The send may be over then. */
void superpipe_send_fragments_locked(superpipe_request_t *r);

/** A header or fragment has left: onic_send_cb_t. */
void superpipe_fragment_left(void *request, int status);

/** Sends a header, and the data where `data`. As onic_peer_send; a failure has sent nothing. */
int superpipe_send_header_locked(superpipe_request_t *r, const void *header, size_t len, bool data);

/** Goes on with fragments: onic_work_fn_t. */
int superpipe_stream_locked(void);

/* ---- start.c --------------------------------------------------------------------------------- */

/** Bytes of a receive come by that protocol. */
static inline void superpipe_count(superpipe_protocol_t p, uint64_t bytes)
{
    superpipe_counters.messages[p]++;
    superpipe_counters.bytes[p] += bytes;
}

/** A receive that has its message gets its data by this row, or as a stream. It may be over then.
 */
void superpipe_start_locked(superpipe_request_t *r, const superpipe_row_t *row,
                            superpipe_protocol_t protocol);

/** Begins once more, as a stream, since the protocol cannot do it after all. */
void superpipe_fall_back_locked(superpipe_request_t *r);

/** What rows call that read the sender's memory by themselves, and have counted that as an
 *  operation (state.in_flight): the data is here, or the message has to come as a stream. */
void superpipe_fetched_locked(superpipe_request_t *r, bool good);

void superpipe_on_data_locked(const superpipe_incoming_t *in, onic_rndv_t *rndv);
superpipe_handler_t superpipe_on_nack_locked;

/* ---- the rows -------------------------------------------------------------------------------- */

extern const superpipe_row_t superpipe_eager_row, superpipe_stream_row, superpipe_pipeline_row,
    superpipe_copy_row, superpipe_rendezvous_row;

/* ---- pick.c ---------------------------------------------------------------------------------- */

/** Bytes of a long message that follow its RTS without a CTS. */
uint64_t superpipe_early_locked(const superpipe_request_t *r);

/** What part of its cost registering the memory of a long message has to bear here (cost.h). */
double superpipe_pin_share_locked(const superpipe_request_t *r);

/** The protocol of a long message that has found its receive, which counts as under way from now.
 */
superpipe_protocol_t superpipe_pick_locked(superpipe_request_t *r, const superpipe_announced_t *a);

/* ---- send.c ---------------------------------------------------------------------------------- */

/** Starts a send that was described and begun. What cannot be sent is finished with an error. */
void superpipe_send_start(superpipe_request_t *r, superpipe_peer_t *p);

/** A request stands for one of superpipe_send_now_locked that the transport still holds. */
void superpipe_send_held(superpipe_request_t *r, superpipe_peer_t *p);

superpipe_handler_t superpipe_on_cts_locked, superpipe_on_ack_locked;

/* ---- receive.c ------------------------------------------------------------------------------- */

/** Starts a receive that was described and begun. */
void superpipe_receive_start(superpipe_request_t *r);

/** Starts one whose message was taken out by MPI_Mprobe. */
void superpipe_receive_message(superpipe_request_t *r, superpipe_unexpected_t *m);

/** Of EAGER and RTS. */
superpipe_handler_t superpipe_on_envelope_locked;

/** The handler of SHORT messages: onic_am_fn_t. One function from decoder to receive. */
void superpipe_short_arrived(onic_peer_t *from, const void *header, size_t header_len,
                             const void *data, size_t len, onic_rndv_t *rndv);

/** Messages that came before their communicator. */
void superpipe_unpark_locked(superpipe_channel_t *c);

/* ---- loss.c ---------------------------------------------------------------------------------- */

/** Connections were lost: ends what waits for them. */
void superpipe_end_lost(void);

/** This process receives nothing more: informs those of other jobs, and waits until copies of sends
 *  to them are gone. In its own job all have come here. */
void superpipe_drain(void);

/** Looks whether processes of this machine have died, if a call has waited for long. The
 *  pml_progress of the module. */
int superpipe_look(void);

/** True if a process of another job is in the group that a communicator sends to. */
bool superpipe_is_foreign(const ompi_communicator_t *comm);

/** onic_transport_forget_fn_t: gives back what is kept for a process of another job that has left.
 */
bool superpipe_forget(onic_peer_t *wire, bool left);

/* ---- dispatch.c ------------------------------------------------------------------------------ */

/** The handler of messages with a name: onic_am_fn_t. */
void superpipe_arrived(onic_peer_t *from, const void *header, size_t header_len, const void *data,
                       size_t len, onic_rndv_t *rndv);

/** onic_work_fn_t: completes what is finished, has rows go on, ends what is lost. */
int superpipe_complete_all(void);

/* ---- component.c ----------------------------------------------------------------------------- */

/** The component, by which a test adds a row behind the others, and has it call what rows call. */
typedef struct superpipe_component {
    mca_pml_base_component_t super;                     /**< the first member */
    const superpipe_row_t **rows;                       /**< superpipe_rows */
    void (*fetched)(superpipe_request_t *r, bool good); /**< superpipe_fetched_locked */
} superpipe_component_t;
