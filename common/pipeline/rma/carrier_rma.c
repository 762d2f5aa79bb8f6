/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Transfers by puts: the carrier's row, and the beginning of transfers. See carrier_rma.h.
 */
#include "common/pipeline/rma/carrier_rma.h"

#include "ompi/constants.h"

/* ---- sender ---------------------------------------------------------------------------------- */

static void publish(onic_transfer_t *t, unsigned buffer, uint64_t word)
{
    if (t->rma->handshake.lease != 0)
        onic_rma_put_word(t->rma, buffer, word);
    else
        t->rma->early = word;
}

/** The machine also waits here for its grant, after it has filled the first chunk. */
static uint64_t acknowledged(onic_transfer_t *t, unsigned buffer)
{
    return t->rma->handshake.word[buffer];
}

static bool left(const onic_transfer_t *t)
{
    return onic_rma_left(t->rma);
}

/* ---- receiver -------------------------------------------------------------------------------- */

/** Starts the machine with the buffers of the lease or, while that is not known, with one that
 *  stands for it. */
static void start_receiver(onic_transfer_t *t, uint64_t len)
{
    const uint64_t buffers = t->rma->handshake.lease;
    const onic_lease_t lease = {buffers != 0 ? buffers : 1, onic_rma_state.buffer_bytes};
    t->buffers = buffers;
    onic_receiver_init(&t->receiver, len, &lease);
}

static uint64_t word(onic_transfer_t *t, unsigned buffer)
{
    onic_rma_t *r = t->rma;
    if (t->buffers == 0 && r->handshake.lease != 0) {
        start_receiver(t, t->receiver.len);
        buffer = t->receiver.buffer;
    }
    return r->handshake.word[buffer];
}

static void acknowledge(onic_transfer_t *t, unsigned buffer, uint64_t rounds)
{
    onic_rma_send(t->rma, (onic_rma_message_t){
                              .type = ONIC_RMA_ACK, .buffer = (uint16_t)buffer, .value = rounds});
}

static void release(onic_transfer_t *t, uint64_t buffers)
{
    t->rma->handshake.lease &= ~buffers;
    onic_rma_released(t->rma->peer, buffers);
}

/* ---- both ------------------------------------------------------------------------------------ */

static char *at(onic_transfer_t *t, unsigned buffer, uint32_t offset)
{
    char *begin = t->role == ONIC_SENDS ? onic_rma_bounce(t->rma) : onic_rma_rx_buffer(buffer);
    return begin != NULL ? begin + offset : NULL;
}

static bool is_dead(const onic_transfer_t *t)
{
    return onic_peer_is_lost(t->peer) && !onic_transport_drains();
}

static void closed(onic_transfer_t *t)
{
    onic_rma_end(t->rma);
    t->rma = NULL;
}

/* ---- beginning ------------------------------------------------------------------------------- */

/** Likewise; in a handshake only the first chunk is packed before the lease is known. */
static void start_sender(onic_transfer_t *t)
{
    const onic_rma_t *r = t->rma;
    const uint32_t theirs = r->peer->buffer_bytes, mine = onic_rma_state.buffer_bytes;
    const onic_schedule_choice_t *choice = &onic_rma_state.schedule;
    const uint64_t buffers = r->handshake.lease;
    const onic_lease_t lease = {buffers != 0 ? buffers : 1, theirs < mine ? theirs : mine};
    onic_transfer_start_sender(t, choice, &lease, onic_schedule_block(&choice->link, t->end.len));
}

static int lease(onic_transfer_t *t, void *record, onic_ticket_t *ticket)
{
    onic_rma_peer_t *p = record;
    const bool sends = t->role == ONIC_SENDS;
    if (sends && p->requests == ONIC_GRANT_REQUESTS_MAX)
        return OMPI_ERR_OUT_OF_RESOURCE;
    onic_rma_t *r = onic_rma_new(p, t);
    if (r == NULL)
        return OMPI_ERR_OUT_OF_RESOURCE;
    if (sends) {
        start_sender(t);
        r->handshake.waits = true;
        p->requests++;
    } else if (onic_rma_reserve(r, onic_buffers_for(t->end.len, onic_rma_state.buffer_bytes))) {
        start_receiver(t, t->end.len);
    } else {
        closed(t);
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    *ticket = (onic_ticket_t){.buffers = r->handshake.lease, .len = t->end.len, .name = r->name};
    return OMPI_SUCCESS;
}

static int follow(onic_transfer_t *t, void *record, const onic_ticket_t *ticket)
{
    onic_rma_peer_t *p = record;
    const bool sends = t->role == ONIC_SENDS;
    if (ticket->len == 0 || (sends && (ticket->buffers == 0 ||
                                       (ticket->buffers & ~onic_buffers_first(p->nbuffers)) != 0)))
        return OMPI_ERR_BAD_PARAM;
    onic_rma_t *r = onic_rma_new(p, t);
    if (r == NULL)
        return OMPI_ERR_OUT_OF_RESOURCE;
    r->other = ticket->name;
    if (sends) {
        r->handshake.lease = ticket->buffers;
        start_sender(t);
    } else {
        start_receiver(t, ticket->len);
        onic_rma_request(r, onic_buffers_for(ticket->len, onic_rma_state.buffer_bytes));
        (void)onic_rma_serve();
    }
    return OMPI_SUCCESS;
}

const onic_carrier_t onic_carrier_rma = {
    .reach = onic_rma_reach,
    .lease = lease,
    .follow = follow,
    .at = at,
    .publish = publish,
    .word = word,
    .acknowledge = acknowledge,
    .acknowledged = acknowledged,
    .left = left,
    .release = release,
    .is_dead = is_dead,
    .closed = closed,
};
