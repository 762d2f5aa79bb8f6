/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The sender: short messages, announcements, and data that was asked for. */
#include "pml_superpipe/protocols/process.h"

#include <stdlib.h>
#include <string.h>

#include "common/layout/pack.h"

/** Fragments of a message that the wire has at a time, and that are given to it in one go. */
#define FRAGMENTS 16

/** Of a message to oneself, which has no transport that says how much it takes. */
#define LOOP_FRAGMENT 8192

static superpipe_envelope_t envelope(superpipe_kind_t kind, const superpipe_channel_t *c, int tag,
                                     unsigned flags, uint32_t sequence)
{
    return (superpipe_envelope_t){.prefix = {.sender = onic_wire_me(),
                                             .kind = (uint8_t)kind,
                                             .flags = (uint8_t)flags,
                                             .context = (uint32_t)c->match.context},
                                  .source = ompi_comm_rank(c->comm),
                                  .tag = tag,
                                  .sequence = sequence};
}

static size_t fragment_locked(superpipe_peer_t *p)
{
    if (p->fragment == 0) {
        const size_t most = p->self ? LOOP_FRAGMENT : onic_peer_frag_max(p->wire);
        p->fragment = most > 2 * SUPERPIPE_HEADER_MAX ? most - SUPERPIPE_HEADER_MAX : 0;
    }
    return p->fragment;
}

/** Is a message of that length sent as a whole? */
static bool is_short_locked(superpipe_peer_t *p, uint64_t length)
{
    const size_t fragment = fragment_locked(p);
    const size_t most = superpipe.params.eager < fragment ? superpipe.params.eager : fragment;

    if (length > 0 && superpipe.params.protocol > SUPERPIPE_SHORT)
        return false;
    return length <= (superpipe.params.protocol == SUPERPIPE_SHORT ? fragment : most);
}

static bool take_credit_locked(superpipe_peer_t *p, int tag, uint64_t length)
{
    return tag < 0 || length == 0 || superpipe_credit_take(&p->credit, length);
}

/* ---- short messages -------------------------------------------------------------------------- */

bool superpipe_send_now_locked(superpipe_channel_t *c, superpipe_peer_t *p, int rank, int tag,
                               const void *data, size_t len)
{
    unsigned char message[ONIC_SEND_NOW_MAX];
    uint32_t *sent = &c->match.sent[rank];

    if (!is_short_locked(p, len) || p->self || !take_credit_locked(p, tag, len))
        return false;
    const superpipe_envelope_t e = envelope(SUPERPIPE_EAGER, c, tag, 0, *sent);
    memcpy(message, &e, sizeof(e));
    if (len > 0)
        memcpy(message + sizeof(e), data, len);
    if (onic_peer_send_now(p->wire, ONIC_AM_PML, message, sizeof(e) + len)) {
        ++*sent;
        return true;
    }
    if (tag >= 0)
        p->credit.sent -= len;
    return false;
}

static void sent_cb(void *arg, int status)
{
    superpipe_request_t *r = arg;

    r->in_flight--;
    if (status != OMPI_SUCCESS)
        superpipe_fail_locked(r, ONIC_ERR_PROC_FAILED);
    else
        superpipe_settle_locked(r);
}

/** Sends a header, and the data where it is short. Where that fails nothing has been sent. */
static int send_header(superpipe_request_t *r, const void *header, size_t len, bool data)
{
    const onic_payload_t payload = {.base = r->base, .cursor = r->cursor, .len = r->length};
    const int rc = onic_peer_send(r->peer->wire, ONIC_AM_PML, header, len,
                                  data && r->length > 0 ? &payload : NULL, 0, sent_cb, r);

    if (rc == 0)
        r->in_flight++;
    return rc;
}

static int send_short(superpipe_request_t *r, const superpipe_channel_t *c, uint32_t sequence)
{
    const bool waits = r->mode == MCA_PML_BASE_SEND_SYNCHRONOUS;
    const superpipe_envelope_t e =
        envelope(SUPERPIPE_EAGER, c, r->tag, waits ? SUPERPIPE_SYNCHRONOUS : 0, sequence);
    unsigned char header[sizeof(e) + sizeof(r->handle)];

    memcpy(header, &e, sizeof(e));
    if (waits && (r->handle = onic_handle_new(&superpipe.handles, r)) == 0)
        return OMPI_ERR_OUT_OF_RESOURCE;
    memcpy(header + sizeof(e), &r->handle, sizeof(r->handle));
    r->matched = !waits;
    r->sent = true;
    onic_cursor_init(&r->cursor, &r->layout, 0);
    return send_header(r, header, sizeof(e) + (waits ? sizeof(r->handle) : 0), true);
}

