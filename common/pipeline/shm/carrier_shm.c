/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The carrier for peers of this node: the sender maps the receiver's receive pool. */
#include "common/pipeline/shm/carrier_shm.h"

#include <stdlib.h>

#include "ompi/constants.h"

#include "common/pipeline/core/counters.h"
#include "common/pipeline/core/chunks.h"
#include "common/support/clock.h"
#include "common/transport/shm/presence.h"

/** Interval of checks whether the owners of buffers without a transfer are dead, nanoseconds. */
#define RECLAIM_NSEC UINT64_C(100000000)

onic_node_state_t onic_node_state;

/* ---- peers ----------------------------------------------------------------------------------- */

/** Maps the receive pool of a peer of this node, once the peer offers one. */
static void try_to_map(onic_node_peer_t *p)
{
    onic_segment_key_t key;
    const onic_presence_t *presence = onic_node_state.me != 0 ? onic_peer_presence(p->peer) : NULL;
    if (presence == NULL) {
        p->tried = true;
    } else if (onic_presence_offers(presence, &key)) {
        p->tried = true;
        p->reached = onic_rx_pool_map(&key, &p->rx_pool);
        p->rx_pool.far = onic_distance(onic_peer_name(p->peer)) == ONIC_FAR;
    }
}

onic_node_peer_t *onic_node_reach(onic_peer_t *peer)
{
    void **kept = onic_peer_slot(peer, ONIC_AM_PIPELINE);
    onic_node_peer_t *p = *kept;
    if (p == NULL && (p = calloc(1, sizeof(*p))) != NULL) {
        p->peer = peer;
        p->next = onic_node_state.peers;
        onic_node_state.peers = *kept = p;
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
    onic_node_peer_t **at = &onic_node_state.peers;
    while (*at != NULL && (*at)->peer != peer)
        at = &(*at)->next;
    onic_node_peer_t *p = *at;
    if (p != NULL) {
        *at = p->next;
        *onic_peer_slot(peer, ONIC_AM_PIPELINE) = NULL;
        if (p->reached)
            onic_rx_pool_unmap(&p->rx_pool);
        free(p);
    }
}

/* ---- opening and closing --------------------------------------------------------------------- */

void onic_node_open(size_t bytes, size_t buffer, const onic_schedule_choice_t *schedule)
{
    onic_node_state.schedule = *schedule;
    const onic_life_t mine = onic_life_mine();
    onic_node_state.me = onic_owner_of(&mine);
    onic_node_state.exists = bytes > 0 && onic_rx_pool_make(bytes, buffer, &onic_node_state.rx_pool,
                                                            &onic_node_state.key);
    atomic_store(&onic_node_state.receiving, 0);
    if (onic_node_state.exists && onic_transport_shares_memory())
        onic_presence_offer(&onic_node_state.key);
}

void onic_node_withdraw(void)
{
    onic_presence_offer(NULL);
}

void onic_node_forget_all(void)
{
    while (onic_node_state.peers != NULL)
        onic_node_forget(onic_node_state.peers->peer);
}

void onic_node_close(void)
{
    if (onic_node_state.exists) {
        onic_rx_pool_close(&onic_node_state.rx_pool, &onic_node_state.key);
        onic_node_state.exists = false;
    }
}

/* ---- buffers of dead processes -----------------------------------------------------------------
 */

static void free_of_dead(uint64_t buffers)
{
    const onic_pool_t *pool = &onic_node_state.rx_pool.pool;
    for (; buffers != 0; buffers &= buffers - 1) {
        const uint64_t owner = onic_pool_owner(pool, (unsigned)__builtin_ctzll(buffers));
        const onic_life_t life = onic_owner_life(owner, &onic_node_state.rx_pool.life);
        if (owner != 0 && onic_life_is_dead(&life))
            onic_pipeline_count_buffers(onic_pool_release(pool, owner, buffers & -buffers));
    }
}

void onic_node_reclaim(void)
{
    static atomic_bool busy;
    static uint64_t looked, missing, seen;
    const uint64_t now = onic_now_nsec();
    if (!onic_node_state.exists || atomic_exchange(&busy, true))
        return;
    if (now - looked > RECLAIM_NSEC) {
        looked = now;
        /* The transfer of a dead sender ends by itself, even if its message comes later. */
        const uint64_t alone = onic_pool_mend(&onic_node_state.rx_pool.pool, &missing) &
                               ~atomic_load(&onic_node_state.receiving);
        free_of_dead(alone & seen);
        seen = alone;
    }
    atomic_store(&busy, false);
}

/* ---- beginning ------------------------------------------------------------------------------- */

static void start_sender(onic_transfer_t *t)
{
    t->streams = t->rx_pool->far;
    (void)onic_transfer_start_sender(t, &onic_node_state.schedule, t->buffers,
                                     t->rx_pool->buffer_bytes, ONIC_PIPELINE_BLOCK, false);
}

static void start_receiver(onic_transfer_t *t, uint64_t len)
{
    onic_transfer_start_receiver(t, len, t->buffers, t->rx_pool->buffer_bytes);
    atomic_fetch_or(&onic_node_state.receiving, t->buffers);
}

/** Leases buffers of a receive pool for `owner`, at most one for each chunk, and makes the ticket.
 */
static int lease(onic_transfer_t *t, onic_rx_pool_t *rx_pool, uint64_t owner,
                 onic_pool_wait_t *wait, onic_ticket_t *ticket)
{
    const uint64_t chunks = (t->end.len - 1) / rx_pool->buffer_bytes + 1;
    const uint64_t leased =
        onic_pool_take(&rx_pool->pool, owner,
                       chunks < ONIC_RX_BUFFERS_MAX ? (unsigned)chunks : ONIC_RX_BUFFERS_MAX, wait);
    t->rx_pool = rx_pool;
    t->owner = owner;
    t->buffers = onic_rx_pool_have(rx_pool, leased, true);
    if (t->buffers != leased)
        (void)onic_pool_release(&rx_pool->pool, owner, leased & ~t->buffers);
    *ticket = (onic_ticket_t){.buffers = t->buffers, .len = t->end.len};
    return t->buffers != 0 ? OMPI_SUCCESS : OMPI_ERR_OUT_OF_RESOURCE;
}

static int send(onic_transfer_t *t, void *record, onic_ticket_t *ticket)
{
    onic_node_peer_t *p = record;
    const int rc = lease(t, &p->rx_pool, onic_node_state.me, &p->wait, ticket);
    if (rc == OMPI_SUCCESS) {
        t->other = p->rx_pool.life;
        start_sender(t);
    }
    return rc;
}

static int expect(onic_transfer_t *t, void *record, onic_ticket_t *ticket)
{
    onic_node_peer_t *p = record;
    const int rc = onic_node_state.exists
                       ? lease(t, &onic_node_state.rx_pool, p->rx_pool.owner, &p->own_wait, ticket)
                       : OMPI_ERR_UNREACH;
    if (rc == OMPI_SUCCESS) {
        t->other = p->rx_pool.life;
        start_receiver(t, t->end.len);
    }
    return rc;
}

/** True if all of the buffers have memory, as leased buffers have. */
static bool is_ready(onic_rx_pool_t *rx_pool, uint64_t buffers)
{
    return onic_rx_pool_have(rx_pool, buffers, false) == buffers;
}

/** The owner of the lease in my receive pool that a peer's ticket names; 0 if the peer no longer
 *  has it: after its death others may have the buffers when its last message comes. */
static uint64_t leaseholder(onic_peer_t *from, const onic_ticket_t *ticket)
{
    onic_rx_pool_t *rx_pool = &onic_node_state.rx_pool;
    const onic_pool_t *pool = &rx_pool->pool;
    if (!onic_node_state.exists || ticket->buffers == 0 ||
        (ticket->buffers & ~onic_pool_all(pool)) != 0)
        return 0;
    const uint64_t owner = onic_pool_owner(pool, (unsigned)__builtin_ctzll(ticket->buffers));
    const pid_t pid = onic_peer_pid(from);
    const bool is_peers = pid > 0 && onic_owner_life(owner, &rx_pool->life).pid == (int64_t)pid;
    return is_peers && onic_pool_has(pool, owner, ticket->buffers) &&
                   is_ready(rx_pool, ticket->buffers)
               ? owner
               : 0;
}

static int receive(onic_transfer_t *t, void *record, onic_ticket_t *ticket)
{
    (void)record;
    t->owner = leaseholder(t->peer, ticket);
    if (t->owner == 0 || ticket->len == 0)
        return OMPI_ERR_BAD_PARAM;
    t->rx_pool = &onic_node_state.rx_pool;
    t->other = onic_owner_life(t->owner, &t->rx_pool->life);
    t->buffers = ticket->buffers;
    start_receiver(t, ticket->len);
    return OMPI_SUCCESS;
}

static int answer(onic_transfer_t *t, void *record, onic_ticket_t *ticket)
{
    onic_node_peer_t *p = record;
    if (!onic_pool_has(&p->rx_pool.pool, onic_node_state.me, ticket->buffers) ||
        !is_ready(&p->rx_pool, ticket->buffers))
        return OMPI_ERR_BAD_PARAM;
    t->rx_pool = &p->rx_pool;
    t->owner = onic_node_state.me;
    t->other = p->rx_pool.life;
    t->buffers = ticket->buffers;
    start_sender(t);
    return OMPI_SUCCESS;
}

/* ---- buffers and words ----------------------------------------------------------------------- */

static onic_rx_buffer_words_t *words(const onic_transfer_t *t, unsigned buffer)
{
    return &t->rx_pool->pool.buffer[buffer];
}

static char *at(onic_transfer_t *t, unsigned buffer, uint32_t offset)
{
    return onic_rx_pool_buffer(t->rx_pool, buffer) + offset;
}

static void publish(onic_transfer_t *t, unsigned buffer, uint64_t word)
{
    atomic_store_explicit(&words(t, buffer)->word, word, memory_order_release);
}

static uint64_t word(onic_transfer_t *t, unsigned buffer)
{
    return atomic_load_explicit(&words(t, buffer)->word, memory_order_acquire);
}

static void acknowledge(onic_transfer_t *t, unsigned buffer, uint64_t rounds)
{
    atomic_store_explicit(&words(t, buffer)->acknowledged, rounds, memory_order_release);
}

static uint64_t acknowledged(onic_transfer_t *t, unsigned buffer)
{
    return atomic_load_explicit(&words(t, buffer)->acknowledged, memory_order_acquire);
}

static void release(onic_transfer_t *t, uint64_t buffers)
{
    atomic_fetch_and(&onic_node_state.receiving, ~buffers);
    onic_pipeline_count_buffers(onic_pool_release(&t->rx_pool->pool, t->owner, buffers));
}

static bool is_dead(const onic_transfer_t *t)
{
    return onic_life_is_dead(&t->other);
}

/** A sender that has misbehaved keeps its buffers of mine until it is dead. */
static void closed(onic_transfer_t *t)
{
    onic_transfer_free_sizes(t);
    if (t->role == ONIC_RECEIVES)
        atomic_fetch_and(&onic_node_state.receiving, ~t->buffers);
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
