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
#include "common/transport/shm/presence.h"

onic_node_state_t onic_node_state;

/* ---- peers ----------------------------------------------------------------------------------- */

/** Maps the receive pool of a peer of this node, once the peer offers one. */
static void try_to_map(onic_node_peer_t *p)
{
    onic_segment_key_t key;
    const onic_presence_t *presence = onic_peer_presence(p->peer);
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

/* ---- opening and closing --------------------------------------------------------------------- */

void onic_node_open(size_t bytes, size_t buffer, const onic_schedule_choice_t *schedule)
{
    onic_node_state.schedule = *schedule;
    onic_node_state.exists = bytes > 0 && onic_rx_pool_make(bytes, buffer, &onic_node_state.rx_pool,
                                                            &onic_node_state.key);
    if (onic_node_state.exists && onic_transport_shares_memory())
        onic_presence_offer(&onic_node_state.key);
}

void onic_node_withdraw(void)
{
    onic_presence_offer(NULL);
}

void onic_node_forget_all(void)
{
    for (onic_node_peer_t *p; (p = onic_node_state.peers) != NULL;) {
        onic_node_state.peers = p->next;
        *onic_peer_slot(p->peer, ONIC_AM_PIPELINE) = NULL;
        if (p->reached)
            onic_rx_pool_unmap(&p->rx_pool);
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

static void start_sender(onic_transfer_t *t)
{
    t->streams = t->rx_pool->far;
    (void)onic_transfer_start_sender(t, &onic_node_state.schedule, t->buffers,
                                     t->rx_pool->buffer_bytes, ONIC_PIPELINE_BLOCK, false);
}

static void start_receiver(onic_transfer_t *t, uint64_t len)
{
    onic_transfer_start_receiver(t, len, t->buffers, t->rx_pool->buffer_bytes);
}

/** Leases buffers of a receive pool, at most one for each chunk, and makes the ticket. */
static int lease(onic_transfer_t *t, onic_rx_pool_t *rx_pool, onic_ticket_t *ticket)
{
    const uint64_t chunks = (t->end.len - 1) / rx_pool->buffer_bytes + 1;
    const uint64_t leased = onic_pool_take(
        &rx_pool->pool, chunks < ONIC_RX_BUFFERS_MAX ? (unsigned)chunks : ONIC_RX_BUFFERS_MAX);
    t->rx_pool = rx_pool;
    t->buffers = onic_rx_pool_have(rx_pool, leased, true);
    if (t->buffers != leased)
        (void)onic_pool_release(&rx_pool->pool, leased & ~t->buffers);
    *ticket = (onic_ticket_t){.buffers = t->buffers, .len = t->end.len};
    return t->buffers != 0 ? OMPI_SUCCESS : OMPI_ERR_OUT_OF_RESOURCE;
}

/** Takes over the buffers of a receive pool that a ticket names, which are leased and so have
 *  memory. */
static int take_over(onic_transfer_t *t, onic_rx_pool_t *rx_pool, const onic_ticket_t *ticket)
{
    t->rx_pool = rx_pool;
    t->buffers = ticket->buffers;
    return ticket->len > 0 && onic_pool_has_leased(&rx_pool->pool, ticket->buffers) &&
                   onic_rx_pool_have(rx_pool, ticket->buffers, false) == ticket->buffers
               ? OMPI_SUCCESS
               : OMPI_ERR_BAD_PARAM;
}

static int send(onic_transfer_t *t, void *record, onic_ticket_t *ticket)
{
    onic_node_peer_t *p = record;
    const int rc = lease(t, &p->rx_pool, ticket);
    if (rc == OMPI_SUCCESS)
        start_sender(t);
    return rc;
}

static int expect(onic_transfer_t *t, void *record, onic_ticket_t *ticket)
{
    (void)record;
    const int rc =
        onic_node_state.exists ? lease(t, &onic_node_state.rx_pool, ticket) : OMPI_ERR_UNREACH;
    if (rc == OMPI_SUCCESS)
        start_receiver(t, t->end.len);
    return rc;
}

static int receive(onic_transfer_t *t, void *record, onic_ticket_t *ticket)
{
    (void)record;
    const int rc = onic_node_state.exists ? take_over(t, &onic_node_state.rx_pool, ticket)
                                          : OMPI_ERR_BAD_PARAM;
    if (rc == OMPI_SUCCESS)
        start_receiver(t, ticket->len);
    return rc;
}

static int answer(onic_transfer_t *t, void *record, onic_ticket_t *ticket)
{
    onic_node_peer_t *p = record;
    const int rc = take_over(t, &p->rx_pool, ticket);
    if (rc == OMPI_SUCCESS)
        start_sender(t);
    return rc;
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
};
