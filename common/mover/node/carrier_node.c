/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Peers of this node: the receiver's area is mapped at the sender. */
#include "common/mover/node/carrier_node.h"

#include <stdlib.h>

#include "ompi/constants.h"

#include "common/mover/pipe/counters.h"
#include "common/mover/pipe/chunks.h"
#include "common/support/clock.h"
#include "common/node/presence.h"

/** Slots that belong to no transfer are looked at so often: their owner may be dead. */
#define RECLAIM_NSEC UINT64_C(100000000)

onic_landing_t onic_landing;

/* ---- peers ----------------------------------------------------------------------------------- */

/** Maps the area of a peer of this node, once it offers one. */
static void try_to_map(onic_node_peer_t *p)
{
    onic_segment_key_t key;
    const onic_presence_t *presence = onic_landing.me != 0 ? onic_peer_presence(p->peer) : NULL;
    if (presence == NULL) {
        p->tried = true;
    } else if (onic_presence_offers(presence, &key)) {
        p->tried = true;
        p->reached = onic_area_map(&key, &p->area);
        p->area.far = onic_distance(onic_peer_name(p->peer)) == ONIC_FAR;
    }
}

onic_node_peer_t *onic_node_reach(onic_peer_t *peer)
{
    void **kept = onic_peer_slot(peer, ONIC_AM_MOVER);
    onic_node_peer_t *p = *kept;
    if (p == NULL && (p = calloc(1, sizeof(*p))) != NULL) {
        p->peer = peer;
        p->next = onic_landing.peers;
        onic_landing.peers = *kept = p;
    }
    if (p != NULL && !p->tried)
        try_to_map(p);
    return p != NULL && p->reached ? p : NULL;
}

static void *reach(onic_peer_t *peer)
{
    return onic_node_reach(peer);
}

void onic_node_forget(onic_peer_t *peer)
{
    onic_node_peer_t **at = &onic_landing.peers;
    while (*at != NULL && (*at)->peer != peer)
        at = &(*at)->next;
    onic_node_peer_t *p = *at;
    if (p != NULL) {
        *at = p->next;
        *onic_peer_slot(peer, ONIC_AM_MOVER) = NULL;
        if (p->reached)
            onic_area_unmap(&p->area);
        free(p);
    }
}

/* ---- opening and closing --------------------------------------------------------------------- */

void onic_node_open(size_t bytes, size_t slot)
{
    const onic_life_t mine = onic_life_mine();
    onic_landing.me = onic_owner_of(&mine);
    onic_landing.exists =
        bytes > 0 && onic_area_make(bytes, slot, &onic_landing.area, &onic_landing.key);
    atomic_store(&onic_landing.receiving, 0);
    if (onic_landing.exists && onic_wire_shares_memory())
        onic_presence_offer(&onic_landing.key);
}

void onic_node_withdraw(void)
{
    onic_presence_offer(NULL);
}

void onic_node_forget_all(void)
{
    while (onic_landing.peers != NULL)
        onic_node_forget(onic_landing.peers->peer);
}

void onic_node_close(void)
{
    if (onic_landing.exists) {
        onic_area_close(&onic_landing.area, &onic_landing.key);
        onic_landing.exists = false;
    }
}

/* ---- what the dead have left ----------------------------------------------------------------- */

static void free_of_dead(uint64_t slots)
{
    const onic_pool_t *pool = &onic_landing.area.pool;
    for (; slots != 0; slots &= slots - 1) {
        const uint64_t owner = onic_pool_owner(pool, (unsigned)__builtin_ctzll(slots));
        const onic_life_t life = onic_owner_life(owner, &onic_landing.area.life);
        if (owner != 0 && onic_life_is_dead(&life))
            onic_mover_count_slots(onic_pool_release(pool, owner, slots & -slots));
    }
}

void onic_node_reclaim(void)
{
    static atomic_bool busy;
    static uint64_t looked, missing, seen;
    const uint64_t now = onic_now_nsec();
    if (!onic_landing.exists || atomic_exchange(&busy, true))
        return;
    if (now - looked > RECLAIM_NSEC) {
        looked = now;
        /* A dead sender's transfer ends by itself, and so does one that has not come yet. */
        const uint64_t alone = onic_pool_mend(&onic_landing.area.pool, &missing) &
                               ~atomic_load(&onic_landing.receiving);
        free_of_dead(alone & seen);
        seen = alone;
    }
    atomic_store(&busy, false);
}

/* ---- beginning ------------------------------------------------------------------------------- */

/** Every chunk fills a slot: on a node that was never slower than chunks that grow. */
static void start_sender(onic_transfer_t *t)
{
    const uint32_t slot = t->area->slot_bytes;
    const uint32_t granule = t->end.granule > 1 ? t->end.granule : 1;
    const uint32_t line = slot < 64 ? 1 : 64;
    const onic_lease_t lease = {t->slots, slot};
    onic_schedule_t schedule;
    onic_schedule_growing(&schedule, slot, 1, granule > 1 && granule <= slot ? granule : line,
                          slot);
    onic_sender_init(&t->sender, t->end.len, &lease, &schedule, ONIC_MOVER_BLOCK, granule);
    t->streams = t->area->far;
}

static void start_receiver(onic_transfer_t *t, uint64_t len)
{
    const onic_lease_t lease = {t->slots, t->area->slot_bytes};
    onic_receiver_init(&t->receiver, len, &lease);
    atomic_fetch_or(&onic_landing.receiving, t->slots);
}

