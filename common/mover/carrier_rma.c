/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Transfers by puts: the carrier's row, and how they begin. See carrier_rma.h. */
#include "common/mover/carrier_rma.h"
#include "common/mover/counters.h"

#include "ompi/constants.h"

static onic_rma_t *record(const onic_transfer_t *t)
{
    return t->carrier_memory;
}

/* ---- sender ---------------------------------------------------------------------------------- */

/** A word of the machine: a chunk is put when it is complete. */
static void put_word(onic_rma_t *r, unsigned slot, uint64_t word)
{
    if (onic_word_fails(word)) {
        onic_rma_put(r, slot, word);
        return;
    }
    onic_blocks_mark(&r->blocks, onic_rma_bounce(r, slot), word);
    if (onic_word_ends(word)) {
        onic_rma_put(r, slot, word);
    }
}

/** The slots that are granted; 0: not known yet; receiver: those that are used. */
static uint64_t granted_to(const onic_rma_t *r)
{
    return atomic_load_explicit(&r->terms.granted, memory_order_acquire);
}

void onic_rma_let(onic_rma_t *r, onic_sender_t *s)
{
    const unsigned slots = (unsigned)__builtin_popcountll(granted_to(r));
    if (slots > r->nbounce) {
        (void)onic_rma_take_bounce(r, slots - r->nbounce);
    }
    const uint64_t word = onic_terms_let(&r->terms, s, r->nbounce);
    onic_rma_tell(
        r, &(onic_rma_message_t){
               .type = ONIC_RMA_LET,
               .flags = (uint8_t)((r->ordered ? ONIC_RMA_IN_ORDER : 0) |
                                  (r->blocks.bytes != ONIC_BLOCK_BYTES ? ONIC_RMA_ONE_BLOCK : 0)),
               .size = r->blocks.data,
               .value = r->terms.lease});
    if (word != 0) {
        put_word(r, (unsigned)__builtin_ctzll(r->terms.lease), word);
    }
}

static void publish(onic_transfer_t *t, unsigned slot, uint64_t word)
{
    onic_rma_t *r = record(t);
    if (r->terms.let) {
        put_word(r, slot, word);
        return;
    }
    r->terms.early = word;
    if (!onic_word_fails(word)) {
        onic_blocks_mark(&r->blocks, onic_rma_bounce(r, slot), word);
    }
    if (granted_to(r) != 0) {
        onic_rma_let(r, &t->sender);
    }
}

/** The machine waits here for its grant, too, when it has filled the first chunk. */
static uint64_t acknowledged(onic_transfer_t *t, unsigned slot)
{
    onic_rma_t *r = record(t);
    if (!r->terms.let) {
        if (granted_to(r) == 0) {
            return 0;
        }
        onic_rma_let(r, &t->sender);
        slot = t->sender.slot;
    }
    return atomic_load_explicit(&r->terms.word[slot], memory_order_acquire);
}

/* ---- receiver -------------------------------------------------------------------------------- */

/** The sender has said how it uses the slots. */
static void begin_to_receive(onic_transfer_t *t, uint64_t slots)
{
    onic_rma_t *r = record(t);
    const onic_lease_t lease = {slots, onic_blocks_room(&r->blocks, onic_mover.area.slot_bytes)};
    onic_receiver_init(&t->receiver, r->len, &lease);
    t->slots = slots;
    atomic_fetch_or(&onic_mover.receiving, slots);
    r->terms.let = true;
}

static uint64_t word(onic_transfer_t *t, unsigned slot)
{
    onic_rma_t *r = record(t);
    if (!r->terms.let) {
        const uint64_t slots = granted_to(r);
        if (slots == 0) {
            return 0;
        }
        begin_to_receive(t, slots);
        slot = t->receiver.slot;
    }
    const uint64_t announced = atomic_load_explicit(&r->terms.word[slot], memory_order_acquire);
    if (!r->ordered || onic_word_fails(announced)) {
        return announced;
    }
    return onic_blocks_look(&r->blocks, onic_area_slot(&onic_mover.area, slot),
                            onic_mover.area.slot_bytes, t->receiver.round, t->receiver.published);
}

