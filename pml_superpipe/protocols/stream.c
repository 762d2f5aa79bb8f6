/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Protocol stream: the sender packs the data into DATA messages, and the receiver unpacks
 *  them as they come. It is always possible. Early bytes are the beginning of a stream, sent
 * without a request. */
#include "pml_superpipe/protocols/process.h"

static bool always(const superpipe_case_t *c)
{
    (void)c;
    return true;
}

static double cost(const superpipe_case_t *c)
{
    const onic_link_t *link = c->link;

    if (c->costs != NULL)
        return superpipe_way_cost(c, ONIC_WAY_stream);
    return link->message + (double)c->length * link->byte +
           superpipe_gather(link, c->length, c->send_block) +
           superpipe_gather(link, c->length, c->receive_block);
}

/* ---- sender ---------------------------------------------------------------------------------- */

int superpipe_send_fragment_locked(superpipe_request_t *r, uint64_t bytes, unsigned flags)
{
    const bool early = r->state.moved < r->state.early;
    const superpipe_control_t w = {
        .prefix = {.sender = onic_transport_me(),
                   .kind = (uint8_t)(early ? SUPERPIPE_KIND_EARLY : SUPERPIPE_KIND_DATA)},
        .handle = early ? 0 : r->theirs,
        .value = r->state.moved};
    onic_payload_t payload = {.base = r->base, .len = bytes};
    int rc;

    onic_cursor_init(&payload.cursor, &r->layout, r->state.moved);
    rc = onic_peer_send(r->peer->peer, ONIC_AM_PML, &w, sizeof(w), &payload, flags,
                        superpipe_fragment_left, r);
    if (rc >= 0)
        superpipe_transfer_given(&r->state, bytes, rc == 0);
    return rc;
}

void superpipe_send_fragments_locked(superpipe_request_t *r)
{
    const uint64_t most = superpipe_fragment_locked(r->peer, r->state.length - r->state.moved);
    uint64_t bytes = 0;
    bool sent = most > 0;

    for (int n = 0; sent && n < SUPERPIPE_FRAGMENTS; n++) {
        bytes = superpipe_transfer_fragment(&r->state, most);
        if (bytes == 0)
            break;
        sent = superpipe_send_fragment_locked(r, bytes, 0) >= 0;
    }
    if (!sent) {
        superpipe_fail_locked(r, ONIC_ERR_PROC_FAILED);
    } else if (superpipe_transfer_is_idle(&r->state)) {
        r->state.in_flight++;
        r->next = superpipe.streams;
        superpipe.streams = r;
        onic_transport_ask(ONIC_AM_PML, ONIC_LOCKED);
    }
}

void superpipe_fragment_left(void *request, int status)
{
    superpipe_request_t *r = request;

    superpipe_operation_ended(r, status);
    if (r->state.done)
        return;
    /* The next fragment can be sent. This is also needed after a header: CTS may have come earlier,
     * and the fragments it started may have left at once. */
    superpipe_send_fragments_locked(r);
    superpipe_finish_locked(r);
}

int superpipe_send_header_locked(superpipe_request_t *r, unsigned am_id, const void *header,
                                 size_t len, uint64_t bytes)
{
    onic_payload_t payload = {.base = r->base, .len = bytes};
    int rc;

    onic_cursor_init(&payload.cursor, &r->layout, 0);
    rc = onic_peer_send(r->peer->peer, am_id, header, len, bytes > 0 ? &payload : NULL, 0,
                        superpipe_fragment_left, r);
    if (rc == 0)
        r->state.in_flight++;
    return rc;
}

int superpipe_stream_locked(void)
{
    superpipe_request_t *r = superpipe.streams;
    int events = 0;

    if (onic_transport_losses() != superpipe.losses)
        onic_transport_ask(ONIC_AM_PML, ONIC_MPI);
    superpipe.streams = NULL;
    for (superpipe_request_t *next; r != NULL; r = next, events++) {
        next = r->next;
        r->state.in_flight--;
        superpipe_send_fragments_locked(r);
        superpipe_finish_locked(r);
    }
    /* Sends that no call waits for are continued without an MPI thread if there is a server thread.
     */
    return superpipe.copies > 0 ? -1 : events;
}

static bool answer(superpipe_request_t *r, const superpipe_incoming_t *in)
{
    (void)in;
    r->state.fragments = true;
    superpipe_send_fragments_locked(r);
    superpipe_finish_locked(r);
    return true;
}

/* ---- receiver -------------------------------------------------------------------------------- */

static bool start(superpipe_request_t *r)
{
    superpipe_request_data_locked(r, NULL);
    return true;
}

static void take(superpipe_request_t *r, const superpipe_incoming_t *in, onic_rndv_t *rndv)
{
    if (rndv != NULL)
        return;
    superpipe_place(r, in->value, in->data, in->bytes);
    r->state.moved += in->bytes;
    superpipe_finish_locked(r);
}

const superpipe_row_t superpipe_stream_row = {
    .name = "stream", .can = always, .cost = cost, .start = start, .data = take, .answer = answer};
