/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The receiver: matches messages with receives, and gets their data. */
#include "pml_superpipe/protocols/process.h"

_Static_assert(OMPI_ANY_SOURCE == SUPERPIPE_ANY_SOURCE && OMPI_ANY_TAG == SUPERPIPE_ANY_TAG,
               "wildcards are MPI's");

/* ---- long messages --------------------------------------------------------------------------- */

/** Starts getting the data by this protocol or else as a stream. The receive may be over
 * afterwards. */
static void start_locked(superpipe_request_t *r, superpipe_protocol_t protocol)
{
    const uint64_t bytes = r->state.wanted;

    r->protocol = protocol;
    if (superpipe_rows[protocol]->start(r))
        superpipe_count(protocol, bytes);
    else
        superpipe_fall_back_locked(r);
}

/** Gets the bytes of an announced message that do not come early. */
static void fetch_locked(superpipe_request_t *r, superpipe_peer_t *from,
                         const superpipe_offer_t *offer)
{
    superpipe_attach_locked(r, from);
    r->theirs = offer->handle;
    r->address = offer->address;
    /* A message of a lost process that has arrived completely is still valid. */
    if (from->lost && r->state.moved < r->state.wanted) {
        superpipe_fail_locked(r, ONIC_ERR_PROC_FAILED);
        return;
    }
    if (superpipe_transfer_remaining(&r->state) == 0) {
        if (offer->synchronous || r->state.early == 0 || r->state.early < offer->length)
            superpipe_send_control_locked(from, SUPERPIPE_KIND_ACK, r->theirs, 0);
        if (r->state.wanted > 0)
            superpipe_count(SUPERPIPE_STREAM, r->state.wanted);
        superpipe_finish_locked(r);
        return;
    }
    r->handle = onic_handle_new(&superpipe.handles, r);
    if (r->handle == 0) {
        superpipe_send_control_locked(from, SUPERPIPE_KIND_ACK, r->theirs, 0);
        superpipe_fail_locked(r, MPI_ERR_NO_MEM);
        return;
    }
    start_locked(r, superpipe_pick_locked(r, offer));
}

/* ---- delivery -------------------------------------------------------------------------------- */

/** Records the message of a receive, and its length. */
static void fit(superpipe_request_t *r, superpipe_peer_t *from, int32_t source, int32_t tag,
                uint64_t length, uint64_t early)
{
    r->peer = from;
    r->super.req_status.MPI_SOURCE = source;
    r->super.req_status.MPI_TAG = tag;
    if (superpipe_transfer_fit(&r->state, length, early))
        r->error = MPI_ERR_TRUNCATE;
}

/** Delivers a short message, which is complete with that. */
static void deliver_locked(superpipe_request_t *r, const void *data)
{
    superpipe_place(r, 0, data, r->state.wanted);
    r->state.moved += r->state.wanted;
    superpipe_count(SUPERPIPE_EAGER, r->state.wanted);
}

/** Delivers an unexpected message that has found its receive, and frees it. The receive may be over
 *  afterwards. */
static void deliver_unexpected_locked(superpipe_request_t *r, superpipe_unexpected_t *m)
{
    fit(r, m->from, m->message.source, m->message.tag, m->offer.length, m->offer.early);
    if (m->offer.handle != 0) {
        superpipe_early_deliver_locked(r, m);
        fetch_locked(r, m->from, &m->offer);
    } else {
        deliver_locked(r, m->data);
    }
    superpipe_unexpected_free_locked(m);
}

ONIC_INLINE void matched_locked(superpipe_request_t *r, superpipe_peer_t *from,
                                const superpipe_incoming_t *in)
{
    fit(r, from, in->source, in->tag, in->offer.length, in->offer.early);
    if (in->prefix.kind == SUPERPIPE_KIND_SHORT) {
        deliver_locked(r, in->data);
        r->state.done = true; /* everything came with the envelope */
        superpipe_complete_locked(r);
    } else {
        superpipe_early_take(r, 0, in->data, in->bytes);
        superpipe_early_begin_locked(from, in, r, NULL);
        fetch_locked(r, from, &in->offer);
    }
}

/* ---- receives -------------------------------------------------------------------------------- */

/** True if the only sender of a receive is known to be lost, perhaps through another communicator.
 */
static bool is_lost(const superpipe_request_t *r)
{
    const ompi_proc_t *proc;
    const superpipe_peer_t *p;

    if (r->rank == OMPI_ANY_SOURCE || onic_transport_losses() == 0)
        return false;
    proc = ompi_group_peer_lookup_existing(r->comm->c_remote_group, r->rank);
    p = proc != NULL ? proc->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_PML] : NULL;
    return p != NULL && p->lost;
}

void superpipe_receive_start(superpipe_request_t *r)
{
    onic_transport_lock();
    superpipe_message_t *m = superpipe_match_post(&superpipe.match, &r->receive,
                                                  ONIC_COMM_INDEX(r->comm), r->rank, r->tag);
    if (m != NULL) {
        deliver_unexpected_locked(r, (superpipe_unexpected_t *)m);
    } else if (is_lost(r) && superpipe_match_cancel(&superpipe.match, &r->receive)) {
        r->error = ONIC_ERR_PROC_FAILED;
        r->state.broken = true;
    } else {
        onic_transport_unlock();
        return;
    }
    superpipe_unlock(r);
}

void superpipe_receive_message(superpipe_request_t *r, superpipe_unexpected_t *m)
{
    onic_transport_lock();
    deliver_unexpected_locked(r, m);
    superpipe_unlock(r);
}

/* ---- messages -------------------------------------------------------------------------------- */

void superpipe_on_envelope_locked(superpipe_peer_t *from, const superpipe_incoming_t *in)
{
    const uint64_t cost = superpipe_record(&in->offer) + in->bytes;
    superpipe_receive_t *receive;

    onic_account_arrived(from->account, cost);
    receive = superpipe_match_message(&superpipe.match, in->prefix.context, in->source, in->tag);
    if (receive != NULL) {
        matched_locked(superpipe_request_of(receive), from, in);
        onic_account_freed(from->peer, from->account, cost);
    } else {
        superpipe_keep_locked(from, in);
    }
}

void superpipe_short_arrived(onic_peer_t *from, const void *header, size_t header_len,
                             const void *data, size_t len, onic_rndv_t *rndv)
{
    superpipe_peer_t *p = superpipe_peer_locked(from);
    superpipe_incoming_t in;

    if (p == NULL)
        onic_peer_give_up(from);
    else if (!p->lost && rndv == NULL && superpipe_decode_short(&in, header, header_len, data, len))
        superpipe_on_envelope_locked(p, &in);
}