/** Leases slots of an area for `owner`, one for each chunk at most, and makes the ticket. */
static int lease(onic_transfer_t *t, onic_area_t *area, uint64_t owner, onic_pool_wait_t *wait,
                 onic_ticket_t *ticket)
{
    const uint64_t chunks = (t->end.len - 1) / area->slot_bytes + 1;
    const uint64_t leased = onic_pool_take(
        &area->pool, owner, chunks < ONIC_SLOTS_MAX ? (unsigned)chunks : ONIC_SLOTS_MAX, wait);
    t->area = area;
    t->owner = owner;
    t->slots = onic_area_have(area, leased, true);
    if (t->slots != leased)
        (void)onic_pool_release(&area->pool, owner, leased & ~t->slots);
    *ticket = (onic_ticket_t){.slots = t->slots, .len = t->end.len};
    return t->slots != 0 ? OMPI_SUCCESS : OMPI_ERR_OUT_OF_RESOURCE;
}

static int send(onic_transfer_t *t, void *record, onic_ticket_t *ticket)
{
    onic_node_peer_t *p = record;
    const int rc = lease(t, &p->area, onic_landing.me, &p->wait, ticket);
    if (rc == OMPI_SUCCESS) {
        t->other = p->area.life;
        start_sender(t);
    }
    return rc;
}

static int expect(onic_transfer_t *t, void *record, onic_ticket_t *ticket)
{
    onic_node_peer_t *p = record;
    const int rc = onic_landing.exists
                       ? lease(t, &onic_landing.area, p->area.owner, &p->own_wait, ticket)
                       : OMPI_ERR_UNREACH;
    if (rc == OMPI_SUCCESS) {
        t->other = p->area.life;
        start_receiver(t, t->end.len);
    }
    return rc;
}

/** Have all of the slots memory? They have where a process has leased them. */
static bool is_ready(onic_area_t *area, uint64_t slots)
{
    return onic_area_have(area, slots, false) == slots;
}

/** The owner of the lease that a peer's ticket names in my area. 0 where it has not got it any
 *  more: the slots of one that has died may be others' when its last message comes. */
static uint64_t leaseholder(onic_peer_t *from, const onic_ticket_t *ticket)
{
    onic_area_t *area = &onic_landing.area;
    const onic_pool_t *pool = &area->pool;
    if (!onic_landing.exists || ticket->slots == 0 || (ticket->slots & ~onic_pool_all(pool)) != 0)
        return 0;
    const uint64_t owner = onic_pool_owner(pool, (unsigned)__builtin_ctzll(ticket->slots));
    const pid_t pid = onic_peer_pid(from);
    const bool is_peers = pid > 0 && onic_owner_life(owner, &area->life).pid == (int64_t)pid;
    return is_peers && onic_pool_has(pool, owner, ticket->slots) && is_ready(area, ticket->slots)
               ? owner
               : 0;
}

static int receive(onic_transfer_t *t, void *record, onic_ticket_t *ticket)
{
    (void)record;
    t->owner = leaseholder(t->peer, ticket);
    if (t->owner == 0 || ticket->len == 0)
        return OMPI_ERR_BAD_PARAM;
    t->area = &onic_landing.area;
    t->other = onic_owner_life(t->owner, &t->area->life);
    t->slots = ticket->slots;
    start_receiver(t, ticket->len);
    return OMPI_SUCCESS;
}

static int answer(onic_transfer_t *t, void *record, onic_ticket_t *ticket)
{
    onic_node_peer_t *p = record;
    if (!onic_pool_has(&p->area.pool, onic_landing.me, ticket->slots) ||
        !is_ready(&p->area, ticket->slots))
        return OMPI_ERR_BAD_PARAM;
    t->area = &p->area;
    t->owner = onic_landing.me;
    t->other = p->area.life;
    t->slots = ticket->slots;
    start_sender(t);
    return OMPI_SUCCESS;
}

/* ---- slots and words ------------------------------------------------------------------------- */

static onic_slot_words_t *words(const onic_transfer_t *t, unsigned slot)
{
    return &t->area->pool.slot[slot];
}

static char *at(onic_transfer_t *t, unsigned slot, uint32_t offset)
{
    return onic_area_slot(t->area, slot) + offset;
}

static void publish(onic_transfer_t *t, unsigned slot, uint64_t word)
{
    atomic_store_explicit(&words(t, slot)->word, word, memory_order_release);
}

static uint64_t word(onic_transfer_t *t, unsigned slot)
{
    return atomic_load_explicit(&words(t, slot)->word, memory_order_acquire);
}

static void acknowledge(onic_transfer_t *t, unsigned slot, uint64_t rounds)
{
    atomic_store_explicit(&words(t, slot)->acknowledged, rounds, memory_order_release);
}

static uint64_t acknowledged(onic_transfer_t *t, unsigned slot)
{
    return atomic_load_explicit(&words(t, slot)->acknowledged, memory_order_acquire);
}

static void release(onic_transfer_t *t, uint64_t slots)
{
    if (t->role == ONIC_RECEIVES) {
        atomic_fetch_and(&onic_landing.receiving, ~slots);
        onic_mover_count_slots(onic_pool_release(&t->area->pool, t->owner, slots));
    } else {
        (void)onic_pool_release(&t->area->pool, t->owner, slots);
    }
}

static bool is_dead(const onic_transfer_t *t)
{
    return onic_life_is_dead(&t->other);
}

/** What a sender that has gone wrong has of my slots stays its own until it is dead. */
static void closed(onic_transfer_t *t, bool withdrawn)
{
    (void)withdrawn;
    if (t->role == ONIC_RECEIVES)
        atomic_fetch_and(&onic_landing.receiving, ~t->slots);
}

const onic_carrier_t onic_carrier_node = {
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
    .release = release,
    .is_dead = is_dead,
    .closed = closed,
};
