/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The carrier between hosts: peers and their receive pools, messages, progress. The
 *  transport lock is held. */
#include "common/pipeline/rma/carrier_rma.h"

#include <stdlib.h>
#include <string.h>

/* ---- receive pools of peers ------------------------------------------------------------------ */

/** Sends the description of my receive pool. */
static void send_rx_pool(onic_peer_t *peer, bool reply)
{
    onic_rma_state_t *s = &onic_rma_state;
    unsigned char bytes[sizeof(onic_rma_message_t) + sizeof(s->description)];
    const onic_rma_message_t m = {.type = ONIC_RMA_RX_POOL,
                                  .flags = reply ? ONIC_RMA_REPLY : 0,
                                  .buffer = (uint16_t)s->pool.nbuffers,
                                  .size = s->buffer_bytes};
    memcpy(bytes, &m, sizeof(m));
    memcpy(bytes + sizeof(m), s->description, s->description_len);
    (void)onic_peer_send(peer, ONIC_AM_PIPELINE, bytes, sizeof(m) + s->description_len, NULL, 0,
                         NULL, NULL);
}

/** The record of a peer, a new one at first; NULL: puts are not used for it, or memory is
 *  exhausted. A peer of the node may have a record of the carrier there in its place. */
static onic_rma_peer_t *record_of(onic_peer_t *peer)
{
    const bool puts =
        onic_rma_state.all || (onic_peer_presence(peer) == NULL && onic_peer_puts_by_rdma(peer));
    if (!onic_rma_state.open || onic_peer_is_self(peer) || !puts)
        return NULL;
    void **kept = onic_peer_slot(peer, ONIC_AM_PIPELINE);
    onic_rma_peer_t *p = *kept;
    if (p == NULL && (p = calloc(1, sizeof(*p))) != NULL) {
        p->peer = peer;
        p->next = onic_rma_state.peers;
        onic_rma_state.peers = *kept = p;
    }
    return p;
}

/** Where there is no record this is not used, as if it had not come. */
static void on_rx_pool(const onic_rma_message_t *m, const void *description, size_t len)
{
    int rc;
    onic_remote_t *remote = NULL;
    if (m->buffer >= 1 && m->buffer <= ONIC_RX_BUFFERS_MAX && m->size > 0 &&
        m->size <= ONIC_RX_BUFFER_BYTES_MAX)
        remote = onic_remote_open(NULL, description, len, &rc);
    onic_rma_peer_t *p = remote != NULL ? record_of(onic_remote_peer(remote)) : NULL;
    if (p == NULL || p->remote != NULL) {
        if (remote != NULL)
            onic_remote_close(remote);
    } else {
        p->remote = remote;
        p->nbuffers = m->buffer;
        p->buffer_bytes = m->size;
    }
    if (p != NULL && (m->flags & ONIC_RMA_REPLY) != 0)
        send_rx_pool(p->peer, false);
}

/* ---- messages -------------------------------------------------------------------------------- */

/** Moves the machine from the buffer that stood for its lease to the granted buffers. */
static void on_grant(onic_rma_t *r, const onic_rma_message_t *m)
{
    const onic_granted_t granted =
        onic_rma_handshake_on_grant(&r->handshake, m->value, onic_buffers_first(r->peer->nbuffers));
    uint64_t word = r->early;
    if (granted == ONIC_GRANT_IGNORED)
        return;
    r->peer->requests--;
    r->other = m->from;
    if (granted == ONIC_GRANT_REFUSED) {
        r->peer->refuses = true;
        if (r->transfer != NULL)
            (void)onic_sender_fail(&r->transfer->sender);
        onic_rma_drop(r);
        return;
    }
    if (granted == ONIC_GRANT_TAKEN)
        word = onic_sender_replace_lease(&r->transfer->sender, m->value, word);
    onic_rma_put_word(r, (unsigned)__builtin_ctzll(m->value), word);
}

static void on_word(onic_rma_t *r, const onic_rma_message_t *m)
{
    if (!r->handshake.sends)
        r->other = m->from;
    onic_rma_handshake_on_word(&r->handshake, m->buffer, m->value);
}