/* ---- announcements --------------------------------------------------------------------------- */

static int announce(superpipe_request_t *r, const superpipe_channel_t *c, uint32_t sequence,
                    unsigned flags)
{
    const bool one_piece = onic_layout_is_contig(&r->layout);
    const uint64_t pieces = onic_layout_blocks(&r->layout);
    const superpipe_envelope_t e = envelope(SUPERPIPE_ANNOUNCE, c, r->tag, flags, sequence);
    superpipe_offer_t offer = {.length = r->length,
                               .block = pieces > 0 && r->length > pieces ? r->length / pieces : 1};
    unsigned char header[sizeof(e) + sizeof(offer)];

    if (one_piece)
        offer.address = (uint64_t)(uintptr_t)(r->base + r->layout.offset);
    r->handle = offer.handle = onic_handle_new(&superpipe.handles, r);
    if (r->handle == 0)
        return OMPI_ERR_OUT_OF_RESOURCE;
    superpipe_counters.announced++;
    superpipe_counters.no_credit += (flags & SUPERPIPE_NO_CREDIT) != 0;
    memcpy(header, &e, sizeof(e));
    memcpy(header + sizeof(e), &offer, sizeof(offer));
    return send_header(r, header, sizeof(header), false);
}

/** Copies the data of a short message for which there is no credit, so that its sender need not
 *  wait: many programs count on that. A request without a user keeps the copy. NULL where too much
 *  is copied already. */
static superpipe_request_t *copy_out(superpipe_request_t *r)
{
    superpipe_request_t *copy;
    onic_cursor_t cursor;

    if (r->internal || r->mode == MCA_PML_BASE_SEND_SYNCHRONOUS ||
        superpipe.buffered + r->length > superpipe.params.buffered)
        return NULL;
    copy = superpipe_request_new(r->comm, r->datatype, r->buffer, r->count, r->rank, r->tag, true);
    if (copy == NULL)
        return NULL;
    copy->bounce = malloc(r->length);
    if (copy->bounce == NULL) {
        superpipe_request_drop(copy);
        return NULL;
    }
    onic_cursor_init(&cursor, &r->layout, 0);
    (void)onic_pack(&cursor, r->base, copy->bounce, r->length);
    superpipe.buffered += r->length;
    copy->internal = true;
    copy->in_buffer = false;
    superpipe_request_begin(copy);
    copy->base = copy->bounce;
    copy->length = r->length;
    onic_layout_set(&copy->layout, r->length);
    return copy;
}

static int start_locked(superpipe_request_t *r, superpipe_peer_t *p)
{
    superpipe_channel_t *c = (superpipe_channel_t *)r->comm->c_pml_comm;
    const uint32_t sequence = c->match.sent[r->rank];
    const bool is_short = is_short_locked(p, r->length);
    int rc;

    superpipe_enter_locked(r, p);
    if (is_short && take_credit_locked(p, r->tag, r->length)) {
        rc = send_short(r, c, sequence);
    } else {
        superpipe_request_t *copy = is_short ? copy_out(r) : NULL;

        if (copy != NULL) {
            r->matched = r->sent = true;
            r = copy;
            superpipe_enter_locked(r, p);
        }
        rc = announce(r, c, sequence, is_short ? SUPERPIPE_NO_CREDIT : 0);
        if (copy != NULL && rc < 0)
            superpipe_fail_locked(copy, MPI_ERR_OTHER);
    }
    if (rc >= 0)
        c->match.sent[r->rank]++;
    return rc;
}

void superpipe_send_start(superpipe_request_t *r, superpipe_peer_t *p)
{
    int rc = OMPI_ERR_UNREACH;

    onic_wire_lock();
    if (!onic_peer_lost(p->wire))
        rc = start_locked(r, p);
    if (rc < 0)
        superpipe_fail_locked(r, rc == OMPI_ERR_OUT_OF_RESOURCE ? MPI_ERR_NO_MEM
                                                                : ONIC_ERR_PROC_FAILED);
    else
        superpipe_settle_locked(r);
    onic_wire_unlock();
}

/* ---- data that was asked for ----------------------------------------------------------------- */

static void fragment_cb(void *arg, int status);

