/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The carrier between hosts: who has which slots of mine, and what the lost had. With the wire lock
 * but for onic_rma_fail.
 */
#include "common/mover/carrier_rma.h"

#include "common/support/clock.h"

/** What a lost sender has put is in its place by then, or never. */
#define REST_NSEC UINT64_C(1000000000)

/* ---- slots of mine --------------------------------------------------------------------------- */

static uint64_t take_slots(void *arg, unsigned max)
{
    (void)arg;
    return onic_pool_take(&onic_mover.area.pool, onic_mover.me, max, &onic_rma_state.wait);
}

static void give_slots(void *arg, uint64_t slots)
{
    (void)arg;
    onic_mover_count_slots(onic_pool_give(&onic_mover.area.pool, onic_mover.me, slots));
}

static unsigned count_slots(void *arg)
{
    (void)arg;
    const uint64_t free =
        atomic_load_explicit(&onic_mover.area.pool.words->free, memory_order_relaxed);
    return (unsigned)__builtin_popcountll(free & onic_pool_all(&onic_mover.area.pool));
}

/** No word has come yet: of short blocks, the last of which is that of a single one, too. */
static void clear(onic_rma_t *r, uint64_t slots)
{
    const onic_blocks_t b = onic_blocks_cut(onic_mover.area.slot_bytes, 1, false);
    for (uint64_t left = slots; left != 0; left &= left - 1) {
        onic_blocks_clear(&b, onic_area_slot(&onic_mover.area, (unsigned)__builtin_ctzll(left)),
                          onic_mover.area.slot_bytes);
    }
    r->terms.lease = slots;
}

uint64_t onic_rma_reserve(onic_rma_t *r, uint32_t slots)
{
    const uint64_t had = onic_grants_reserve(&onic_rma_state.grants, &r->peer->asker, slots);
    clear(r, had);
    return had;
}

static void grant(const onic_grant_t *g)
{
    onic_rma_t *r = onic_rma_find(g->name);
    clear(r, g->slots);
    r->terms.waits = false;
    onic_rma_tell(r, &(onic_rma_message_t){.type = ONIC_RMA_GRANT, .value = g->slots});
}

int onic_rma_serve(void)
{
    onic_grant_t g;
    int n = 0;
    for (; onic_grants_next(&onic_rma_state.grants, &g); n++) {
        grant(&g);
    }
    if (onic_rma_state.grants.waiting > 0) {
        atomic_store(&onic_rma_state.hungry, true);
    }
    return n;
}

/** Slots that may still be written to: not before they have rested. */
static void rest(uint64_t slots)
{
    if (slots != 0) {
        onic_rma_state.resting |= slots;
        onic_rma_state.rested = onic_now_nsec();
        atomic_store(&onic_rma_state.hungry, true);
    }
}

/* ---- the lost -------------------------------------------------------------------------------- */

void onic_rma_fail(onic_rma_peer_t *p)
{
    atomic_store(&p->failed, true);
    atomic_store(&onic_rma_state.failing, true);
    atomic_store(&onic_rma_state.hungry, true);
}

/** If it is lost: what it had rests, but for what transfers still look at. */
static void see_whether_lost(onic_rma_peer_t *p)
{
    uint64_t in_use = 0;
    if (p->asker.lost) {
        return;
    }
    if (atomic_load(&p->failed)) {
        onic_peer_give_up(p->peer);
    }
    if (!onic_peer_is_lost(p->peer)) {
        return;
    }
    p->asker.lost = true;
    for (unsigned i = 0; i < 256; i++) {
        for (onic_rma_t *r = onic_rma_state.bucket[i], *next; r != NULL; r = next) {
            next = r->next;
            if (r->peer == p) {
                in_use |= onic_terms_lose(&r->terms);
                onic_rma_drop(r);
            }
        }
    }
    rest(onic_grants_lose(&onic_rma_state.grants, &p->asker, in_use));
}

void onic_rma_given(onic_rma_peer_t *p, uint64_t slots)
{
    /* Before its slots are given to others: what it has sent may still be under way to them. */
    see_whether_lost(p);
    rest(onic_grants_back(&onic_rma_state.grants, &p->asker, slots));
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

/* ---- beginning and rest ---------------------------------------------------------------------- */

void onic_rma_share_slots(void)
{
    const onic_grant_source_t source = {onic_mover.area.pool.nslots, take_slots, give_slots,
                                        count_slots, NULL};
    onic_grants_init(&onic_rma_state.grants, &source);
}

int onic_rma_end_rest(void)
{
    if (onic_rma_state.resting == 0) {
        return 0;
    }
    if (onic_now_nsec() - onic_rma_state.rested <= REST_NSEC) {
        atomic_store(&onic_rma_state.hungry, true);
        return 0;
    }
    give_slots(NULL, onic_rma_state.resting);
    onic_rma_state.resting = 0;
    return 1;
}
