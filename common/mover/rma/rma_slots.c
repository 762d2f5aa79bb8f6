/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The carrier between hosts: grants of slots of mine, and what lost peers had of them.
 *
 * Senders of other hosts cannot lease slots by themselves: they ask, and are granted slots in turn
 * (strided-RMA paper, section 5.1: a source asks for a receive buffer before it sends). How many,
 * as beside senders of this node, is the pool's rule (pipe/pool.h).
 */
#include "common/mover/rma/carrier_rma.h"

#include "common/mover/pipe/counters.h"
#include "common/support/clock.h"

/** What a lost sender has put is in its place by then, or never. */
#define QUARANTINE_NSEC UINT64_C(1000000000)

/* ---- slots of mine --------------------------------------------------------------------------- */

static void release(uint64_t slots)
{
    onic_mover_count_slots(onic_pool_release(&onic_rma_state.pool, onic_rma_state.me, slots));
}

/** No word has come yet. */
static void clear(uint64_t slots)
{
    const onic_blocks_t b = onic_blocks_cut(1);
    for (; slots != 0; slots &= slots - 1) {
        onic_blocks_clear(&b, onic_rma_slot((unsigned)__builtin_ctzll(slots)),
                          onic_rma_state.slot_bytes);
    }
}

static uint64_t take(onic_rma_t *r, unsigned most)
{
    const uint64_t slots =
        onic_pool_take(&onic_rma_state.pool, onic_rma_state.me, most, &onic_rma_state.wait);
    clear(slots);
    r->peer->held |= slots;
    r->terms.lease = slots;
    return slots;
}

uint64_t onic_rma_reserve(onic_rma_t *r, unsigned slots)
{
    return onic_rma_state.waiting == NULL ? take(r, slots) : 0;
}

bool onic_rma_request(onic_rma_t *r, unsigned slots)
{
    onic_rma_t **at = &onic_rma_state.waiting;
    if (r->peer->waiting == ONIC_RMA_REQUESTS) {
        return false;
    }
    while (*at != NULL) {
        at = &(*at)->next_waiting;
    }
    *at = r;
    r->wanted = slots;
    r->terms.waits = true;
    r->peer->waiting++;
    return true;
}

/** The request whose turn it is: the first of the peer that has fewest slots, so that one which is
 *  stopped with many requests starves nobody. */
static onic_rma_t **next_request(void)
{
    onic_rma_t **next = &onic_rma_state.waiting;
    for (onic_rma_t **at = next; *at != NULL; at = &(*at)->next_waiting) {
        if (__builtin_popcountll((*at)->peer->held) < __builtin_popcountll((*next)->peer->held)) {
            next = at;
        }
    }
    return next;
}

int onic_rma_serve(void)
{
    int n = 0;
    for (onic_rma_t **at; *(at = next_request()) != NULL && take(*at, (*at)->wanted) != 0; n++) {
        onic_rma_t *r = *at;
        *at = r->next_waiting;
        r->peer->waiting--;
        r->terms.waits = false;
        onic_rma_post_message(
            r, &(onic_rma_message_t){.type = ONIC_RMA_GRANT, .value = r->terms.lease});
    }
    if (onic_rma_state.waiting != NULL) {
        atomic_store(&onic_rma_state.pending, true);
    }
    return n;
}

/** Slots that may still be written to. */
static void put_in_quarantine(uint64_t slots)
{
    if (slots != 0) {
        onic_rma_state.quarantine |= slots;
        onic_rma_state.quarantined = onic_now_nsec();
        atomic_store(&onic_rma_state.pending, true);
    }
}

/* ---- the lost -------------------------------------------------------------------------------- */

/** What a lost peer had is put in quarantine, but for what transfers still look at. */
static void lose(onic_rma_peer_t *p)
{
    uint64_t in_use = 0;
    p->lost = true;
    p->waiting = 0;
    for (onic_rma_t **at = &onic_rma_state.waiting; *at != NULL;) {
        if ((*at)->peer == p) {
            *at = (*at)->next_waiting;
        } else {
            at = &(*at)->next_waiting;
        }
    }
    for (uint32_t i = 0; i < onic_rma_records.n; i++) {
        onic_rma_t *r = onic_rma_records.slot[i].object;
        if (r != NULL && r->peer == p) {
            in_use |= onic_terms_lose(&r->terms);
            onic_rma_drop(r);
        }
    }
    put_in_quarantine(p->held & ~in_use);
    p->held &= in_use;
}

static void see_whether_lost(onic_rma_peer_t *p)
{
    if (!p->lost && atomic_load(&p->failed)) {
        onic_peer_give_up(p->peer);
    }
    if (!p->lost && onic_peer_is_lost(p->peer)) {
        lose(p);
    }
}

void onic_rma_released(onic_rma_peer_t *p, uint64_t slots)
{
    /* Before its slots are granted to others: what it has sent may still be under way to them. */
    see_whether_lost(p);
    slots &= p->held;
    p->held &= ~slots;
    if (p->lost) {
        put_in_quarantine(slots);
    } else {
        release(slots);
    }
    (void)onic_rma_serve();
}

void onic_rma_look_for_losses(void)
{
    const unsigned losses = onic_wire_losses();
    if (!atomic_exchange(&onic_rma_state.failing, false) && losses == onic_rma_state.losses) {
        return;
    }
    onic_rma_state.losses = losses;
    for (onic_rma_peer_t *p = onic_rma_state.peers; p != NULL; p = p->next) {
        see_whether_lost(p);
    }
}

int onic_rma_end_quarantine(void)
{
    if (onic_rma_state.quarantine == 0) {
        return 0;
    }
    if (onic_now_nsec() - onic_rma_state.quarantined <= QUARANTINE_NSEC) {
        atomic_store(&onic_rma_state.pending, true);
        return 0;
    }
    release(onic_rma_state.quarantine);
    onic_rma_state.quarantine = 0;
    return 1;
}
