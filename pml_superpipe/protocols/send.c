/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The sender: short messages, announcements, and data that was asked for. */
#include "pml_superpipe/protocols/process.h"

#include <stdlib.h>
#include <string.h>

#include "common/layout/pack.h"

/** Of these, how many go before they are asked for. */
#define EARLY_FRAGMENTS 8

/** Microseconds away from MPI after which the server thread sees to copies of messages. */
#define SERVER_IDLE_USEC 1000

/** Of a message to oneself, which has no transport that says how much it takes. */
#define LOOP_FRAGMENT 8192

static superpipe_envelope_t envelope(superpipe_kind_t kind, const superpipe_channel_t *c, int tag,
                                     unsigned flags, uint32_t sequence)
{
    return (superpipe_envelope_t){.prefix = {.sender = onic_wire_me(),
                                             .kind = (uint8_t)kind,
                                             .flags = (uint8_t)flags,
                                             .context = (uint32_t)c->match.context},
                                  .source = ompi_comm_rank(c->comm),
                                  .tag = tag,
                                  .sequence = sequence};
}

static size_t fragment_locked(superpipe_peer_t *p)
{
    if (p->fragment == 0) {
        const size_t most = p->self ? LOOP_FRAGMENT : onic_peer_message_max(p->wire, ONIC_AM_PML);
        p->fragment = most > 2 * SUPERPIPE_HEADER_MAX ? most - SUPERPIPE_HEADER_MAX : 0;
    }
    return p->fragment;
}

static bool is_short_locked(superpipe_peer_t *p, uint64_t length)
{
    return superpipe_is_short(length, superpipe.params.eager, fragment_locked(p),
                              (superpipe_protocol_t)superpipe.params.protocol);
}

/** May a message with so much payload go as a whole? None goes before those that are kept. */
static bool has_credit(const superpipe_peer_t *p, uint64_t payload)
{
    return superpipe_backlog_is_empty(&p->backlog) &&
           p->credit.limit - p->credit.sent >= SUPERPIPE_RECORD + payload;
}

/* ---- short messages -------------------------------------------------------------------------- */

onic_sent_t superpipe_send_now_locked(superpipe_channel_t *c, superpipe_peer_t *p, int rank,
                                      int tag, const void *base, const onic_layout_t *layout)
{
    uint32_t *sequence = &c->match.sent[rank];
    onic_payload_t data;
    onic_sent_t sent;

    if (p->me == 0 || !is_short_locked(p, layout->size) || !has_credit(p, layout->size))
        return ONIC_SENT_NOT;
    const superpipe_few_t few = {.sender = p->me,
                                 .context = (uint32_t)c->match.context,
                                 .source = ompi_comm_rank(c->comm),
                                 .tag = tag,
                                 .sequence = *sequence};
    data.base = base;
    data.len = layout->size;
    if (onic_layout_is_contig(layout)) {
        data.base = (const char *)base + layout->offset;
        data.cursor.layout = NULL;
    } else {
        onic_cursor_init(&data.cursor, layout, 0);
    }
    sent = onic_peer_send_now(p->wire, ONIC_AM_FEW, &few, sizeof(few), &data);
    if (sent != ONIC_SENT_NOT) {
        p->credit.sent += SUPERPIPE_RECORD + layout->size;
        ++*sequence;
    }
    return sent;
}

static void send_fragments(superpipe_request_t *r);

/** The wire has a header or a fragment no more: the next fragment may have its place. Of a header,
 * too: the receiver may have asked before it was told here that the announcement has left, and what
 * it was given then may have left at once. */
static void fragment_cb(void *arg, int status)
{
    superpipe_request_t *r = arg;

    superpipe_operation_ended(r, status);
    if (r->state.done)
        return;
    send_fragments(r);
    superpipe_settle_locked(r);
}

/** Sends a header, and the data where it is short. Where that fails nothing has been sent. */
static int send_header(superpipe_request_t *r, const void *header, size_t len, bool data)
{
    const onic_payload_t payload = {.base = r->base, .cursor = r->cursor, .len = r->state.length};
    const int rc = onic_peer_send(r->peer->wire, ONIC_AM_PML, header, len,
                                  data && payload.len > 0 ? &payload : NULL, 0, fragment_cb, r);

    if (rc == 0)
        superpipe_transfer_started(&r->state);
    return rc;
}