static int send_data(superpipe_request_t *r, uint64_t bytes, unsigned flags)
{
    const superpipe_word_t w = {.prefix = {.sender = onic_wire_me(), .kind = SUPERPIPE_DATA},
                                .handle = r->theirs,
                                .value = r->started};
    onic_payload_t payload = {.base = r->base, .len = bytes};
    int rc;

    onic_cursor_init(&payload.cursor, &r->layout, r->started);
    rc = onic_peer_send(r->peer->wire, ONIC_AM_PML, &w, sizeof(w), &payload, flags, fragment_cb, r);
    if (rc < 0)
        return rc;
    r->started += bytes;
    r->sent = r->started == r->wanted;
    r->in_flight += rc == 0;
    return rc;
}

/** Gives fragments to the wire. Not all that there are, so that others get their turn. */
static void send_fragments(superpipe_request_t *r)
{
    const bool meets = r->how == SUPERPIPE_BY_RENDEZVOUS;
    const uint64_t most = meets ? onic_peer_rndv_max(r->peer->wire) : fragment_locked(r->peer);

    for (int n = 0; n < FRAGMENTS && !r->sent && !r->broken && r->in_flight < FRAGMENTS; n++) {
        const uint64_t left = r->wanted - r->started;

        if (most == 0 || send_data(r, left < most ? left : most, meets ? ONIC_SEND_RNDV : 0) < 0) {
            superpipe_fail_locked(r, ONIC_ERR_PROC_FAILED);
            return;
        }
    }
    if (!r->sent && !r->broken && r->in_flight == 0) {
        r->queued = true;
        r->next_stream = superpipe.stream;
        superpipe.stream = r;
        onic_wire_defer(ONIC_AM_PML);
    }
    superpipe_settle_locked(r);
}

static void fragment_cb(void *arg, int status)
{
    superpipe_request_t *r = arg;

    r->in_flight--;
    if (status != OMPI_SUCCESS)
        superpipe_fail_locked(r, ONIC_ERR_PROC_FAILED);
    else if (r->sent || r->broken)
        superpipe_settle_locked(r);
    else
        send_fragments(r);
}

int superpipe_stream_locked(void)
{
    superpipe_request_t *r = superpipe.stream;
    int events = 0;

    if (onic_wire_losses() != superpipe.losses)
        onic_wire_kick_mpi(ONIC_AM_PML);
    superpipe.stream = NULL;
    for (superpipe_request_t *next; r != NULL; r = next, events++) {
        next = r->next_stream;
        r->queued = false;
        send_fragments(r);
    }
    return events;
}

/** All is packed. */
static void packed_cb(void *arg, int status)
{
    superpipe_request_t *r = arg;

    r->moving = false;
    r->sent = true;
    if (status != OMPI_SUCCESS)
        superpipe_fail_locked(r, ONIC_ERR_PROC_FAILED);
    else
        superpipe_settle_locked(r);
}

static bool answer_by_mover(superpipe_request_t *r, const uint8_t *bytes)
{
    onic_mover_end_t end = {
        .layout = r->layout, .len = r->wanted, .base = r->base, .done = packed_cb, .arg = r};
    onic_ticket_t ticket;

    memcpy(&ticket, bytes, sizeof(ticket));
    if (ticket.len != r->wanted ||
        onic_mover_answer_locked(r->peer->wire, &ticket, &end) != OMPI_SUCCESS)
        return false;
    onic_layout_set(&r->layout, 0); /* it is the transfer's now */
    r->moving = true;
    return true;
}

void superpipe_on_ask_locked(superpipe_peer_t *p, const superpipe_incoming_t *in)
{
    superpipe_request_t *r = onic_handle_get(&superpipe.handles, in->handle);

    if (r == NULL || !r->sends || r->peer != p || r->asked || r->broken || r->sent ||
        in->value > r->length) {
        superpipe_say_locked(p, SUPERPIPE_FAILED, in->ask.receive, 0);
        return;
    }
    r->matched = r->asked = true;
    r->theirs = in->ask.receive;
    r->wanted = in->value;
    r->how = in->prefix.how;
    if (r->how == SUPERPIPE_BY_RENDEZVOUS && !onic_layout_is_contig(&r->layout))
        r->how = SUPERPIPE_BY_STREAM;
    if (r->how != SUPERPIPE_BY_MOVER) {
        send_fragments(r);
    } else if (!answer_by_mover(r, in->ask.ticket)) {
        r->asked = false;
        superpipe_say_locked(p, SUPERPIPE_FAILED, in->ask.receive, 0);
    }
}

void superpipe_on_done_locked(superpipe_peer_t *p, const superpipe_incoming_t *in)
{
    superpipe_request_t *r = onic_handle_get(&superpipe.handles, in->handle);

    if (r == NULL || !r->sends || r->peer != p || r->asked)
        return;
    r->matched = r->sent = true;
    superpipe_settle_locked(r);
}
