/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Transfers by puts: the carrier's row, and the beginning of transfers. See carrier_rma.h.
 */
#include "common/pipeline/rma/carrier_rma.h"

#include "ompi/constants.h"

#include "common/layout/layout.h"
#include "common/pipeline/core/chunks.h"

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

/** Starts the receiver with its reserved or granted buffers. */
static void begin_to_receive(onic_transfer_t *t)
{
    t->buffers = t->rma->handshake.lease;
    onic_transfer_start_receiver(t, t->receiver.len, t->buffers, onic_rma_state.buffer_bytes);
}

static uint64_t word(onic_transfer_t *t, unsigned buffer)
{
    onic_rma_t *r = t->rma;
    if (t->buffers == 0 && r->handshake.lease != 0) {
        begin_to_receive(t);
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

static void *reach(onic_peer_t *peer)
{
    return onic_rma_reach(peer);
}

/** Drops a record whose transfer could not begin. */
static int drop(onic_rma_t *r, int rc)
{
    if (r != NULL) {
        r->handshake.over = true;
        onic_rma_drop(r);
    }
    return rc;
}

/** Starts the machine with buffers of the peer, or, during a handshake, with one buffer that stands
 *  for the unknown ones. */
static bool start_sender(onic_transfer_t *t, onic_rma_t *r, uint64_t buffers, bool handshake)
{
    const uint32_t theirs = r->peer->buffer_bytes, mine = onic_rma_state.buffer_bytes;
    const onic_schedule_choice_t *choice = &onic_rma_state.schedule;
    t->rma = r;
    r->transfer = t;
    return onic_transfer_start_sender(t, choice, buffers, theirs < mine ? theirs : mine,
                                      onic_schedule_block(&choice->link, t->end.len), handshake);
}

static int send(onic_transfer_t *t, void *record, onic_ticket_t *ticket)
{
    onic_rma_peer_t *to = record;
    onic_rma_t *r = to->requests < ONIC_GRANT_REQUESTS_MAX ? onic_rma_new(to, true) : NULL;
    if (r == NULL || !start_sender(t, r, 1, true))
        return drop(r, OMPI_ERR_OUT_OF_RESOURCE);
    *ticket = (onic_ticket_t){.buffers = 0, .len = t->end.len, .name = r->name};
    r->handshake.waits = true;
    to->requests++;
    return OMPI_SUCCESS;
}

static int answer(onic_transfer_t *t, void *record, onic_ticket_t *ticket)
{
    onic_rma_peer_t *to = record;
    if (ticket->buffers == 0 || (ticket->buffers & ~onic_buffers_first(to->nbuffers)) != 0)
        return OMPI_ERR_BAD_PARAM;
    onic_rma_t *r = onic_rma_new(to, true);
    if (r == NULL || !start_sender(t, r, ticket->buffers, false))
        return drop(r, OMPI_ERR_OUT_OF_RESOURCE);
    r->other = ticket->name;
    r->handshake.lease = ticket->buffers;
    return OMPI_SUCCESS;
}

/** The number of buffers that would hold everything. */
static unsigned buffers_for(uint64_t len)
{
    const uint64_t n = (len - 1) / onic_rma_state.buffer_bytes + 1;
    return n < ONIC_RX_BUFFERS_MAX ? (unsigned)n : ONIC_RX_BUFFERS_MAX;
}

static void start_receiver(onic_transfer_t *t, onic_rma_t *r, uint64_t len)
{
    onic_transfer_start_receiver(t, len, 1, onic_rma_state.buffer_bytes);
    t->rma = r;
    r->transfer = t;
}

static int receive(onic_transfer_t *t, void *record, onic_ticket_t *ticket)
{
    onic_rma_peer_t *from = record;
    if (ticket->len == 0)
        return OMPI_ERR_BAD_PARAM;
    onic_rma_t *r = onic_rma_new(from, false);
    if (r == NULL)
        return OMPI_ERR_OUT_OF_RESOURCE;
    onic_rma_request(r, buffers_for(ticket->len));
    start_receiver(t, r, ticket->len);
    r->other = ticket->name;
    (void)onic_rma_serve();
    return OMPI_SUCCESS;
}

static int expect(onic_transfer_t *t, void *record, onic_ticket_t *ticket)
{
    onic_rma_peer_t *from = record;
    onic_rma_t *r = onic_rma_new(from, false);
    const uint64_t buffers = r != NULL ? onic_rma_reserve(r, buffers_for(t->end.len)) : 0;
    if (buffers == 0)
        return drop(r, OMPI_ERR_OUT_OF_RESOURCE);
    start_receiver(t, r, t->end.len);
    begin_to_receive(t);
    *ticket = (onic_ticket_t){.buffers = buffers, .len = t->end.len, .name = r->name};
    return OMPI_SUCCESS;
}

const onic_carrier_t onic_carrier_rma = {
    .reach = reach,
    .send = send,
    .expect = expect,
    .receive = receive,
    .answer = answer,
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