static int send_short(superpipe_request_t *r, const superpipe_channel_t *c, uint32_t sequence)
{
    const bool waits = r->mode == MCA_PML_BASE_SEND_SYNCHRONOUS;
    const superpipe_envelope_t e =
        envelope(SUPERPIPE_EAGER, c, r->tag, waits ? SUPERPIPE_SYNCHRONOUS : 0, sequence);
    unsigned char header[sizeof(e) + sizeof(r->handle)];

    memcpy(header, &e, sizeof(e));
    if (waits && (r->handle = onic_handle_new(&superpipe.handles, r)) == 0)
        return OMPI_ERR_OUT_OF_RESOURCE;
    memcpy(header + sizeof(e), &r->handle, sizeof(r->handle));
    superpipe_transfer_sent_whole(&r->state, waits);
    onic_cursor_init(&r->cursor, &r->layout, 0);
    return send_header(r, header, sizeof(e) + (waits ? sizeof(r->handle) : 0), true);
}

/* ---- announcements --------------------------------------------------------------------------- */

/** Bytes that follow the announcement by themselves, and are paid for. */
static uint32_t early_locked(superpipe_request_t *r)
{
    const size_t fragment = fragment_locked(r->peer);
    const uint64_t fragments = (uint64_t)fragment * EARLY_FRAGMENTS;
    const uint64_t most = superpipe.params.early < fragments ? superpipe.params.early : fragments;
    const superpipe_case_t c = superpipe_case_locked(r);
    const uint64_t bytes = superpipe_early(&c, superpipe_link_locked(&c), fragment, most,
                                           (superpipe_protocol_t)superpipe.params.protocol);

    return bytes > 0 && superpipe_credit_take(&r->peer->credit, bytes) ? (uint32_t)bytes : 0;
}

static int announce(superpipe_request_t *r, const superpipe_channel_t *c, uint32_t sequence,
                    unsigned flags, uint32_t early)
{
    const bool one_piece = onic_layout_is_contig(&r->layout);
    superpipe_envelope_t e = envelope(SUPERPIPE_ANNOUNCE, c, r->tag, flags, sequence);
    superpipe_offer_t offer = {.length = r->state.length,
                               .block = superpipe_mean_block(&r->layout)};
    unsigned char header[sizeof(e) + sizeof(offer)];

    if (one_piece)
        offer.address = (uint64_t)(uintptr_t)(r->base + r->layout.offset);
    e.early = early;
    e.prefix.how = (uint8_t)(UINT8_MAX * superpipe_pin_share_locked(r));
    r->handle = offer.handle = onic_handle_new(&superpipe.handles, r);
    if (r->handle == 0)
        return OMPI_ERR_OUT_OF_RESOURCE;
    superpipe_counters.announced++;
    superpipe_counters.no_credit += (flags & SUPERPIPE_NO_CREDIT) != 0;
    memcpy(header, &e, sizeof(e));
    memcpy(header + sizeof(e), &offer, sizeof(offer));
    return send_header(r, header, sizeof(header), false);
}

/** Copies the data of a short message that cannot go as a whole, so that its sender need not wait:
 *  many programs count on that. A request without a user keeps the copy. NULL where too much is
 *  copied already: then the sender waits. */
static superpipe_request_t *copy_out(superpipe_request_t *r)
{
    const uint64_t length = r->state.length, cost = sizeof(*r) + length;
    superpipe_request_t *copy;
    void *bounce;

    if (r->internal || r->mode == MCA_PML_BASE_SEND_SYNCHRONOUS ||
        superpipe.buffered + cost > superpipe.params.buffered ||
        (bounce = malloc(length > 0 ? length : 1)) == NULL)
        return NULL;
    copy = superpipe_request_copy(r, bounce, false);
    if (copy == NULL) {
        free(bounce);
        return NULL;
    }
    superpipe.buffered += cost;
    superpipe_request_begin(copy);
    superpipe_enter_locked(copy, r->peer);
    superpipe_transfer_sent_whole(&r->state, false);
    return copy;
}

