/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Transfers by puts: the carrier's row, and how they begin. See carrier_rma.h. */
#include "common/mover/rma/carrier_rma.h"

#include "ompi/constants.h"

#include "common/layout/layout.h"
#include "common/mover/pipe/chunks.h"

/* ---- sender ---------------------------------------------------------------------------------- */

static void publish(onic_transfer_t *t, unsigned slot, uint64_t word)
{
    if (t->rma->handshake.lease != 0)
        onic_rma_put_word(t->rma, slot, word);
    else
        t->rma->early = word;
}

/** The machine waits here for its grant, too, when it has filled the first chunk. */
static uint64_t acknowledged(onic_transfer_t *t, unsigned slot)
{
    return t->rma->handshake.word[slot];
}

static bool left(const onic_transfer_t *t)
{
    return onic_rma_left(t->rma);
}

/* ---- receiver -------------------------------------------------------------------------------- */

/** Over the slots that it has been given. */
static void begin_to_receive(onic_transfer_t *t)
{
    const onic_lease_t lease = {t->rma->handshake.lease, onic_rma_state.slot_bytes};
    onic_receiver_init(&t->receiver, t->receiver.len, &lease);
    t->slots = lease.slots;
}

static uint64_t word(onic_transfer_t *t, unsigned slot)
{
    onic_rma_t *r = t->rma;
    if (t->slots == 0 && r->handshake.lease != 0) {
        begin_to_receive(t);
        slot = t->receiver.slot;
    }
    return r->handshake.word[slot];
}

static void acknowledge(onic_transfer_t *t, unsigned slot, uint64_t rounds)
{
    onic_rma_send(t->rma, (onic_rma_message_t){
                              .type = ONIC_RMA_ACK, .slot = (uint16_t)slot, .value = rounds});
}

static void release(onic_transfer_t *t, uint64_t slots)
{
    if (t->role == ONIC_RECEIVES && slots != 0) {
        t->rma->handshake.lease &= ~slots;
        onic_rma_released(t->rma->peer, slots);
    }
}

/* ---- both ------------------------------------------------------------------------------------ */

static char *at(onic_transfer_t *t, unsigned slot, uint32_t offset)
{
    char *begin = t->role == ONIC_SENDS ? onic_rma_bounce(t->rma) : onic_rma_slot(slot);
    return begin != NULL ? begin + offset : NULL;
}

static bool is_dead(const onic_transfer_t *t)
{
    return onic_peer_is_lost(t->peer);
}

static void closed(onic_transfer_t *t, bool withdrawn)
{
    onic_rma_end(t->rma, withdrawn);
    t->rma = NULL;
}

/* ---- beginning ------------------------------------------------------------------------------- */

static void *reach(onic_peer_t *peer)
{
    return onic_rma_reach(peer);
}

/** A record that came to nothing. */
static int drop(onic_rma_t *r, int rc)
{
    if (r != NULL) {
        r->handshake.over = true;
        onic_rma_drop(r);
    }
    return rc;
}

/** Starts the machine over slots of the peer, or one that stands for them before they are known. */
static bool start_sender(onic_transfer_t *t, onic_rma_t *r, uint64_t slots)
{
    const uint32_t theirs = r->peer->slot_bytes, mine = onic_rma_state.slot_bytes;
    const onic_lease_t lease = {slots, theirs < mine ? theirs : mine};
    const uint32_t granule = t->end.granule > 1 ? t->end.granule : 1;
    onic_schedule_t schedule;
    if (granule > lease.slot_bytes)
        return false;
    onic_schedule_paper(&schedule, granule, lease.slot_bytes);
    onic_sender_init(&t->sender, t->end.len, &lease, &schedule, 0, granule);
    t->rma = r;
    r->transfer = t;
    return true;
}

static int send(onic_transfer_t *t, void *record, onic_ticket_t *ticket)
{
    onic_rma_peer_t *to = record;
    onic_rma_t *r = to->requests < ONIC_TURNS_REQUESTS ? onic_rma_new(to, true) : NULL;
    if (r == NULL || !start_sender(t, r, 1))
        return drop(r, OMPI_ERR_OUT_OF_RESOURCE);
    *ticket = (onic_ticket_t){.slots = 0, .len = t->end.len, .name = r->name};
    r->handshake.waits = true;
    to->requests++;
    return OMPI_SUCCESS;
}

static int answer(onic_transfer_t *t, void *record, onic_ticket_t *ticket)
{
    onic_rma_peer_t *to = record;
    if (ticket->slots == 0 || (ticket->slots & ~onic_slots_first(to->nslots)) != 0)
        return OMPI_ERR_BAD_PARAM;
    onic_rma_t *r = onic_rma_new(to, true);
    if (r == NULL || !start_sender(t, r, ticket->slots))
        return drop(r, OMPI_ERR_OUT_OF_RESOURCE);
    r->other = ticket->name;
    r->handshake.lease = ticket->slots;
    return OMPI_SUCCESS;
}

/** Slots that would hold all. */
static unsigned slots_for(uint64_t len)
{
    const uint64_t n = (len - 1) / onic_rma_state.slot_bytes + 1;
    return n < ONIC_SLOTS_MAX ? (unsigned)n : ONIC_SLOTS_MAX;
}

static void start_receiver(onic_transfer_t *t, onic_rma_t *r, uint64_t len)
{
    const onic_lease_t lease = {1, onic_rma_state.slot_bytes};
    onic_receiver_init(&t->receiver, len, &lease);
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
    onic_rma_request(r, slots_for(ticket->len));
    start_receiver(t, r, ticket->len);
    r->other = ticket->name;
    (void)onic_rma_serve();
    return OMPI_SUCCESS;
}

static int expect(onic_transfer_t *t, void *record, onic_ticket_t *ticket)
{
    onic_rma_peer_t *from = record;
    onic_rma_t *r = onic_rma_new(from, false);
    const uint64_t slots = r != NULL ? onic_rma_reserve(r, slots_for(t->end.len)) : 0;
    if (slots == 0)
        return drop(r, OMPI_ERR_OUT_OF_RESOURCE);
    start_receiver(t, r, t->end.len);
    begin_to_receive(t);
    *ticket = (onic_ticket_t){.slots = slots, .len = t->end.len, .name = r->name};
    return OMPI_SUCCESS;
}

const onic_carrier_t onic_carrier_rma = {
    .locked = true,
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
