/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The receiver: messages find their receives. */
#include "pml_superpipe/protocols/process.h"

#include <stdlib.h>

#include "ompi/proc/proc.h"

#include "common/layout/pack.h"

_Static_assert(sizeof(superpipe_unexpected_t) + sizeof(superpipe_early_t) <= SUPERPIPE_RECORD,
               "a message is charged for its record");
_Static_assert(OMPI_ANY_SOURCE == SUPERPIPE_ANY_SOURCE && OMPI_ANY_TAG == SUPERPIPE_ANY_TAG,
               "wildcards are MPI's");

/* ---- delivery -------------------------------------------------------------------------------- */

static inline void place(superpipe_request_t *r, uint64_t at, const void *data, uint64_t bytes)
{
    if (bytes == 0)
        return;
    if (onic_layout_is_contig(&r->layout)) {
        onic_copy_bytes(r->base + r->layout.offset + at, data, bytes);
        return;
    }
    if (!r->placing || r->cursor.pos != at)
        onic_cursor_init(&r->cursor, &r->layout, at);
    r->placing = true;
    (void)onic_unpack(&r->cursor, r->base, data, bytes);
}

void superpipe_place(superpipe_request_t *r, uint64_t at, const void *data, uint64_t bytes)
{
    place(r, at, data, bytes);
}

/** The message for a receive is known, and how long it is. */
static void fit(superpipe_request_t *r, superpipe_peer_t *from, int32_t source, int32_t tag,
                uint64_t length, uint64_t early)
{
    r->peer = from;
    r->super.req_status.MPI_SOURCE = source;
    r->super.req_status.MPI_TAG = tag;
    if (superpipe_transfer_fit(&r->state, length, early))
        r->error = MPI_ERR_TRUNCATE;
}

/** A short message: that is all of it. */
static void deliver_locked(superpipe_request_t *r, superpipe_peer_t *from,
                           const superpipe_offer_t *offer, const void *data)
{
    place(r, 0, data, r->state.wanted);
    superpipe_transfer_took(&r->state, r->state.wanted);
    superpipe_counters.messages[SUPERPIPE_SHORT]++;
    superpipe_counters.bytes[SUPERPIPE_SHORT] += r->state.wanted;
    if (offer->handle != 0)
        superpipe_say_locked(from, SUPERPIPE_DONE, offer->handle, 0);
}

static void unkeep_locked(superpipe_unexpected_t *m)
{
    if (m->early != NULL)
        m->early->message = NULL;
    const uint64_t early = m->announced ? m->held : 0;
    superpipe_peer_t *from = m->from;
    const uint64_t cost = m->paid + early;

    superpipe.waiting_bytes -= SUPERPIPE_RECORD + m->held;
    free(m);
    if (cost > 0)
        superpipe_freed_locked(from, cost);
}

/** A message that waited has found its receive, and ends here. The receive may be over then. */
static void deliver_kept_locked(superpipe_request_t *r, superpipe_unexpected_t *m)
{
    const superpipe_announced_t a = {
        .offer = &m->offer, .pins = m->pins, .synchronous = m->synchronous};

    fit(r, m->from, m->message.source, m->message.tag, m->offer.length, m->total);
    if (m->announced) {
        superpipe_early_deliver_locked(r, m);
        superpipe_fetch_locked(r, m->from, &a);
    } else {
        deliver_locked(r, m->from, &m->offer, m->data);
    }
    unkeep_locked(m);
}

void superpipe_discard_locked(superpipe_unexpected_t *m)
{
    if (m->offer.handle != 0 && !m->from->lost)
        superpipe_say_locked(m->from, SUPERPIPE_DONE, m->offer.handle, 0);
    unkeep_locked(m);
}

/* ---- receives -------------------------------------------------------------------------------- */

/** Is it known that the only sender of a receive is lost? */
static bool is_lost(const superpipe_request_t *r)
{
    const ompi_proc_t *proc;
    const superpipe_peer_t *p;

    if (r->rank == OMPI_ANY_SOURCE || onic_wire_losses() == 0)
        return false;
    proc = ompi_group_peer_lookup_existing(r->comm->c_remote_group, r->rank);
    p = proc != NULL ? proc->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_PML] : NULL;
    return p != NULL && p->lost;
}