/* ---- what is kept ---------------------------------------------------------------------------- */

static void tell_kept_locked(superpipe_peer_t *p)
{
    const superpipe_kept_t *k;

    while ((k = superpipe_backlog_tell(&p->backlog)) != NULL)
        superpipe_say_of_locked(p, SUPERPIPE_KEPT, k->context, k->number,
                                superpipe_named(k->source, k->tag));
}

/** Keeps a message until there is credit for its header, or the receiver calls for it. */
static void keep_locked(superpipe_request_t *r)
{
    const superpipe_channel_t *c = (superpipe_channel_t *)r->comm->c_pml_comm;
    superpipe_backlog_t *b = &r->peer->backlog;

    superpipe.backlogs += superpipe_backlog_is_empty(b);
    superpipe_counters.kept++;
    superpipe_backlog_add(b, &r->kept, (uint32_t)c->match.context, ompi_comm_rank(c->comm), r->tag);
    tell_kept_locked(r->peer);
}

static bool send_if_paid_locked(superpipe_request_t *r, bool called, int *rc_p);
static int error_of(int rc);

static void send_kept_locked(superpipe_kept_t *k)
{
    superpipe_request_t *r =
        (superpipe_request_t *)((char *)k - offsetof(superpipe_request_t, kept));
    int rc;

    (void)send_if_paid_locked(r, true, &rc);
    if (rc < 0)
        superpipe_fail_locked(r, error_of(rc));
    else
        superpipe_settle_locked(r);
}

/** Sends what is called for, and what there is credit for. */
static void release_locked(superpipe_peer_t *p)
{
    superpipe_backlog_t *b = &p->backlog;
    superpipe_kept_t *k;

    if (superpipe_backlog_is_empty(b))
        return;
    while ((k = superpipe_backlog_take_called(b)) != NULL)
        send_kept_locked(k);
    while (p->credit.limit - p->credit.sent >= SUPERPIPE_RECORD &&
           (k = superpipe_backlog_take(b)) != NULL)
        send_kept_locked(k);
    if (superpipe_backlog_is_empty(b)) {
        superpipe.backlogs--;
        superpipe_say_locked(p, SUPERPIPE_GONE, 0, b->number);
    }
}

void superpipe_on_limit_locked(superpipe_peer_t *p, uint64_t limit)
{
    superpipe_credit_told(&p->credit, limit);
    release_locked(p);
}

void superpipe_on_call_locked(superpipe_peer_t *p, const superpipe_incoming_t *in)
{
    superpipe_backlog_answered(&p->backlog, in->value);
    release_locked(p);
    tell_kept_locked(p);
}

void superpipe_on_want_locked(superpipe_peer_t *p, const superpipe_incoming_t *in)
{
    superpipe_backlog_t *b = &p->backlog;

    if (superpipe_backlog_wanted(b, in->prefix.context, in->source, in->tag))
        release_locked(p);
    if (in->handle != 0)
        superpipe_say_locked(p, SUPERPIPE_GONE, 1, superpipe_backlog_is_empty(b) ? b->number : 0);
}

void superpipe_backlog_drop_locked(superpipe_peer_t *p)
{
    if (superpipe_backlog_is_empty(&p->backlog))
        return;
    superpipe.backlogs--;
    p->backlog = (superpipe_backlog_t){0};
}

/* ---- starts ---------------------------------------------------------------------------------- */

/** One that is too long to go with its envelope. */
static int start_long_locked(superpipe_request_t *r, const superpipe_channel_t *c,
                             uint32_t sequence)
{
    const bool waits = r->mode == MCA_PML_BASE_SEND_SYNCHRONOUS;
    const uint32_t early = early_locked(r);
    const int rc = announce(r, c, sequence, waits ? SUPERPIPE_SYNCHRONOUS : 0, early);

    if (rc < 0) {
        r->peer->credit.sent -= early;
    } else if (early > 0) {
        superpipe_transfer_begins_early(&r->state, early, waits);
        send_fragments(r);
    }
    return rc;
}

/** Sends a message, or its header alone, by credit, or, where it is `called` for, a header without.
 *  False where nothing may be sent. */
