/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The sender of messages that cannot be sent at once: short ones by credit, long ones
 *  announced. */
#include "pml_superpipe/protocols/choice.h"
#include "pml_superpipe/protocols/process.h"

#include <stdlib.h>

static bool is_short_locked(superpipe_peer_t *p, uint64_t length)
{
    (void)superpipe_fragment_locked(
        p, superpipe_short_most(superpipe.params.eager, length, superpipe.params.protocol));
    return length <= p->short_most;
}

/** True if it is a short message that cannot be sent whole now, for lack of credit. */
static bool lacks_credit_locked(superpipe_peer_t *p, uint64_t length)
{
    return is_short_locked(p, length) &&
           onic_credit_left(&p->account->credit, ONIC_CREDIT_FLOOR) < SUPERPIPE_RECORD + length;
}

static int error_of(int rc)
{
    return rc == OMPI_ERR_OUT_OF_RESOURCE ? MPI_ERR_NO_MEM : ONIC_ERR_PROC_FAILED;
}

/* ---- envelopes ------------------------------------------------------------------------------- */

/** Announces a message; its first `early` bytes, for which there is credit, go along. */
static int send_rts_locked(superpipe_request_t *r, uint32_t early)
{
    const bool waits = r->mode == MCA_PML_BASE_SEND_SYNCHRONOUS;
    const uint64_t block = superpipe_mean_block(&r->layout);
    const uint64_t most = superpipe_piece(superpipe_fragment_locked(r->peer, early));
    const uint64_t first = early < most ? early : most;
    superpipe_rts_t h = {.prefix = {.sender = onic_transport_me(),
                                    .kind = SUPERPIPE_KIND_RTS,
                                    .context = ONIC_COMM_INDEX(r->comm)},
                         .source = ompi_comm_rank(r->comm),
                         .tag = r->tag,
                         .offer = {.length = r->state.length,
                                   .block = block < UINT32_MAX ? (uint32_t)block : UINT32_MAX,
                                   .early = early,
                                   .pins = (uint8_t)(UINT8_MAX * superpipe_pin_share_locked(r)),
                                   .synchronous = waits}};
    int rc;

    if (onic_layout_is_contig(&r->layout))
        h.offer.address = (uint64_t)(uintptr_t)(r->base + r->layout.offset);
    r->handle = h.offer.handle = onic_handle_new(&superpipe.handles, r);
    if (r->handle == 0)
        return OMPI_ERR_OUT_OF_RESOURCE;
    superpipe_counters.announced++;
    rc = superpipe_send_header_locked(r, ONIC_AM_PML, &h, sizeof(h), first);
    if (rc < 0 || early == 0)
        return rc;
    superpipe_transfer_begins_early(&r->state, early, waits);
    superpipe_transfer_given(&r->state, first, false);
    for (uint64_t left; rc >= 0 && (left = early - r->state.moved) > 0;)
        rc = superpipe_send_fragment_locked(r, left < most ? left : most, 0);
    /* The receiver waits for them. */
    if (rc < 0)
        onic_peer_give_up(r->peer->peer);
    return rc;
}

static int send_locked(superpipe_request_t *r)
{
    const uint64_t length = r->state.length;
    const bool is_short = is_short_locked(r->peer, length);
    const bool waits = r->mode == MCA_PML_BASE_SEND_SYNCHRONOUS;
    const uint32_t early = (uint32_t)(is_short ? length : superpipe_early_locked(r));
    const uint64_t cost = SUPERPIPE_RECORD + early;
    onic_credit_t *credit = &r->peer->account->credit;
    int rc;

    /* Without data an announcement is free. */
    if (early == 0 && (waits || !is_short))
        return send_rts_locked(r, 0);
    if (!onic_credit_take(credit, cost, ONIC_CREDIT_FLOOR)) {
        superpipe_counters.no_credit += is_short;
        return send_rts_locked(r, 0);
    }
    if (!waits && (is_short || superpipe_goes_short(length, early, r->peer->fragment,
                                                    superpipe.params.protocol)))
        rc = superpipe_eager_send_locked(r);
    else
        rc = send_rts_locked(r, early);
    if (rc < 0)
        onic_credit_return(credit, cost);
    return rc;
}

/* ---- starts ---------------------------------------------------------------------------------- */

/** Copies the data of a short message that cannot be sent whole, so that its sender need not wait,
 *  which many programs rely on. The copy belongs to a request without a user. NULL if too much is
 *  copied already; then the sender waits. */
static superpipe_request_t *copy_out(superpipe_request_t *r)
{
    const uint64_t cost = sizeof(*r) + r->state.length;
    superpipe_request_t *copy = NULL;

    if (!r->internal && r->mode != MCA_PML_BASE_SEND_SYNCHRONOUS &&
        superpipe.buffered + cost <= superpipe.params.buffered)
        copy = superpipe_request_copy(r, false);
    if (copy == NULL)
        return NULL;
    superpipe.buffered += cost;
    superpipe_attach_locked(copy, r->peer);
    superpipe_transfer_sent_whole(&r->state);
    return copy;
}

static int start_locked(superpipe_request_t *r, superpipe_peer_t *p)
{
    superpipe_request_t *copy;
    int rc;

    superpipe_attach_locked(r, p);
    copy = lacks_credit_locked(p, r->state.length) ? copy_out(r) : NULL;
    rc = send_locked(copy != NULL ? copy : r);
    if (rc < 0 && copy != NULL)
        superpipe_fail_locked(copy, MPI_ERR_OTHER);
    /* The server thread takes care of sends that no user waits for. */
    if (r->internal || copy != NULL) {
        onic_transport_ask(ONIC_AM_PML, ONIC_LOCKED);
        if (superpipe.copies > 0)
            onic_transport_need_help_locked();
    }
    return rc;
}

void superpipe_send_start(superpipe_request_t *r, superpipe_peer_t *p)
{
    int rc = OMPI_ERR_UNREACH;

    onic_transport_lock();
    /* The message limit that was not known before may be known now. */
    if (lacks_credit_locked(p, r->state.length))
        (void)onic_transport_poll_locked();
    if (!onic_peer_lost(p->peer))
        rc = start_locked(r, p);
    if (rc < 0) {
        r->error = error_of(rc);
        r->state.broken = true;
    }
    superpipe_unlock(r);
}

/* ---- what the receiver says ------------------------------------------------------------------ */

void superpipe_on_cts_locked(const superpipe_incoming_t *in)
{
    const superpipe_row_t *row = superpipe_rows[in->prefix.protocol];
    superpipe_request_t *r = onic_handle_get(&superpipe.handles, in->handle);

    if (r == NULL || row->answer == NULL || !superpipe_transfer_requested(&r->state, in->value))
        return;
    r->theirs = in->cts.receive;
    r->protocol = (superpipe_protocol_t)in->prefix.protocol;
    if (!row->answer(r, in))
        (void)superpipe_stream_row.answer(r, in);
}

void superpipe_on_ack_locked(const superpipe_incoming_t *in)
{
    superpipe_request_t *r = onic_handle_get(&superpipe.handles, in->handle);

    if (r == NULL)
        return;
    superpipe_transfer_acknowledged(&r->state);
    superpipe_finish_locked(r);
}