void superpipe_receive_start(superpipe_request_t *r)
{
    superpipe_channel_t *c = (superpipe_channel_t *)r->comm->c_pml_comm;
    bool over = false;

    onic_wire_lock();
    superpipe_message_t *m = superpipe_match_post(&c->match.match, &r->receive, r->rank, r->tag);
    if (m != NULL) {
        deliver_kept_locked(r, (superpipe_unexpected_t *)m);
        over = superpipe_end_locked(r);
    } else if (is_lost(r) && superpipe_match_cancel(&c->match.match, &r->receive)) {
        r->error = ONIC_ERR_PROC_FAILED;
        superpipe_transfer_break(&r->state);
        over = superpipe_end_locked(r);
    } else if (superpipe.heard != NULL) {
        superpipe_want_locked(c, r->rank, r->tag, false);
    }
    onic_wire_unlock();
    if (over)
        superpipe_complete(r);
}

bool superpipe_may_take_locked(const superpipe_channel_t *c, const superpipe_peer_t *from)
{
    return superpipe.heard == NULL && !from->lost && from->number != 0 &&
           superpipe_comm_may_take(&c->match);
}

bool superpipe_take_locked(superpipe_channel_t *c, superpipe_peer_t *from,
                           const superpipe_waiting_t *w)
{
    onic_queue_message_t m;
    superpipe_incoming_t in;

    if (!superpipe_may_take_locked(c, from) || !onic_peer_next_message(from->wire, &m) ||
        m.id != ONIC_AM_FEW ||
        !superpipe_decode_few(&in, m.header, m.header_len, m.payload, m.len) ||
        in.prefix.sender != from->number ||
        !superpipe_comm_take(&c->match, &w->taker, &from->sender, &in))
        return false;
    if (in.bytes > 0)
        onic_copy_bytes(w->buffer, in.data, in.bytes);
    onic_queue_take(onic_peer_incoming(from->wire));
    superpipe_counters.messages[SUPERPIPE_SHORT]++;
    superpipe_counters.bytes[SUPERPIPE_SHORT] += in.bytes;
    if (w->status != MPI_STATUS_IGNORE) {
        w->status->MPI_SOURCE = in.source;
        w->status->MPI_TAG = in.tag;
        w->status->_ucount = in.bytes;
        w->status->_cancelled = 0;
    }
    superpipe_freed_locked(from, SUPERPIPE_RECORD + in.bytes);
    return true;
}

void superpipe_receive_message(superpipe_request_t *r, superpipe_unexpected_t *m)
{
    bool over;

    onic_wire_lock();
    deliver_kept_locked(r, m);
    over = superpipe_end_locked(r);
    onic_wire_unlock();
    if (over)
        superpipe_complete(r);
}

/* ---- messages -------------------------------------------------------------------------------- */

void superpipe_hold_locked(superpipe_unexpected_t *m, uint64_t at, const void *data, uint64_t bytes)
{
    onic_copy_bytes(m->data + at, data, bytes);
    m->held += bytes;
    superpipe.waiting_bytes += bytes;
    if (superpipe.waiting_bytes > superpipe_counters.unexpected_bytes)
        superpipe_counters.unexpected_bytes = superpipe.waiting_bytes;
}

/** Makes a record of a message that has to wait. */
static superpipe_unexpected_t *keep_locked(superpipe_peer_t *from, const superpipe_incoming_t *in,
                                           uint64_t paid)
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
    m->offer = in->offer;
    m->announced = in->prefix.kind == SUPERPIPE_ANNOUNCE;
    m->synchronous = (in->prefix.flags & SUPERPIPE_SYNCHRONOUS) != 0;
    m->pins = in->prefix.how;
    m->total = in->early;
    m->paid = paid;
    superpipe_counters.unexpected++;
    superpipe.waiting_bytes += SUPERPIPE_RECORD;
    superpipe_hold_locked(m, 0, in->data, in->bytes);
    return m;
}

/** A message that waited, or was parked, has found a receive that was posted. */
static void deliver_to_posted_locked(superpipe_receive_t *receive, superpipe_message_t *m)
{
    superpipe_request_t *r = superpipe_request_of(receive);

    deliver_kept_locked(r, (superpipe_unexpected_t *)m);
    superpipe_settle_locked(r);
}

/** Those of the source that came too early and have their turn now. */
static void release_locked(superpipe_channel_t *c, int32_t source)
{
    superpipe_receive_t *receive;
    superpipe_message_t *m;

    while (c->match.all_held.head != NULL &&
           (m = superpipe_comm_next(&c->match, source, &receive)) != NULL)
        deliver_to_posted_locked(receive, m);
}

