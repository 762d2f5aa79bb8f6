/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Data that comes before its receive: unexpected messages, and early bytes, which come with
 *  the RTS of their message and right behind it, and use credit. So the first chunk of a long
 *  message is in flight during the handshake (A. Denis 2011, section 4). */
#include "pml_superpipe/protocols/process.h"

#include <stdlib.h>

_Static_assert(sizeof(superpipe_unexpected_t) <= SUPERPIPE_RECORD,
               "a message is charged for its record");

/* ---- unexpected messages --------------------------------------------------------------------- */

/** Stores the next bytes of the message. */
static void hold_locked(superpipe_unexpected_t *m, const void *data, uint64_t bytes)
{
    onic_copy_bytes(m->data + m->held, data, bytes);
    m->held += bytes;
    superpipe.waiting_bytes += bytes;
    if (superpipe.waiting_bytes > superpipe_counters.unexpected_bytes)
        superpipe_counters.unexpected_bytes = superpipe.waiting_bytes;
}

void superpipe_keep_locked(superpipe_peer_t *from, const superpipe_incoming_t *in)
{
    /* Early bytes follow those that are here. */
    const uint64_t more = in->offer.handle != 0 ? in->offer.early - in->bytes : 0;
    superpipe_unexpected_t *m = calloc(1, sizeof(*m) + in->bytes + more);

    if (m == NULL) {
        superpipe_break_locked(from, "memory is exhausted for a message that was not expected");
        return;
    }
    m->message.context = in->prefix.context;
    m->message.source = in->source;
    m->message.tag = in->tag;
    m->from = from;
    m->offer = in->offer;
    superpipe_counters.unexpected++;
    superpipe.waiting_bytes += SUPERPIPE_RECORD;
    hold_locked(m, in->data, in->bytes);
    superpipe_early_begin_locked(from, in, NULL, m);
    superpipe_match_keep(&superpipe.match, &m->message);
}

void superpipe_unexpected_free_locked(superpipe_unexpected_t *m)
{
    superpipe_peer_t *from = m->from;
    const uint64_t cost = m->held + superpipe_record(&m->offer);

    if (from->early.message == m)
        from->early.message = NULL;
    superpipe.waiting_bytes -= SUPERPIPE_RECORD + m->held;
    free(m);
    if (cost > 0)
        onic_account_freed(from->peer, from->account, cost);
}

void superpipe_discard_locked(superpipe_unexpected_t *m)
{
    if (m->offer.handle != 0 && !m->from->lost)
        superpipe_send_control_locked(m->from, SUPERPIPE_KIND_ACK, m->offer.handle, 0);
    superpipe_unexpected_free_locked(m);
}

/* ---- early bytes ----------------------------------------------------------------------------- */

void superpipe_early_begin_locked(superpipe_peer_t *from, const superpipe_incoming_t *in,
                                  superpipe_request_t *r, superpipe_unexpected_t *m)
{
    if (in->bytes < in->offer.early)
        from->early = (superpipe_early_t){in->bytes, in->offer.early - in->bytes, r, m};
}

void superpipe_early_take(superpipe_request_t *r, uint64_t at, const void *data, uint64_t bytes)
{
    const uint64_t taken = superpipe_transfer_takes_early(&r->state, at, bytes);

    superpipe_place(r, at, data, taken);
    r->state.moved += taken;
}

void superpipe_on_early_locked(superpipe_peer_t *p, const superpipe_incoming_t *in)
{
    superpipe_early_t e = p->early;

    if (in->value != e.at || in->bytes > e.left) {
        superpipe_break_locked(p, "a process has sent data that it did not announce");
        return;
    }
    onic_account_arrived(p->account, in->bytes);
    p->early.at += in->bytes;
    p->early.left -= in->bytes;
    if (p->early.left == 0)
        p->early = (superpipe_early_t){0};
    if (e.message != NULL) {
        hold_locked(e.message, in->data, in->bytes);
        return;
    }
    if (e.receive != NULL) {
        superpipe_early_take(e.receive, e.at, in->data, in->bytes);
        superpipe_finish_locked(e.receive);
    }
    onic_account_freed(p->peer, p->account, in->bytes);
}

void superpipe_early_deliver_locked(superpipe_request_t *r, superpipe_unexpected_t *m)
{
    superpipe_early_t *e = &m->from->early;

    superpipe_early_take(r, 0, m->data, m->held);
    if (e->message == m) {
        e->message = NULL;
        e->receive = r;
    }
}
