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
    onic_rma_t *r = t->rma;
    if (r->terms.committed) {
        onic_rma_put_word(r, slot, word);
    } else {
        r->terms.early = word;
        if (r->ordered && !onic_word_fails(word))
            onic_blocks_mark(&r->blocks, onic_rma_bounce(r, slot), word);
        if (r->terms.granted != 0)
            onic_rma_commit(r, &t->sender);
    }
}

/** The machine waits here for its grant, too, when it has filled the first chunk. */
static uint64_t acknowledged(onic_transfer_t *t, unsigned slot)
{
    onic_rma_t *r = t->rma;
    if (!r->terms.committed) {
        if (r->terms.granted == 0)
            return 0;
        onic_rma_commit(r, &t->sender);
        slot = t->sender.slot;
    }
    return r->terms.word[slot];
}

static bool left(const onic_transfer_t *t)
{
    return onic_rma_left(t->rma);
}

/* ---- receiver -------------------------------------------------------------------------------- */

/** The sender has committed to some slots. */
static void begin_to_receive(onic_transfer_t *t, uint64_t slots)
{
    onic_rma_t *r = t->rma;
    const onic_lease_t lease = {slots, onic_blocks_room(&r->blocks, onic_rma_state.slot_bytes)};
    onic_receiver_init(&t->receiver, r->len, &lease);
    t->slots = slots;
    r->terms.committed = true;
}

static uint64_t word(onic_transfer_t *t, unsigned slot)
{
    onic_rma_t *r = t->rma;
    if (!r->terms.committed) {
        if (r->terms.granted == 0)
            return 0;
        begin_to_receive(t, r->terms.granted);
        slot = t->receiver.slot;
    }
    const uint64_t announced = r->terms.word[slot];
    if (!r->ordered || onic_word_fails(announced))
        return announced;
    return onic_blocks_look(&r->blocks, onic_rma_slot(slot), onic_rma_state.slot_bytes,
                            t->receiver.round, t->receiver.published);
}

static void acknowledge(onic_transfer_t *t, unsigned slot, uint64_t rounds)
{
    onic_rma_send(t->rma, (onic_rma_message_t){
                              .type = ONIC_RMA_ACK, .slot = (uint16_t)slot, .value = rounds});
}

static void release(onic_transfer_t *t, uint64_t slots)
{
    if (t->role == ONIC_RECEIVES && slots != 0) {
        t->rma->terms.lease &= ~slots;
        onic_rma_released(t->rma->peer, slots);
    }
}

/* ---- both ------------------------------------------------------------------------------------ */

static char *at(onic_transfer_t *t, unsigned slot, uint32_t offset, uint32_t *len_p)
{
    const onic_rma_t *r = t->rma;
    char *base = r->terms.sends ? onic_rma_bounce(r, slot) : onic_rma_slot(slot);
    const uint32_t run = onic_blocks_run(&r->blocks, offset);
    *len_p = *len_p < run ? *len_p : run;
    return base + onic_blocks_at(&r->blocks, offset);
}

static bool is_dead(const onic_transfer_t *t)
{
    return onic_peer_is_lost(t->peer);
}

static void closed(onic_transfer_t *t, bool withdrawn)
{
    t->rma->sender = t->sender;
    onic_rma_end(t->rma, withdrawn);
    t->rma = NULL;
}

/* ---- beginning ------------------------------------------------------------------------------- */

static void *reach(onic_peer_t *peer)
{
    return onic_rma_reach(peer);
}

/** Is every 8th byte of memory an 8th byte of the data, so that blocks end where elements do? */
static bool is_even(const onic_mover_end_t *e)
{
    const onic_layout_t *l = &e->layout;
    const uint64_t base = (uint64_t)(uintptr_t)e->base;
    if (l->nruns != 0 || e->at % ONIC_WORD != 0)
        return false;
    return l->nlevels == 0 ? (base + (uint64_t)l->offset) % ONIC_WORD == 0
                           : onic_whole_words(l, base);
}