static void acknowledge(onic_transfer_t *t, unsigned slot, uint64_t rounds)
{
    onic_rma_tell(record(t), &(onic_rma_message_t){
                                 .type = ONIC_RMA_ACK, .slot = (uint16_t)slot, .value = rounds});
}

static void give_back(onic_transfer_t *t, uint64_t slots)
{
    if (t->role == ONIC_RECEIVES && slots != 0) {
        onic_rma_give(record(t), slots);
    }
}

/* ---- both ------------------------------------------------------------------------------------ */

static char *at(onic_transfer_t *t, unsigned slot, uint32_t offset, uint32_t *len_p)
{
    const onic_rma_t *r = record(t);
    char *base = r->terms.sends ? onic_rma_bounce(r, slot) : onic_area_slot(&onic_mover.area, slot);
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
    onic_rma_t *r = record(t);
    r->sender = t->sender;
    onic_rma_over(r, withdrawn);
    t->carrier_memory = NULL;
}

const onic_carrier_t onic_carrier_rma = {
    .name = "rma",
    .best = ONIC_POLICY_PAPER,
    .at = at,
    .publish = publish,
    .word = word,
    .acknowledge = acknowledge,
    .acknowledged = acknowledged,
    .give_back = give_back,
    .is_dead = is_dead,
    .closed = closed,
};

/* ---- beginning ------------------------------------------------------------------------------- */

/** Is every 8th byte of memory an 8th byte of the data, so that blocks end where elements do? */
static bool is_even(const onic_mover_end_t *e)
{
    const onic_layout_t *l = &e->layout;
    uint64_t odd = (uint64_t)(uintptr_t)e->base | (uint64_t)l->offset | e->at;
    if (l->nruns != 0) {
        return false;
    }
    for (uint32_t i = 0; i < l->nlevels; i++) {
        odd |= (uint64_t)l->level[i].stride;
    }
    return ((odd | (l->nlevels > 0 ? l->block : 0)) & 7) == 0;
}

/** A transfer over a slot that stands for its lease until that is known. */
static onic_transfer_t *begin(onic_rma_t *r, onic_mover_end_t *end, uint64_t len)
{
    onic_transfer_t *t = onic_transfer_new(r->terms.sends ? ONIC_SENDS : ONIC_RECEIVES);
    if (t == NULL) {
        return NULL;
    }
    t->carrier = &onic_carrier_rma;
    t->peer = r->peer->peer;
    t->carrier_memory = r;
    t->slots = 1;
    onic_transfer_begin(t, end, len, ONIC_BLOCK_BYTES);
    t->slots = 0;
    if (end != NULL) {
        end->layout.nruns = 0;
    }
    return t;
}

static onic_transfer_t *begin_to_send(onic_rma_t *r, onic_mover_end_t *source)
{
    const uint32_t granule = source->granule > 1 ? source->granule : 1;
    const uint32_t slot = r->peer->slot_bytes < onic_rma_state.slot_bytes
                              ? r->peer->slot_bytes
                              : onic_rma_state.slot_bytes;
    const bool one = granule > ONIC_BLOCK_BYTES / 8 || (granule == 1 && !is_even(source));
    onic_lease_t lease = {1, 0};
    /* A single block fills the receiver's slot, which is to find its word. */
    if (one && r->peer->slot_bytes > onic_rma_state.slot_bytes) {
        return NULL;
    }
    r->blocks = onic_blocks_cut(one ? r->peer->slot_bytes : slot, granule, one);
    r->len = source->len;
    r->ordered = r->peer->in_order && onic_puts_in_order();
    lease.slot_bytes = onic_blocks_room(&r->blocks, slot);
    if (r->blocks.data == 0 || onic_rma_take_bounce(r, 1) == 0) {
        return NULL;
    }
    onic_transfer_t *t = begin(r, source, source->len);
    if (t != NULL) {
        const onic_schedule_t schedule = onic_transfer_schedule_locked(
            &onic_carrier_rma, source->len, one ? granule : r->blocks.data, lease.slot_bytes);
        onic_sender_init(&t->sender, source->len, &lease, &schedule, r->blocks.data, granule);
    }
    return t;
}