void onic_rma_on_message(onic_peer_t *from, const void *header, size_t len, const void *data,
                         size_t data_len, onic_rndv_t *rndv)
{
    onic_rma_message_t m;
    (void)from;
    (void)data;
    (void)data_len;
    if (rndv != NULL || len < sizeof(m) || !onic_rma_state.open)
        return;
    memcpy(&m, header, sizeof(m));
    onic_rma_t *r = onic_handle_get(&onic_rma_records, m.to);
    if (m.type == ONIC_RMA_RX_POOL)
        on_rx_pool(&m, (const char *)header + sizeof(m), len - sizeof(m));
    else if (r != NULL && m.type == ONIC_RMA_GRANT)
        on_grant(r, &m);
    else if (r != NULL && m.type == ONIC_RMA_WORD)
        on_word(r, &m);
    else if (r != NULL && m.type == ONIC_RMA_ACK)
        onic_rma_handshake_on_ack(&r->handshake, m.buffer, m.value);
}

/* ---- peers ----------------------------------------------------------------------------------- */

void *onic_rma_reach(onic_peer_t *peer)
{
    onic_rma_peer_t *p = record_of(peer);
    if (p != NULL && !p->asked && p->remote == NULL && !onic_peer_is_lost(peer)) {
        p->asked = true;
        send_rx_pool(peer, true);
    }
    const bool is_on = p != NULL && p->remote != NULL && !p->refuses;
    return is_on && !p->asker.lost && !onic_peer_is_lost(peer) ? p : NULL;
}

/* ---- opening and closing --------------------------------------------------------------------- */

void onic_rma_open(const onic_pool_t *pool, char *buffers, uint32_t buffer_bytes,
                   const onic_schedule_choice_t *schedule, bool all)
{
    onic_rma_state_t *s = &onic_rma_state;
    s->schedule = *schedule;
    s->all = all;
    s->pool = *pool;
    s->buffers = buffers;
    s->buffer_bytes = buffer_bytes;
    s->bounce_region = onic_region_new((size_t)pool->nbuffers * buffer_bytes);
    if (s->bounce_region == NULL)
        return;
    onic_transport_lock();
    s->rx_region = onic_region_over_locked(buffers, (size_t)pool->nbuffers * buffer_bytes);
    onic_transport_unlock();
    s->description_len = s->rx_region != NULL ? onic_region_describe(s->rx_region, s->description,
                                                                     sizeof(s->description))
                                              : 0;
    if (s->description_len == 0)
        return;
    s->bounce = onic_region_base(s->bounce_region);
    s->bounce_free = onic_pool_all(pool);
    onic_transport_lock();
    s->losses = onic_transport_losses();
    s->open = true;
    onic_transport_unlock();
}

/** Frees the records. False if UCX still uses some; these and their peers are then kept. */
static bool free_records(void)
{
    bool all = true;
    for (uint32_t i = 0; i < onic_rma_records.n; i++) {
        onic_rma_t *r = onic_rma_records.slot[i].object;
        if (r != NULL && r->refs > 0) {
            all = false;
            r->bounces = 0;
        } else if (r != NULL) {
            free(onic_handle_free(&onic_rma_records, r->name));
        }
    }
    for (onic_rma_peer_t *p; (p = onic_rma_state.peers) != NULL;) {
        onic_rma_state.peers = p->next;
        *onic_peer_slot(p->peer, ONIC_AM_PIPELINE) = NULL;
        if (all && p->remote != NULL)
            onic_remote_close(p->remote);
        if (all)
            free(p);
    }
    return all;
}

void onic_rma_close(void)
{
    bool over = true;
    if (onic_rma_state.open) {
        onic_transport_lock();
        (void)onic_rma_serve();
        onic_transport_unlock();
        /* Completes operations in flight, and so frees their records. */
        onic_transport_flush();
        onic_transport_lock();
        (void)onic_rma_serve();
        onic_rma_state.open = false;
        over = free_records();
        onic_transport_unlock();
    }
    if (onic_rma_state.rx_region != NULL)
        onic_region_free(onic_rma_state.rx_region);
    if (onic_rma_state.bounce_region != NULL)
        (over ? onic_region_free : onic_region_leave)(onic_rma_state.bounce_region);
    memset(&onic_rma_state, 0, sizeof(onic_rma_state));
}