static void matched_locked(superpipe_request_t *r, superpipe_peer_t *from,
                           const superpipe_incoming_t *in, uint64_t paid)
{
    const superpipe_announced_t a = {.offer = &in->offer,
                                     .pins = in->prefix.how,
                                     .synchronous =
                                         (in->prefix.flags & SUPERPIPE_SYNCHRONOUS) != 0};

    fit(r, from, in->source, in->tag, in->offer.length, in->early);
    if (in->prefix.kind != SUPERPIPE_ANNOUNCE) {
        deliver_locked(r, from, &in->offer, in->data);
        superpipe_transfer_came(&r->state);
        superpipe_over_locked(r);
    } else if (in->early == 0 ||
               superpipe_early_begin_locked(from, in->offer.handle, in->early, r, NULL)) {
        superpipe_fetch_locked(r, from, &a);
    } else {
        superpipe_break_locked(from, "memory is exhausted for a message");
        superpipe_fail_locked(r, MPI_ERR_NO_MEM);
    }
    if (paid > 0)
        superpipe_freed_locked(from, paid);
}

ONIC_INLINE void on_envelope_locked(superpipe_peer_t *from, const superpipe_incoming_t *in)
{
    const bool unpaid = (in->prefix.flags & SUPERPIPE_UNPAID) != 0;
    const uint64_t paid = unpaid ? 0 : SUPERPIPE_RECORD + in->bytes;
    superpipe_comm_t *c = superpipe_comms_find(&superpipe.comms, in->prefix.context);
    superpipe_receive_t *receive;
    superpipe_unexpected_t *m;

    if (unpaid ? !from->heard.called : !superpipe_pool_arrived(&from->sender, paid)) {
        superpipe_break_locked(from, "a process has sent more than it may");
        return;
    }
    superpipe_counters.unpaid += unpaid;
    if ((in->prefix.flags & SUPERPIPE_NO_CREDIT) != 0)
        superpipe_asked_locked(from, SUPERPIPE_RECORD + in->offer.length);
    if (c == NULL) {
        m = keep_locked(from, in, paid);
        if (m != NULL)
            superpipe_comms_park(&superpipe.comms, &m->message);
        return;
    }
    switch (superpipe_comm_arrive(c, in->source, in->tag, in->sequence, &receive)) {
    case SUPERPIPE_MATCHED:
        matched_locked(superpipe_request_of(receive), from, in, paid);
        break;
    case SUPERPIPE_WAITS:
        m = keep_locked(from, in, paid);
        if (m == NULL)
            return;
        superpipe_comm_keep(c, &m->message);
        break;
    case SUPERPIPE_REFUSED:
        superpipe_break_locked(from, "a process has sent a message that nobody sends");
        return;
    }
    release_locked((superpipe_channel_t *)c, in->source);
}

void superpipe_on_envelope_locked(superpipe_peer_t *from, const superpipe_incoming_t *in)
{
    on_envelope_locked(from, in);
}

void superpipe_few_arrived(const void *header, size_t header_len, const void *data, size_t len,
                           onic_rndv_t *rndv)
{
    superpipe_incoming_t in;

    /* Whoever sends anything else with this identifier cannot be told from others. */
    if (rndv != NULL || !superpipe_decode_few(&in, header, header_len, data, len) ||
        in.prefix.sender - 1 >= superpipe.npeers ||
        superpipe.numbered[in.prefix.sender - 1] == NULL)
        return;
    on_envelope_locked(superpipe.numbered[in.prefix.sender - 1], &in);
}

void superpipe_unpark_locked(superpipe_channel_t *c)
{
    superpipe_message_t *message;

    while ((message = superpipe_comms_unpark(&superpipe.comms, c->match.context)) != NULL) {
        superpipe_unexpected_t *m = (superpipe_unexpected_t *)message;
        const int32_t source = message->source;
        superpipe_receive_t *receive;

        switch (
            superpipe_comm_arrive(&c->match, source, message->tag, message->sequence, &receive)) {
        case SUPERPIPE_MATCHED:
            deliver_to_posted_locked(receive, message);
            break;
        case SUPERPIPE_WAITS:
            superpipe_comm_keep(&c->match, message);
            break;
        case SUPERPIPE_REFUSED:
            superpipe_break_locked(m->from, "a process has sent a message that nobody sends");
            unkeep_locked(m);
            continue;
        }
        release_locked(c, source);
    }
}
