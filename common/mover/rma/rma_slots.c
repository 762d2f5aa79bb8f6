/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The carrier between hosts: grants of slots of mine, and what lost peers had of them. */
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
    r->peer->asker.held |= slots;
    r->terms.lease = slots;
    return slots;
}

uint64_t onic_rma_reserve(onic_rma_t *r, unsigned slots)
{
    return onic_rma_state.turns.first == NULL ? take(r, slots) : 0;
}

bool onic_rma_request(onic_rma_t *r, unsigned slots)
{
    r->terms.waits = onic_turns_add(&onic_rma_state.turns, &r->request, &r->peer->asker, slots);
    return r->terms.waits;
}

int onic_rma_serve(void)
{
    onic_turns_t *turns = &onic_rma_state.turns;
    onic_turn_request_t *next;
    int n = 0;
    for (; (next = onic_turns_next(turns)) != NULL; n++) {
        onic_rma_t *r = (onic_rma_t *)next;
        if (take(r, next->wanted) == 0) {
            atomic_store(&onic_rma_state.pending, true);
            break;
        }
        onic_turns_remove(turns, next);
        r->terms.waits = false;
        onic_rma_post_message(
            r, &(onic_rma_message_t){.type = ONIC_RMA_GRANT, .value = r->terms.lease});
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
    onic_turns_forget(&onic_rma_state.turns, &p->asker);
    for (uint32_t i = 0; i < onic_rma_records.n; i++) {
        onic_rma_t *r = onic_rma_records.slot[i].object;
        if (r != NULL && r->peer == p) {
            in_use |= onic_terms_lose(&r->terms);
            onic_rma_drop(r);
        }
    }
    put_in_quarantine(p->asker.held & ~in_use);
    p->asker.held &= in_use;
}

static void see_whether_lost(onic_rma_peer_t *p)
{
    if (!p->lost && atomic_load(&p->failed))
        onic_peer_give_up(p->peer);
    if (!p->lost && onic_peer_is_lost(p->peer))
        lose(p);
}

void onic_rma_released(onic_rma_peer_t *p, uint64_t slots)
{
    /* Before its slots are granted to others: what it has sent may still be under way to them. */
    see_whether_lost(p);
    slots &= p->asker.held;
    p->asker.held &= ~slots;
    if (p->lost)
        put_in_quarantine(slots);
    else
        release(slots);
    (void)onic_rma_serve();
}

void onic_rma_look_for_losses(void)
{
    const unsigned losses = onic_wire_losses();
    if (!atomic_exchange(&onic_rma_state.failing, false) && losses == onic_rma_state.losses)
        return;
    onic_rma_state.losses = losses;
    for (onic_rma_peer_t *p = onic_rma_state.peers; p != NULL; p = p->next)
        see_whether_lost(p);
}

int onic_rma_end_quarantine(void)
{
    if (onic_rma_state.quarantine == 0)
        return 0;
    if (onic_now_nsec() - onic_rma_state.quarantined <= QUARANTINE_NSEC) {
        atomic_store(&onic_rma_state.pending, true);
        return 0;
    }
    release(onic_rma_state.quarantine);
    onic_rma_state.quarantine = 0;
    return 1;
}
