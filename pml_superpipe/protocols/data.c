/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The data of long messages between the transport and the user's memory, in fragments. */
#include "pml_superpipe/protocols/process.h"

#include <string.h>

_Static_assert(sizeof(onic_ticket_t) == SUPERPIPE_TICKET_BYTES, "the ticket's room in messages");

/** Of a message to oneself, which no transport limits. */
#define LOOP_FRAGMENT 8192

size_t superpipe_fragment_locked(superpipe_peer_t *p, uint64_t wanted)
{
    if (p->fragment == 0 || p->fragment < wanted) {
        const size_t most =
            p->self ? LOOP_FRAGMENT
                    : onic_peer_message_max(p->wire, ONIC_AM_PML, wanted + SUPERPIPE_HEADER_MAX);
        p->fragment = most > 2 * SUPERPIPE_HEADER_MAX ? most - SUPERPIPE_HEADER_MAX : 0;
        p->short_most =
            superpipe_short_most(superpipe.params.eager, p->fragment, superpipe.params.protocol);
    }
    return p->fragment;
}

/* ---- sender ---------------------------------------------------------------------------------- */

void superpipe_fragment_left(void *request, int status)
{
    superpipe_request_t *r = request;

    superpipe_operation_ended(r, status);
    if (r->state.done)
        return;
    /* Its place is free for the next fragment. After a header, too: CTS may have come before this,
     * and what it was given then may have left at once. */
    superpipe_send_fragments_locked(r);
    superpipe_finish_locked(r);
}

int superpipe_send_header_locked(superpipe_request_t *r, const void *header, size_t len, bool data)
{
    const onic_payload_t payload = {.base = r->base, .cursor = r->cursor, .len = r->state.length};
    const int rc =
        onic_peer_send(r->peer->wire, ONIC_AM_PML, header, len,
                       data && payload.len > 0 ? &payload : NULL, 0, superpipe_fragment_left, r);

    if (rc == 0)
        r->state.in_flight++;
    return rc;
}

static int send_fragment_locked(superpipe_request_t *r, uint64_t bytes, unsigned flags)
{
    const bool early = r->state.moved < r->state.early;
    const superpipe_control_t w = {
        .prefix = {.sender = onic_transport_me(),
                   .kind = (uint8_t)(early ? SUPERPIPE_KIND_EARLY : SUPERPIPE_KIND_DATA)},
        .handle = early ? r->handle : r->theirs,
        .value = r->state.moved};
    onic_payload_t payload = {.base = r->base, .len = bytes};
    int rc;

    onic_cursor_init(&payload.cursor, &r->layout, r->state.moved);
    rc = onic_peer_send(r->peer->wire, ONIC_AM_PML, &w, sizeof(w), &payload, flags,
                        superpipe_fragment_left, r);
    if (rc >= 0)
        superpipe_transfer_given(&r->state, bytes, rc == 0);
    return rc;
}

void superpipe_send_fragments_locked(superpipe_request_t *r)
{
    const bool meets =
        r->state.protocol == SUPERPIPE_RENDEZVOUS && r->state.moved >= r->state.early;
    const uint64_t most =
        meets ? UINT64_MAX : superpipe_fragment_locked(r->peer, r->state.length - r->state.moved);
    uint64_t bytes = 0;
    bool sent = most > 0;

    for (int n = 0; sent && n < SUPERPIPE_FRAGMENTS; n++) {
        bytes = superpipe_transfer_fragment(&r->state, most);
        if (bytes == 0)
            break;
        sent = send_fragment_locked(r, bytes, meets ? ONIC_SEND_RNDV : 0) >= 0;
    }
    if (!sent) {
        superpipe_fail_locked(r, ONIC_ERR_PROC_FAILED);
    } else if (superpipe_transfer_lacks_turn(&r->state)) {
        r->state.queued = true;
        r->next_turn = superpipe.stream;
        superpipe.stream = r;
        onic_transport_defer(ONIC_AM_PML);
    }
}

int superpipe_stream_locked(void)
{
    superpipe_request_t *r = superpipe.stream;
    int events = 0;

    if (onic_transport_losses() != superpipe.losses)
        onic_transport_kick_mpi(ONIC_AM_PML);
    superpipe.stream = NULL;
    for (superpipe_request_t *next; r != NULL; r = next, events++) {
        next = r->next_turn;
        r->state.queued = false;
        superpipe_send_fragments_locked(r);
        superpipe_finish_locked(r);
    }
    /* What no call waits for goes on without an MPI thread where there is a server thread. */
    return superpipe.copies > 0 ? -1 : events;
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

/* ---- receiver -------------------------------------------------------------------------------- */

void superpipe_request_data_locked(superpipe_request_t *r, superpipe_protocol_t protocol,
                                   const onic_ticket_t *ticket)
{
    struct {
        superpipe_control_t w;
        superpipe_cts_t cts;
    } header = {.w = {.prefix = {.sender = onic_transport_me(),
                                 .kind = SUPERPIPE_KIND_CTS,
                                 .protocol = (uint8_t)protocol},
                      .handle = r->theirs,
                      .value = r->state.wanted},
                .cts = {.receive = r->handle}};

    superpipe_count(r, protocol);
    superpipe_transfer_request(&r->state, protocol);
    if (ticket != NULL)
        memcpy(header.cts.ticket, ticket, sizeof(*ticket));
    if (onic_peer_send(r->peer->wire, ONIC_AM_PML, &header, sizeof(header), NULL, 0, NULL, NULL) >=
        0)
        return;
    onic_peer_give_up(r->peer->wire);
    /* What waited for a lost peer may have been ended already: this one has to be ended here. */
    superpipe_fail_locked(r, ONIC_ERR_PROC_FAILED);
}

void superpipe_on_data_locked(const superpipe_incoming_t *in, onic_rndv_t *rndv)
{
    superpipe_request_t *r = onic_handle_get(&superpipe.handles, in->handle);
    const bool meets = rndv != NULL;
    int rc = 1;

    if (r == NULL || !superpipe_transfer_takes(&r->state, in->value, in->bytes))
        return;
    if (meets)
        rc = onic_rndv_recv(rndv, r->base + r->layout.offset + in->value, in->bytes,
                            superpipe_operation_ended, r);
    else
        superpipe_place(r, in->value, in->data, in->bytes);
    if (rc < 0) {
        superpipe_fail_locked(r, rc == OMPI_ERR_UNREACH ? ONIC_ERR_PROC_FAILED : MPI_ERR_OTHER);
        return;
    }
    r->state.in_flight += rc == 0;
    r->state.moved += in->bytes;
    superpipe_finish_locked(r);
}
