/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The carrier for peers of this node: the sender maps the receiver's receive pool. */
#include "common/pipeline/shm/carrier_shm.h"

#include <stdlib.h>

#include "ompi/constants.h"

#include "common/pipeline/core/counters.h"
#include "common/transport/shm/presence.h"

onic_node_state_t onic_node_state;

/* ---- peers ----------------------------------------------------------------------------------- */

/** The record of a peer whose receive pool is mapped here, which is tried once the peer offers
 *  one. */
static void *reach(onic_peer_t *peer)
{
    const onic_presence_t *presence = onic_peer_presence(peer);
    onic_segment_key_t key;
    if (presence == NULL)
        return NULL;
    void **kept = onic_peer_slot(peer, ONIC_AM_PIPELINE);
    onic_node_peer_t *p = *kept;
    if (p == NULL && (p = calloc(1, sizeof(*p))) != NULL) {
        p->peer = peer;
        p->next = onic_node_state.peers;
        onic_node_state.peers = *kept = p;
    }
    if (p != NULL && !p->tried && onic_presence_offers(presence, &key)) {
        p->tried = true;
        p->reached = onic_rx_pool_map(&key, &p->rx_pool);
        p->rx_pool.far = onic_distance(onic_peer_name(peer)) == ONIC_FAR;
    }
    return p != NULL && p->reached ? p : NULL;
}

/* ---- opening and closing --------------------------------------------------------------------- */

void onic_node_open(size_t bytes, size_t buffer, const onic_schedule_choice_t *schedule)
{
    onic_node_state.schedule = *schedule;
    onic_node_state.exists = bytes > 0 && onic_rx_pool_make(bytes, buffer, &onic_node_state.rx_pool,
                                                            &onic_node_state.key);
    if (onic_node_state.exists && onic_transport_shares_memory())
        onic_presence_offer(&onic_node_state.key);
}

void onic_node_forget_all(void)
{
    for (onic_node_peer_t *p; (p = onic_node_state.peers) != NULL;) {
        onic_node_state.peers = p->next;
        *onic_peer_slot(p->peer, ONIC_AM_PIPELINE) = NULL;
        if (p->reached)
            onic_segment_unmap(&p->rx_pool.segment);
        free(p);
    }
}

void onic_node_close(void)
{
    if (onic_node_state.exists) {
        onic_rx_pool_close(&onic_node_state.rx_pool, &onic_node_state.key);
        onic_node_state.exists = false;
    }
}

/* ---- beginning ------------------------------------------------------------------------------- */

/** The receive pool that a transfer goes through, the receiver's; NULL: there is none. */
static onic_rx_pool_t *pool_of(const onic_transfer_t *t, void *record)
{
    onic_node_peer_t *p = record;
    if (t->role == ONIC_SENDS)
        return &p->rx_pool;
    return onic_node_state.exists ? &onic_node_state.rx_pool : NULL;
}

static void start_machine(onic_transfer_t *t, uint64_t len)
{
    const onic_lease_t lease = {t->buffers, t->rx_pool->buffer_bytes};
    if (t->role == ONIC_RECEIVES) {
        onic_receiver_init(&t->receiver, len, &lease);
        return;
    }
    t->streams = t->rx_pool->far;
    onic_transfer_start_sender(t, &onic_node_state.schedule, &lease, ONIC_PIPELINE_BLOCK);
}

/** Leases at most one buffer for each chunk. */
static int lease(onic_transfer_t *t, void *record, onic_ticket_t *ticket)
{
    onic_rx_pool_t *rx_pool = t->rx_pool = pool_of(t, record);
    if (rx_pool == NULL)
        return OMPI_ERR_UNREACH;
    const uint64_t leased =
        onic_pool_take(&rx_pool->pool, onic_buffers_for(t->end.len, rx_pool->buffer_bytes));
    t->buffers = onic_rx_pool_have(rx_pool, leased, true);
    if (t->buffers != leased)
        (void)onic_pool_release(&rx_pool->pool, leased & ~t->buffers);
    if (t->buffers == 0)
        return OMPI_ERR_OUT_OF_RESOURCE;
    *ticket = (onic_ticket_t){.buffers = t->buffers, .len = t->end.len};
    start_machine(t, ticket->len);
    return OMPI_SUCCESS;
}

/** Takes over the buffers that a ticket names, which are leased and so have memory. */
static int follow(onic_transfer_t *t, void *record, const onic_ticket_t *ticket)
{
    onic_rx_pool_t *rx_pool = t->rx_pool = pool_of(t, record);
    if (rx_pool == NULL || ticket->len == 0 ||
        !onic_pool_has_leased(&rx_pool->pool, ticket->buffers) ||
        onic_rx_pool_have(rx_pool, ticket->buffers, false) != ticket->buffers)
        return OMPI_ERR_BAD_PARAM;
    t->buffers = ticket->buffers;
    start_machine(t, ticket->len);
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
    onic_pipeline_count_buffers(onic_pool_release(&t->rx_pool->pool, buffers));
}

static bool is_dead(const onic_transfer_t *t)
{
    return onic_peer_has_died(t->peer);
}

const onic_carrier_t onic_carrier_node = {
    .is_shared = true,
    .reach = reach,
    .lease = lease,
    .follow = follow,
    .at = at,
    .publish = publish,
    .word = word,
    .acknowledge = acknowledge,
    .acknowledged = acknowledged,
    .release = release,
    .is_dead = is_dead,
};
