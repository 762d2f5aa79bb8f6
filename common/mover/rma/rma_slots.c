/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The carrier between hosts: grants of slots of mine, and what lost peers had of them. */
#include "common/mover/rma/rma.h"

#include "common/mover/pipe/counters.h"
#include "common/support/clock.h"

/** What a lost sender has put is in its place by then, or never. */
#define QUARANTINE_NSEC UINT64_C(1000000000)

/* ---- slots of mine --------------------------------------------------------------------------- */

static uint64_t take_slots(void *arg, unsigned max)
{
    (void)arg;
    return onic_pool_take(&onic_rma_state.pool, onic_rma_state.me, max, &onic_rma_state.wait);
}

static void release_slots(void *arg, uint64_t slots)
{
    (void)arg;
    onic_mover_count_slots(onic_pool_release(&onic_rma_state.pool, onic_rma_state.me, slots));
}

static unsigned count_slots(void *arg)
{
    (void)arg;
    const uint64_t free =
        atomic_load_explicit(&onic_rma_state.pool.words->free, memory_order_relaxed);
    return (unsigned)__builtin_popcountll(free & onic_pool_all(&onic_rma_state.pool));
}

/** No word has come yet. */
static void clear(onic_rma_t *r, uint64_t slots)
{
    const onic_blocks_t b = onic_blocks_cut(1);
    for (uint64_t left = slots; left != 0; left &= left - 1) {
        onic_blocks_clear(&b, onic_rma_slot((unsigned)__builtin_ctzll(left)),
                          onic_rma_state.slot_bytes);
    }
    r->terms.lease = slots;
}

uint64_t onic_rma_reserve(onic_rma_t *r, uint32_t slots)
{
    const uint64_t had = onic_grants_reserve(&onic_rma_state.grants, &r->peer->requester, slots);
    clear(r, had);
    return had;
}

static void grant(const onic_grant_t *g)
{
    onic_rma_t *r = onic_rma_find(g->name);
    clear(r, g->slots);
    r->terms.waits = false;
    onic_rma_post_message(r, &(onic_rma_message_t){.type = ONIC_RMA_GRANT, .value = g->slots});
}

int onic_rma_serve(void)
{
    onic_grant_t g;
    int n = 0;
    for (; onic_grants_next(&onic_rma_state.grants, &g); n++) {
        grant(&g);
    }
    if (onic_rma_state.grants.waiting > 0) {
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

/** If it is lost: what it had is put in quarantine, but for what transfers still look at. */
static void see_whether_lost(onic_rma_peer_t *p)
{
    uint64_t in_use = 0;
    if (p->requester.lost) {
        return;
    }
    if (atomic_load(&p->failed)) {
        onic_peer_give_up(p->peer);
    }
    if (!onic_peer_is_lost(p->peer)) {
        return;
    }
    p->requester.lost = true;
    for (unsigned i = 0; i < ONIC_RMA_BUCKETS; i++) {
        for (onic_rma_t *r = onic_rma_state.bucket[i], *next; r != NULL; r = next) {
            next = r->next;
            if (r->peer == p) {
                in_use |= onic_terms_lose(&r->terms);
                onic_rma_drop(r);
            }
        }
    }
    put_in_quarantine(onic_grants_lose(&onic_rma_state.grants, &p->requester, in_use));
}

void onic_rma_released(onic_rma_peer_t *p, uint64_t slots)
{
    /* Before its slots are given to others: what it has sent may still be under way to them. */
    see_whether_lost(p);
    put_in_quarantine(onic_grants_release(&onic_rma_state.grants, &p->requester, slots));
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

/* ---- beginning and end of quarantine
 * ---------------------------------------------------------------------- */

void onic_rma_share_slots(void)
{
    const onic_grant_source_t source = {onic_rma_state.pool.nslots, take_slots, release_slots,
                                        count_slots, NULL};
    onic_grants_init(&onic_rma_state.grants, &source);
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
    release_slots(NULL, onic_rma_state.quarantine);
    onic_rma_state.quarantine = 0;
    return 1;
}
