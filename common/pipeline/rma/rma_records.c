/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The carrier between hosts: records of transfers, their messages and puts, grants of my
 *  buffers, and lost peers. The transport lock is held. */
#include "common/pipeline/rma/carrier_rma.h"

#include <stdlib.h>

#include "common/pipeline/core/counters.h"

onic_rma_state_t onic_rma_state;

onic_handles_t onic_rma_records;

/* ---- bounce buffers -------------------------------------------------------------------------- */

char *onic_rma_bounce(onic_rma_t *r)
{
    const uint64_t free = onic_rma_state.bounce_free, first = free & -free;
    /* The last free one is reserved for transfers with a grant, since what they pack leaves. */
    if (r->packs == 0 && (r->handshake.lease != 0 || free != first)) {
        r->packs = first;
        r->bounces |= first;
        onic_rma_state.bounce_free &= ~first;
    }
    return r->packs != 0 ? onic_rma_state.bounce +
                               (size_t)__builtin_ctzll(r->packs) * onic_rma_state.buffer_bytes
                         : NULL;
}

static void free_bounces(onic_rma_t *r, uint64_t buffers)
{
    onic_rma_state.bounce_free |= r->bounces & buffers;
    r->bounces &= ~buffers;
}

/* ---- records --------------------------------------------------------------------------------- */

onic_rma_t *onic_rma_new(onic_rma_peer_t *peer, onic_transfer_t *t)
{
    onic_rma_t *r = calloc(1, sizeof(*r));
    const uint64_t name = r != NULL ? onic_handle_new(&onic_rma_records, r) : 0;
    if (name == 0) {
        free(r);
        return NULL;
    }
    r->name = name;
    r->peer = peer;
    r->transfer = t;
    r->handshake.sends = t->role == ONIC_SENDS;
    t->rma = r;
    return r;
}

void onic_rma_drop(onic_rma_t *r)
{
    if (r->handshake.over && r->peer->asker.lost) {
        /* UCX may never complete what it cannot send; whatever it still sends reaches nobody. */
        free_bounces(r, UINT64_MAX);
    }
    if (r->handshake.over && !r->handshake.waits && r->refs == 0) {
        free_bounces(r, UINT64_MAX);
        free(onic_handle_free(&onic_rma_records, r->name));
    }
}

/** UCX, or a caller on the stack, no longer needs the record. */
static void unref(onic_rma_t *r)
{
    r->refs--;
    onic_rma_drop(r);
}

/* ---- messages and puts ----------------------------------------------------------------------- */

/** True if nothing can be sent to the record's peer any more. */
static bool is_off(const onic_rma_t *r)
{
    return onic_peer_is_lost(r->peer->peer);
}

bool onic_rma_left(const onic_rma_t *r)
{
    return !is_off(r) && r->handshake.lease != 0 && r->refs == 0;
}

/** A put is complete, or a message has left. */
static void completed(void *arg, int status)
{
    onic_rma_t *r = arg;
    if (status < 0)
        onic_peer_give_up(r->peer->peer);
    unref(r);
}

void onic_rma_send(onic_rma_t *r, onic_rma_message_t m)
{
    if (is_off(r))
        return;
    m.to = r->other;
    m.from = r->name;
    r->refs++;
    const int rc =
        onic_peer_send(r->peer->peer, ONIC_AM_PIPELINE, &m, sizeof(m), NULL, 0, completed, r);
    if (rc != 0)
        completed(r, rc);
}

/** A word that waits until all puts before it are visible. */
typedef struct announcement {
    onic_rma_t *r;
    uint64_t bounce; /**< the bounce buffer that is free afterwards; 0: none */
    onic_rma_message_t message;
} announcement_t;

static void flushed(void *arg, int status)
{
    announcement_t *a = arg;
    if (status < 0)
        onic_peer_give_up(a->r->peer->peer);
    free_bounces(a->r, a->bounce);
    onic_rma_send(a->r, a->message);
    unref(a->r);
    free(a);
}

/** Sends a word after all earlier puts. With the last word of a chunk its bounce buffer becomes
 *  free. */
static void announce(onic_rma_t *r, unsigned buffer, uint64_t word)
{
    const bool last = onic_word_ends(word) || onic_word_fails(word);
    announcement_t *a = malloc(sizeof(*a));
    if (a == NULL) {
        onic_peer_give_up(r->peer->peer);
        return;
    }
    *a = (announcement_t){
        r, last ? r->packs : 0, {.type = ONIC_RMA_WORD, .buffer = (uint16_t)buffer, .value = word}};
    r->packs &= ~a->bounce;
    r->refs++;
    const int rc = onic_peer_flush(r->peer->peer, flushed, a);
    if (rc != 0)
        flushed(a, rc);
}