static bool send_if_paid_locked(superpipe_request_t *r, bool called, int *rc_p)
{
    superpipe_channel_t *c = (superpipe_channel_t *)r->comm->c_pml_comm;
    superpipe_credit_t *credit = &r->peer->credit;
    const uint32_t sequence = c->match.sent[r->rank];
    const bool is_short = is_short_locked(r->peer, r->state.length);
    const unsigned flags = is_short ? SUPERPIPE_NO_CREDIT : 0;

    if (is_short && superpipe_credit_take(credit, SUPERPIPE_RECORD + r->state.length))
        *rc_p = send_short(r, c, sequence);
    else if (superpipe_credit_take(credit, SUPERPIPE_RECORD))
        *rc_p = is_short ? announce(r, c, sequence, flags, 0) : start_long_locked(r, c, sequence);
    else if (called)
        *rc_p = announce(r, c, sequence, flags | SUPERPIPE_UNPAID, 0);
    else
        return false;
    if (*rc_p >= 0)
        c->match.sent[r->rank]++;
    return true;
}

static int start_locked(superpipe_request_t *r, superpipe_peer_t *p)
{
    const bool is_short = is_short_locked(p, r->state.length);
    superpipe_request_t *goes = r;
    int rc = 0;

    superpipe_enter_locked(r, p);
    if (is_short && !has_credit(p, r->state.length) && (goes = copy_out(r)) == NULL)
        goes = r;
    if (!superpipe_backlog_is_empty(&p->backlog) || !send_if_paid_locked(goes, false, &rc))
        keep_locked(goes);
    if (rc < 0 && goes != r)
        superpipe_fail_locked(goes, MPI_ERR_OTHER);
    /* The server thread sees to what its user does not wait for. */
    if (goes->internal || !superpipe_backlog_is_empty(&p->backlog))
        onic_wire_defer(ONIC_AM_PML);
    return rc;
}

static int error_of(int rc)
{
    return rc == OMPI_ERR_OUT_OF_RESOURCE ? MPI_ERR_NO_MEM : ONIC_ERR_PROC_FAILED;
}

void superpipe_send_start(superpipe_request_t *r, superpipe_peer_t *p)
{
    int rc = OMPI_ERR_UNREACH;
    bool over, helps;

    onic_wire_lock();
    /* The limit that it lacks may have come. */
    if (!has_credit(p, is_short_locked(p, r->state.length) ? r->state.length : 0))
        (void)onic_wire_poll_locked();
    if (!onic_peer_lost(p->wire))
        rc = start_locked(r, p);
    if (rc < 0) {
        r->error = error_of(rc);
        superpipe_transfer_break(&r->state);
    }
    over = superpipe_end_locked(r);
    /* Its user may not call MPI again before somebody has received it. */
    helps = superpipe.copies > 0 && !superpipe.helped;
    superpipe.helped = superpipe.helped || helps;
    onic_wire_unlock();
    if (helps)
        onic_wire_start_server(SERVER_IDLE_USEC);
    if (over)
        superpipe_complete(r);
}

void superpipe_send_leaves(superpipe_request_t *r, superpipe_peer_t *p)
{
    bool over;

    onic_wire_lock();
    superpipe_enter_locked(r, p);
    superpipe_transfer_sent_whole(&r->state, false);
    if (onic_peer_leaves(p->wire, fragment_cb, r) == 0)
        superpipe_transfer_started(&r->state);
    over = superpipe_end_locked(r);
    onic_wire_unlock();
    if (over)
        superpipe_complete(r);
}

/* ---- data in fragments ----------------------------------------------------------------------- */

static int send_data(superpipe_request_t *r, uint64_t bytes, unsigned flags)
{
    const bool early = r->state.moved < r->state.early;
    const superpipe_word_t w = {
        .prefix = {.sender = onic_wire_me(),
                   .kind = (uint8_t)(early ? SUPERPIPE_EARLY : SUPERPIPE_DATA)},
        .handle = early ? r->handle : r->theirs,
        .value = r->state.moved};
    onic_payload_t payload = {.base = r->base, .len = bytes};
    int rc;

    onic_cursor_init(&payload.cursor, &r->layout, r->state.moved);
    rc = onic_peer_send(r->peer->wire, ONIC_AM_PML, &w, sizeof(w), &payload, flags, fragment_cb, r);
    if (rc >= 0)
        superpipe_transfer_given(&r->state, bytes, rc == 0);
    return rc;
}