/** A record that came to nothing. */
static int drop(onic_rma_t *r, int rc)
{
    if (r != NULL) {
        r->terms.over = true;
        onic_rma_drop(r);
    }
    return rc;
}

/** Starts the machine over a slot that stands for its lease. False: there is none to pack into. */
static bool start_sender(onic_transfer_t *t, onic_rma_t *r)
{
    const onic_mover_end_t *source = &t->end;
    const uint32_t theirs = r->peer->slot_bytes, mine = onic_rma_state.slot_bytes;
    const uint32_t granule = source->granule > 1 ? source->granule : 1;
    const uint32_t slot = theirs < mine ? theirs : mine;
    r->len = source->len;
    r->ordered = r->peer->in_order && onic_puts_in_order() && granule <= ONIC_BLOCK_BYTES / 8 &&
                 (granule > 1 || is_even(source));
    r->blocks = r->ordered ? onic_blocks_cut(granule) : onic_blocks_none(slot, granule);
    if (r->blocks.data == 0 || onic_rma_take_bounce(r, 1) == 0)
        return false;
    const onic_lease_t lease = {1, onic_blocks_room(&r->blocks, slot)};
    onic_schedule_t schedule;
    onic_schedule_paper(&schedule, r->ordered ? r->blocks.data : granule, lease.slot_bytes);
    onic_sender_init(&t->sender, source->len, &lease, &schedule, r->blocks.data, granule);
    t->rma = r;
    return true;
}

static int send(onic_transfer_t *t, void *record, onic_ticket_t *ticket)
{
    onic_rma_peer_t *to = record;
    onic_rma_t *r = to->requests < ONIC_TURNS_REQUESTS ? onic_rma_new(to, true) : NULL;
    if (r == NULL || !start_sender(t, r))
        return drop(r, OMPI_ERR_OUT_OF_RESOURCE);
    *ticket = (onic_ticket_t){.slots = 0, .len = r->len, .name = r->name};
    r->terms.waits = true;
    to->requests++;
    return OMPI_SUCCESS;
}

static int answer(onic_transfer_t *t, void *record, onic_ticket_t *ticket)
{
    onic_rma_peer_t *to = record;
    if (ticket->slots == 0 || (ticket->slots & ~onic_slots_first(to->nslots)) != 0)
        return OMPI_ERR_BAD_PARAM;
    onic_rma_t *r = onic_rma_new(to, true);
    if (r == NULL || !start_sender(t, r))
        return drop(r, OMPI_ERR_OUT_OF_RESOURCE);
    r->other = ticket->name;
    r->terms.granted = ticket->slots;
    return OMPI_SUCCESS;
}

/** Slots that would hold all. */
static unsigned slots_for(uint64_t len)
{
    const uint64_t n = len / (onic_rma_state.slot_bytes - ONIC_BLOCK_BYTES / 8) + 1;
    return n < ONIC_SLOTS_MAX ? (unsigned)n : ONIC_SLOTS_MAX;
}

static void start_receiver(onic_transfer_t *t, onic_rma_t *r, uint64_t len)
{
    const onic_lease_t lease = {1, ONIC_BLOCK_BYTES};
    r->len = len;
    onic_receiver_init(&t->receiver, len, &lease);
    t->rma = r;
}

static int receive(onic_transfer_t *t, void *record, onic_ticket_t *ticket)
{
    onic_rma_peer_t *from = record;
    if (ticket->slots != 0 || ticket->len == 0 || ticket->name == 0)
        return OMPI_ERR_BAD_PARAM;
    onic_rma_t *r = onic_rma_new(from, false);
    if (r == NULL)
        return OMPI_ERR_OUT_OF_RESOURCE;
    if (!onic_rma_request(r, slots_for(ticket->len)))
        return drop(r, OMPI_ERR_BAD_PARAM);
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
    *ticket = (onic_ticket_t){.slots = slots, .len = r->len, .name = r->name};
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