static void put(onic_rma_t *r, unsigned buffer, uint32_t from, uint32_t bytes)
{
    r->refs++;
    const int rc = onic_remote_put(r->peer->remote, (size_t)buffer * r->peer->buffer_bytes + from,
                                   onic_rma_bounce(r) + from, bytes, onic_rma_state.bounce_region,
                                   completed, r);
    if (rc != 0)
        completed(r, rc);
}

void onic_rma_put_word(onic_rma_t *r, unsigned buffer, uint64_t word)
{
    uint32_t from;
    if (is_off(r) || word == 0)
        return;
    r->refs++;
    const uint32_t bytes = onic_rma_handshake_put(&r->handshake, word, &from);
    if (bytes > 0)
        put(r, buffer, from, bytes);
    announce(r, buffer, word);
    unref(r);
}

/* ---- lost peers --------------------------------------------------------------------------------
 */

static void see_whether_lost(onic_rma_peer_t *p)
{
    if (p->asker.lost || !onic_peer_is_lost(p->peer))
        return;
    onic_grant_queue_lose(&onic_rma_state.grant_queue, &p->asker);
    for (uint32_t i = 0; i < onic_rma_records.n; i++) {
        onic_rma_t *r = onic_rma_records.slot[i].object;
        if (r != NULL && r->peer == p) {
            r->handshake.waits = false; /* for ever */
            onic_rma_drop(r);
        }
    }
}

/** Handles peers lost since the last call. */
static void look_for_losses(void)
{
    const unsigned losses = onic_transport_losses();
    if (losses == onic_rma_state.losses)
        return;
    onic_rma_state.losses = losses;
    for (onic_rma_peer_t *p = onic_rma_state.peers; p != NULL; p = p->next)
        see_whether_lost(p);
}

/* ---- buffers of mine ------------------------------------------------------------------------- */

static void release(uint64_t buffers)
{
    if (buffers != 0)
        onic_pipeline_count_buffers(onic_pool_release(&onic_rma_state.pool, buffers));
}

static uint64_t take(onic_rma_t *r, unsigned most)
{
    const uint64_t buffers = onic_pool_take(&onic_rma_state.pool, most);
    r->peer->asker.held |= buffers;
    r->handshake.lease = buffers;
    return buffers;
}

uint64_t onic_rma_reserve(onic_rma_t *r, unsigned buffers)
{
    return onic_rma_state.grant_queue.first == NULL ? take(r, buffers) : 0;
}

void onic_rma_request(onic_rma_t *r, unsigned buffers)
{
    onic_grant_queue_add(&onic_rma_state.grant_queue, &r->request, &r->peer->asker, buffers);
    r->handshake.waits = true;
}

/** True if lost peers have all buffers. */
static bool is_used_up(void)
{
    uint64_t lost = 0;
    for (const onic_rma_peer_t *p = onic_rma_state.peers; p != NULL; p = p->next)
        lost |= p->asker.lost ? p->asker.held : 0;
    return lost == onic_pool_all(&onic_rma_state.pool);
}

/** Serves the next request: grants buffers, or refuses it. False if it has to wait on. */
static bool serve_next(onic_grant_request_t *next)
{
    onic_rma_t *r = (onic_rma_t *)next;
    const uint64_t buffers = take(r, next->wanted);
    if (buffers == 0 && !is_used_up())
        return false;
    onic_grant_queue_remove(&onic_rma_state.grant_queue, next);
    r->handshake.waits = false;
    /* The machine of a request that is refused finds that the sender has given up. */
    if (buffers == 0)
        r->handshake.word[0] = ONIC_WORD_FAILS;
    onic_rma_send(r, (onic_rma_message_t){.type = ONIC_RMA_GRANT, .value = buffers});
    return true;
}

int onic_rma_serve(void)
{
    onic_grant_request_t *next;
    int n = 0;
    look_for_losses();
    while ((next = onic_grant_queue_next(&onic_rma_state.grant_queue)) != NULL &&
           serve_next(next)) {
        n++;
        look_for_losses();
    }
    return n;
}

void onic_rma_released(onic_rma_peer_t *p, uint64_t buffers)
{
    look_for_losses();
    release(onic_asker_release(&p->asker, buffers));
    (void)onic_rma_serve();
}

void onic_rma_end(onic_rma_t *r)
{
    r->transfer = NULL;
    r->handshake.over = true;
    onic_rma_drop(r);
}