/** Gives fragments to the wire. Not all that there are, so that others get their turn. It may be
 * over then. */
static void send_fragments(superpipe_request_t *r)
{
    const bool meets = r->state.how == SUPERPIPE_BY_RENDEZVOUS && r->state.moved >= r->state.early;
    const uint64_t most = meets ? onic_peer_rndv_max(r->peer->wire) : fragment_locked(r->peer);
    uint64_t bytes;

    if (most == 0) {
        superpipe_fail_locked(r, ONIC_ERR_PROC_FAILED);
        return;
    }
    for (int n = 0; n < SUPERPIPE_FRAGMENTS; n++) {
        bytes = superpipe_transfer_fragment(&r->state, most);
        if (bytes == 0)
            break;
        if (send_data(r, bytes, meets ? ONIC_SEND_RNDV : 0) < 0) {
            superpipe_fail_locked(r, ONIC_ERR_PROC_FAILED);
            return;
        }
    }
    if (superpipe_transfer_lacks_turn(&r->state)) {
        r->state.queued = true;
        r->next_turn = superpipe.stream;
        superpipe.stream = r;
        onic_wire_defer(ONIC_AM_PML);
    }
}

int superpipe_stream_locked(void)
{
    superpipe_request_t *r = superpipe.stream;
    int events = 0;

    if (onic_wire_losses() != superpipe.losses)
        onic_wire_kick_mpi(ONIC_AM_PML);
    superpipe.stream = NULL;
    for (superpipe_request_t *next; r != NULL; r = next, events++) {
        next = r->next_turn;
        r->state.queued = false;
        send_fragments(r);
        superpipe_settle_locked(r);
    }
    /* What nobody waits for goes on without an MPI thread where there is a server thread. */
    return superpipe.backlogs + superpipe.copies > 0 ? -1 : events;
}

static bool answer_by_mover(superpipe_request_t *r, const uint8_t *bytes)
{
    onic_mover_end_t end = {.at = r->state.early,
                            .len = superpipe_transfer_rest(&r->state),
                            .base = r->base,
                            .done = superpipe_moved,
                            .arg = r};
    onic_ticket_t ticket;

    memcpy(&ticket, bytes, sizeof(ticket));
    /* A copy: early bytes may still wait to be packed. */
    if (ticket.len != end.len || onic_layout_dup(&end.layout, &r->layout) != ONIC_LAYOUT_OK)
        return false;
    if (onic_mover_answer_locked(r->peer->wire, &ticket, &end) != OMPI_SUCCESS) {
        onic_layout_fini(&end.layout);
        return false;
    }
    superpipe_transfer_moving(&r->state);
    return true;
}

void superpipe_on_ask_locked(superpipe_peer_t *p, const superpipe_incoming_t *in)
{
    superpipe_request_t *r = onic_handle_get(&superpipe.handles, in->handle);
    superpipe_answer_t answer = SUPERPIPE_ANSWER_REFUSED;

    if (r != NULL && r->peer == p)
        answer = superpipe_transfer_asked(&r->state, (superpipe_how_t)in->prefix.how, in->value,
                                          onic_layout_is_contig(&r->layout));
    if (answer != SUPERPIPE_ANSWER_REFUSED)
        r->theirs = in->ask.receive;
    if (answer == SUPERPIPE_ANSWER_FRAGMENTS) {
        send_fragments(r);
        superpipe_settle_locked(r);
        return;
    }
    if (answer == SUPERPIPE_ANSWER_SLOTS) {
        if (answer_by_mover(r, in->ask.ticket))
            return;
        superpipe_transfer_refused(&r->state);
    }
    superpipe_say_locked(p, SUPERPIPE_FAILED, in->ask.receive, 0);
}

void superpipe_on_done_locked(superpipe_peer_t *p, const superpipe_incoming_t *in)
{
    superpipe_request_t *r = onic_handle_get(&superpipe.handles, in->handle);

    if (r == NULL || r->peer != p)
        return;
    superpipe_transfer_finished(&r->state);
    superpipe_settle_locked(r);
}