/** A record that came to nothing. */
static void *no_transfer(onic_rma_t *r)
{
    if (r != NULL) {
        r->terms.over = true;
        onic_rma_drop(r);
    }
    return NULL;
}

onic_transfer_t *onic_rma_send(onic_rma_peer_t *to, onic_mover_end_t *source, onic_ticket_t *ticket)
{
    onic_rma_t *r = to->asks < ONIC_RMA_ASKS ? onic_rma_new(to, true) : NULL;
    onic_transfer_t *t = r != NULL ? begin_to_send(r, source) : NULL;
    if (t == NULL) {
        onic_mover_count(&onic_mover_counters.refused, 1);
        return no_transfer(r);
    }
    *ticket = (onic_ticket_t){.slots = 0, .len = r->len, .name = r->name};
    r->terms.waits = true;
    to->asks++;
    return t;
}

int onic_rma_answer(onic_rma_peer_t *to, const onic_ticket_t *ticket, onic_mover_end_t *source)
{
    const uint64_t all = to->nslots < 64 ? (UINT64_C(1) << to->nslots) - 1 : UINT64_MAX;
    if (ticket->slots == 0 || (ticket->slots & ~all) != 0 || ticket->len != source->len) {
        return OMPI_ERR_BAD_PARAM;
    }
    onic_rma_t *r = onic_rma_new(to, true);
    onic_transfer_t *t = r != NULL ? begin_to_send(r, source) : NULL;
    if (t == NULL) {
        no_transfer(r);
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    r->other = ticket->name;
    atomic_store_explicit(&r->terms.granted, ticket->slots, memory_order_release);
    onic_transfer_queue(t);
    return OMPI_SUCCESS;
}

/** Slots that would hold all. */
static uint32_t slots_for(uint64_t len)
{
    const uint64_t n = len / (onic_mover.area.slot_bytes - ONIC_BLOCK_BYTES / 8) + 1;
    return n < ONIC_SLOTS_MAX ? (uint32_t)n : ONIC_SLOTS_MAX;
}

static onic_transfer_t *begin_to_receive_locked(onic_rma_t *r, onic_mover_end_t *sink, uint64_t len)
{
    r->len = len;
    r->blocks = onic_blocks_cut(onic_mover.area.slot_bytes, 1, false);
    return begin(r, sink, len);
}

int onic_rma_receive(onic_rma_peer_t *from, const onic_ticket_t *ticket, onic_mover_end_t *sink)
{
    if (ticket->slots != 0 || ticket->len == 0 || ticket->name == 0 ||
        (sink != NULL && sink->len != ticket->len)) {
        return OMPI_ERR_BAD_PARAM;
    }
    onic_rma_t *r = onic_rma_new(from, false);
    if (r == NULL) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    if (!onic_grants_ask(&onic_rma_state.grants, &from->asker, r->name, slots_for(ticket->len))) {
        no_transfer(r);
        return OMPI_ERR_BAD_PARAM;
    }
    onic_transfer_t *t = begin_to_receive_locked(r, sink, ticket->len);
    if (t == NULL) {
        (void)onic_grants_withdraw(&onic_rma_state.grants, &from->asker, r->name);
        no_transfer(r);
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    r->other = ticket->name;
    r->terms.waits = true;
    onic_transfer_queue(t);
    onic_rma_serve();
    return OMPI_SUCCESS;
}

onic_transfer_t *onic_rma_expect(onic_rma_peer_t *from, onic_mover_end_t *sink,
                                 onic_ticket_t *ticket)
{
    const uint64_t len = sink->len;
    onic_rma_t *r = onic_rma_new(from, false);
    uint64_t slots = r != NULL ? onic_rma_reserve(r, slots_for(len)) : 0;
    onic_transfer_t *t = slots != 0 ? begin_to_receive_locked(r, sink, len) : NULL;
    if (t == NULL) {
        onic_mover_count(&onic_mover_counters.refused, 1);
        if (slots != 0) {
            onic_rma_given(from, slots);
        }
        return no_transfer(r);
    }
    *ticket = (onic_ticket_t){.slots = slots, .len = len, .name = r->name};
    onic_transfer_queue(t);
    return t;
}
