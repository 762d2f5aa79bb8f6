/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Data that comes before its receive: unexpected messages, and early bytes, which follow the
 * RTS of their message in order and use credit. So the first chunk of a long message is in flight
 * during the handshake (A. Denis 2011, section 4). */
#include "pml_superpipe/protocols/process.h"

#include <stdlib.h>

_Static_assert(sizeof(superpipe_unexpected_t) + sizeof(superpipe_early_t) <= SUPERPIPE_RECORD,
               "a message is charged for its record");

/* ---- unexpected messages --------------------------------------------------------------------- */

/** Stores bytes [at, at + bytes) of the message. */
static void hold_locked(superpipe_unexpected_t *m, uint64_t at, const void *data, uint64_t bytes)
{
    onic_copy_bytes(m->data + at, data, bytes);
    m->held += bytes;
    superpipe.waiting_bytes += bytes;
    if (superpipe.waiting_bytes > superpipe_counters.unexpected_bytes)
        superpipe_counters.unexpected_bytes = superpipe.waiting_bytes;
}

superpipe_unexpected_t *superpipe_unexpected_locked(superpipe_peer_t *from,
                                                    const superpipe_incoming_t *in)
{
    superpipe_unexpected_t *m = calloc(1, sizeof(*m) + in->bytes + in->early);

    if (m == NULL || (in->early > 0 &&
                      !superpipe_early_begin_locked(from, in->offer.handle, in->early, NULL, m))) {
        free(m);
        superpipe_break_locked(from, "memory is exhausted for a message that was not expected");
        return NULL;
    }
    m->message.context = in->prefix.context;
    m->message.source = in->source;
    m->message.tag = in->tag;
    m->message.sequence = in->sequence;
    m->from = from;
    m->a = superpipe_announced(in);
    superpipe_counters.unexpected++;
    superpipe.waiting_bytes += SUPERPIPE_RECORD;
    hold_locked(m, 0, in->data, in->bytes);
    return m;
}

void superpipe_unexpected_free_locked(superpipe_unexpected_t *m)
{
    superpipe_peer_t *from = m->from;
    const uint64_t cost = m->held + (m->a.rts ? 0 : SUPERPIPE_RECORD);

    if (m->early != NULL)
        m->early->message = NULL;
    superpipe.waiting_bytes -= SUPERPIPE_RECORD + m->held;
    free(m);
    if (cost > 0)
        superpipe_freed_locked(from, cost);
}

void superpipe_discard_locked(superpipe_unexpected_t *m)
{
    if (m->a.offer.handle != 0 && !m->from->lost)
        superpipe_send_control_locked(m->from, SUPERPIPE_KIND_ACK, m->a.offer.handle, 0);
    superpipe_unexpected_free_locked(m);
}

/* ---- early bytes ----------------------------------------------------------------------------- */

bool superpipe_early_begin_locked(superpipe_peer_t *from, uint64_t handle, uint64_t total,
                                  superpipe_request_t *r, superpipe_unexpected_t *m)
{
    superpipe_early_t *e = calloc(1, sizeof(*e));

    if (e == NULL)
        return false;
    TAILQ_INSERT_TAIL(&from->early, e, of_peer);
    e->handle = handle;
    e->total = total;
    e->receive = r;
    e->message = m;
    if (r != NULL)
        r->early = e;
    if (m != NULL)
        m->early = e;
    return true;
}

/** Frees the record; nothing gets any of its bytes any more. */
static void free_early(superpipe_peer_t *p, superpipe_early_t *e)
{
    TAILQ_REMOVE(&p->early, e, of_peer);
    if (e->receive != NULL)
        e->receive->early = NULL;
    if (e->message != NULL)
        e->message->early = NULL;
    free(e);
}

/** Gives a receive some of its early bytes. */
static void take(superpipe_request_t *r, uint64_t at, const void *data, uint64_t bytes)
{
    const uint64_t taken = superpipe_transfer_takes_early(&r->state, at, bytes);

    superpipe_place(r, at, data, taken);
    r->state.moved += taken;
}

void superpipe_on_early_locked(superpipe_peer_t *p, const superpipe_incoming_t *in)
{
    superpipe_early_t *e;

    TAILQ_FOREACH(e, &p->early, of_peer)
        if (e->handle == in->handle)
            break;
    if (e == NULL || in->bytes > e->total - e->came) {
        superpipe_break_locked(p, "a process has sent data that it did not announce");
        return;
    }
    superpipe_came_locked(p, in->bytes);
    superpipe_request_t *r = e->receive;
    superpipe_unexpected_t *m = e->message;
    e->came += in->bytes;
    if (e->came == e->total)
        free_early(p, e);
    if (m != NULL) {
        hold_locked(m, in->value, in->data, in->bytes);
        return;
    }
    if (r != NULL) {
        take(r, in->value, in->data, in->bytes);
        superpipe_finish_locked(r);
    }
    superpipe_freed_locked(p, in->bytes);
}

void superpipe_early_deliver_locked(superpipe_request_t *r, superpipe_unexpected_t *m)
{
    take(r, 0, m->data, m->held);
    r->early = m->early;
    m->early = NULL;
    if (r->early != NULL) {
        r->early->receive = r;
        r->early->message = NULL;
    }
}

void superpipe_early_drop_locked(superpipe_peer_t *p)
{
    while (!TAILQ_EMPTY(&p->early))
        free_early(p, TAILQ_FIRST(&p->early));
}
