/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The sender of messages that cannot be sent at once: short ones by credit, long ones
 *  announced. */
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

/* ---- by credit ------------------------------------------------------------------------------- */

static int send_rts_locked(superpipe_request_t *r, const superpipe_channel_t *c, uint32_t sequence,
                           unsigned flags, uint32_t early)
{
    struct {
        superpipe_envelope_t e;
        superpipe_offer_t offer;
    } header = {superpipe_envelope(SUPERPIPE_KIND_RTS, c, r->tag, flags, sequence),
                {.length = r->state.length, .block = superpipe_mean_block(&r->layout)}};

    if (onic_layout_is_contig(&r->layout))
        header.offer.address = (uint64_t)(uintptr_t)(r->base + r->layout.offset);
    header.e.early = early;
    header.e.prefix.pins = (uint8_t)(UINT8_MAX * superpipe_pin_share_locked(r));
    r->handle = header.offer.handle = onic_handle_new(&superpipe.handles, r);
    if (r->handle == 0)
        return OMPI_ERR_OUT_OF_RESOURCE;
    superpipe_counters.announced++;
    return superpipe_send_header_locked(r, &header, sizeof(header), false);
}

/** Sends a message that is too long to go with its envelope. */
static int send_long_locked(superpipe_request_t *r, const superpipe_channel_t *c, uint32_t sequence)
{
    const bool waits = r->mode == MCA_PML_BASE_SEND_SYNCHRONOUS;
    const uint32_t most = (uint32_t)superpipe_early_locked(r);
    onic_credit_t *credit = &r->peer->account->credit;
    const uint32_t early = onic_credit_take(credit, most, ONIC_CREDIT_FLOOR) ? most : 0;
    const int rc = send_rts_locked(r, c, sequence, waits ? SUPERPIPE_SYNCHRONOUS : 0, early);

    if (rc < 0) {
        onic_credit_return(credit, early);
    } else if (early > 0) {
        superpipe_transfer_begins_early(&r->state, early, waits);
        superpipe_send_fragments_locked(r);
    }
    return rc;
}

static int send_locked(superpipe_request_t *r)
{
    superpipe_channel_t *c = (superpipe_channel_t *)r->comm->c_pml_comm;
    const uint32_t sequence = c->match.sent[r->rank];
    const uint64_t cost = SUPERPIPE_RECORD + r->state.length;
    onic_credit_t *credit = &r->peer->account->credit;
    int rc;

    if (!is_short_locked(r->peer, r->state.length)) {
        rc = send_long_locked(r, c, sequence);
    } else if (onic_credit_take(credit, cost, ONIC_CREDIT_FLOOR)) {
        rc = superpipe_eager_send_locked(r, c, sequence);
        if (rc < 0)
            onic_credit_return(credit, cost);
    } else {
        superpipe_counters.no_credit++;
        rc = send_rts_locked(r, c, sequence, 0, 0);
    }
    if (rc >= 0)
        c->match.sent[r->rank]++;
    return rc;
}

/* ---- starts ---------------------------------------------------------------------------------- */

/** Copies the data of a short message that cannot be sent whole, so that its sender need not wait,
 * which many programs rely on. The copy belongs to a request without a user. NULL if too much is
 * copied already; then the sender waits. */
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
    superpipe_transfer_sent_whole(&r->state, false);
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

void superpipe_send_held(superpipe_request_t *r, superpipe_peer_t *p)
{
    onic_transport_lock();
    superpipe_attach_locked(r, p);
    superpipe_transfer_sent_whole(&r->state, false);
    if (onic_peer_leaves(p->peer, superpipe_fragment_left, r) == 0)
        r->state.in_flight++;
    superpipe_unlock(r);
}

/* ---- what the receiver says ------------------------------------------------------------------ */

void superpipe_on_cts_locked(superpipe_peer_t *p, const superpipe_incoming_t *in)
{
    const superpipe_protocol_t protocol = (superpipe_protocol_t)in->prefix.protocol;
    const superpipe_row_t *row = superpipe_rows[protocol];
    superpipe_request_t *r = onic_handle_get(&superpipe.handles, in->handle);
    superpipe_answer_t answer = SUPERPIPE_NOT_NOW;

    if (r != NULL && row->answer != NULL && superpipe_transfer_requested(&r->state, in->value)) {
        r->theirs = in->cts.receive;
        r->row = row;
        r->protocol = protocol;
        answer = row->answer(r, in);
        if (answer == SUPERPIPE_ANSWERED)
            return;
        r->state.requested = false;
    }
    superpipe_send_control_locked(p, SUPERPIPE_KIND_NACK, in->cts.receive,
                                  answer == SUPERPIPE_NEVER);
}

void superpipe_on_ack_locked(superpipe_peer_t *p, const superpipe_incoming_t *in)
{
    superpipe_request_t *r = onic_handle_get(&superpipe.handles, in->handle);

    (void)p;
    if (r == NULL)
        return;
    superpipe_transfer_acknowledged(&r->state);
    superpipe_finish_locked(r);
}
