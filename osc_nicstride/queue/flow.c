/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Sending what is queued: an operation that is too long for one message, or has to wait, is
 *  sent in fragments, messages each of which describes its own bytes of the target. */
#include "osc_nicstride/queue/flow.h"

#include "osc_nicstride/queue/describe.h"
#include "osc_nicstride/queue/operation.h"
#include "osc_nicstride/queue/send.h"
#include "osc_nicstride/window/control.h"
#include "osc_nicstride/window/op.h"

/** A message being built: header, then the encoded layout. */
typedef struct fragment {
    nicstride_msg_t msg;
    unsigned char layout[8192];
} fragment_t;

_Static_assert(offsetof(fragment_t, layout) == sizeof(nicstride_msg_t), "layout follows header");

/** True if the origin has data for the next fragment; otherwise it only fetches. No fragment has
 *  bytes of both kinds. */
static bool is_given(const nicstride_op_t *op)
{
    return op->sends_data && op->sent < op->origin.size;
}

static uint64_t fragment_bytes(const nicstride_op_t *op, uint64_t room)
{
    const uint64_t base = nicstride_base(op->peer->module, op->peer->rank) + (uint64_t)op->disp;
    const uint64_t most = is_given(op) ? op->origin.size - op->sent : op->size;
    const uint64_t n = nicstride_fragment(&op->target, base, op->sent, room, op->granule);

    return n < most ? n : most;
}

static size_t lesser(size_t a, uint64_t b)
{
    return b < a ? (size_t)b : a;
}

/** The bytes that the target can keep of a fragment, now or soon. */
static uint64_t room_at(const nicstride_peer_t *p)
{
    const uint64_t left = onic_credit_left(&p->account->credit, 0);

    return left > NICSTRIDE_KEPT_MAX ? left : NICSTRIDE_KEPT_MAX;
}

/** The most bytes of a fragment. */
static size_t longest(const nicstride_op_t *op)
{
    size_t most =
        nicstride_frag_max_locked(op->peer, sizeof(nicstride_framed_t) + op->size - op->sent);

    if (op->type == NICSTRIDE_MSG_GET_ACC)
        most = lesser(most, room_at(op->peer) - NICSTRIDE_KEPT_USE);
    return nicstride_op_wants_reply(op) ? lesser(most, NICSTRIDE_GET_PIECE) : most;
}

/** The room in such a fragment for a slice of an irregular layout. */
static size_t slice_room(const nicstride_op_t *op, size_t frag, size_t most)
{
    const uint64_t kept =
        (room_at(op->peer) - NICSTRIDE_KEPT_USE - NICSTRIDE_KEPT_ANSWER) / NICSTRIDE_SLICE_GROWTH;

    most = lesser(most, frag / NICSTRIDE_SLICE_SHARE);
    most = lesser(most, onic_header_max - sizeof(nicstride_msg_t));
    return op->type == NICSTRIDE_MSG_GET ? lesser(most, kept) : most;
}

/** Puts the target layout into the fragment. `*data_p` gets the bytes of data that go along,
 *  limited to `room`; if `room` is 0, to the rest of a fragment. */
static int put_layout(nicstride_op_t *op, fragment_t *f, uint64_t room, uint64_t *data_p)
{
    const size_t frag = longest(op), left = frag - sizeof(f->msg);
    const size_t cap = slice_room(op, frag, sizeof(f->layout));
    size_t used = 0;

    if (nicstride_describe_whole(op->peer, &op->target, &f->msg, cap, left - cap)) {
        *data_p = fragment_bytes(op, room != 0 ? room : left - f->msg.layout_len);
        return OMPI_SUCCESS;
    }
    if (op->slice.pos != op->sent)
        onic_cursor_init(&op->slice, &op->target, op->sent);
    room = fragment_bytes(op, room != 0 ? room : left - cap);
    if (onic_layout_encode_slice(&op->slice, room, op->granule, f->layout, cap, &used, data_p) !=
        ONIC_LAYOUT_OK)
        return OMPI_ERROR;
    f->msg.flags |= NICSTRIDE_MSG_SLICE;
    f->msg.layout_len = (uint32_t)used;
    return OMPI_SUCCESS;
}

/** Describes the next fragment: its bytes of the target, and the data that it carries. */
static int describe(nicstride_op_t *op, fragment_t *f, onic_payload_t *payload, uint64_t *n_p)
{
    nicstride_msg_init(&f->msg, op->type, op->peer->win, op->peer->me);
    f->msg.disp = op->disp;
    f->msg.dtype = op->dtype;
    f->msg.offset = op->sent;
    f->msg.handle = op->handle;
    payload->len = 0;
    if (op->type == NICSTRIDE_MSG_CAS) {
        *n_p = op->size;
        f->msg.len = payload->len = 2 * op->size;
        payload->base = op->cas;
        payload->cursor.layout = NULL;
        return OMPI_SUCCESS;
    }
    const int rc = put_layout(op, f, op->type == NICSTRIDE_MSG_GET ? NICSTRIDE_GET_PIECE : 0, n_p);
    f->msg.len = *n_p;
    f->msg.op = op->op;
    if (op->sends_data && !is_given(op))
        f->msg.op = (uint16_t)nicstride_op_index(&ompi_mpi_op_no_op.op);
    if (rc == OMPI_SUCCESS && is_given(op))
        nicstride_set_payload(payload, &op->origin, op->origin_base, op->sent, *n_p);
    return rc;
}

static void fragment_sent_cb(void *arg, int status)
{
    nicstride_peer_t *p = ((nicstride_op_t *)arg)->peer;

    p->flow.posting--;
    nicstride_op_sent_cb(arg, status);
    if (p->queue.length > 0)
        onic_transport_ask(ONIC_AM_OSC, ONIC_LOCKED);
}

/** True if the message may wait for others. Over a network a message costs many times as much as a
 *  few bytes, and in active target nobody waits for the first message before the epoch closes. */
static bool waits_for_others(const nicstride_peer_t *p)
{
    return p->local < 0 && nicstride_is_active(p->module);
}

/** Sends a message; as nicstride_send_locked. One that is all of a short operation is copied. */
static int send_message(nicstride_op_t *op, fragment_t *f, const onic_payload_t *data)
{
    nicstride_peer_t *p = op->peer;
    const bool far = waits_for_others(p) && !nicstride_op_wants_reply(op);
    unsigned char bytes[NICSTRIDE_PIECE_MAX];

    if (op->sent < op->size || f->msg.offset > 0 || op->size > nicstride_inline_max(far) ||
        f->msg.layout_len > NICSTRIDE_INLINE_LAYOUT || data->len > NICSTRIDE_INLINE_MAX)
        return nicstride_send_locked(p, &f->msg, data->len > 0 ? data : NULL, fragment_sent_cb, op);
    const size_t len = nicstride_compose(bytes, &f->msg, data);
    nicstride_post_locked(p, bytes, len, waits_for_others(p));
    return 1;
}

/** Sends the next message of a queued operation: 1, or 0 if there is no credit for it; else an
 *  error. */
static int send_fragment(nicstride_op_t *op)
{
    nicstride_peer_t *p = op->peer;
    const onic_cursor_t slice = op->slice;
    onic_payload_t payload;
    fragment_t f;
    uint64_t n = 0;
    int rc = describe(op, &f, &payload, &n);

    if (rc != OMPI_SUCCESS)
        return rc;
    const uint64_t kept = nicstride_msg_kept(&f.msg);
    if (!nicstride_may_send_locked(p, kept)) {
        op->slice = slice;
        return 0;
    }
    /* A single message is likely to be flushed at once, so it asks for its acknowledgement itself;
     * in active target only if that comes with a reply.
     * A request is an exception: its wait does not poll the reply line, which would hold the data
     * of a whole operation. */
    if (op->sent + n == op->size && nicstride_tx_may_ask(&p->flow.tx) && op->request == NULL &&
        (nicstride_op_wants_reply(op) ? op->sent == 0 : !nicstride_is_active(p->module)))
        f.msg.count = p->flow.tx.asked = p->flow.tx.sent + 1;
    op->in_flight++;
    op->sent += n;
    rc = send_message(op, &f, &payload);
    p->flow.posting += rc == 0;
    if (rc != 0)
        op->in_flight--;
    if (rc < 0)
        return rc;
    nicstride_count_sent_locked(p, kept);
    return 1;
}

/* ---- the queue ------------------------------------------------------------------------------- */

/** True if the first operation of the queue may go on. It must not pass one that a flush waits for,
 *  since the flush would never end while other threads keep sending, unless a local flush waits for
 *  this operation. */
static bool may_send(const nicstride_peer_t *p)
{
    const nicstride_op_t *op = STAILQ_FIRST(&p->queue.waiting);

    return !(p->queue.flushing && op->number > p->queue.goal && op->number > p->queue.urgent);
}

void nicstride_pump_queue_locked(nicstride_peer_t *p)
{
    nicstride_look_locked(p);
    /* Nothing is sent to a failed peer, and what is queued for it does not wait for its turn. */
    while (!STAILQ_EMPTY(&p->queue.waiting) && (p->failed || may_send(p))) {
        nicstride_op_t *op = STAILQ_FIRST(&p->queue.waiting);
        const int rc = p->failed ? OMPI_ERR_UNREACH : send_fragment(op);

        if (rc == 0)
            break;
        if (rc < 0)
            nicstride_op_fail(op);
        if (op->sent == op->size) {
            STAILQ_REMOVE_HEAD(&p->queue.waiting, of_queue);
            if (--p->queue.length == 0)
                LIST_REMOVE(p, queue.of_queueing);
            nicstride_op_finish_locked(op);
        }
    }
}

void nicstride_pump_all_locked(void)
{
    for (nicstride_peer_t *p = LIST_FIRST(&nicstride_queueing), *next; p != NULL; p = next) {
        next = LIST_NEXT(p, queue.of_queueing);
        nicstride_pump_queue_locked(p);
    }
}

/* ---- acknowledgements ------------------------------------------------------------------------ */

void nicstride_ask_locked(nicstride_peer_t *p, uint64_t goal)
{
    const nicstride_op_t *next = STAILQ_FIRST(&p->queue.waiting);
    uint64_t upto;

    if ((next == NULL || (next->number > goal && next->sent == 0)) &&
        nicstride_tx_ask(&p->flow.tx, &upto))
        nicstride_send_note_locked(p, NICSTRIDE_MSG_FLUSH, 0, upto);
}

void nicstride_acknowledged_locked(nicstride_peer_t *p, uint64_t count, int error)
{
    nicstride_tx_ack(&p->flow.tx, count, nicstride_error_class(error));
    nicstride_pump_locked(p);
}

void nicstride_take_answer_locked(nicstride_peer_t *p)
{
    nicstride_place_answer_locked(p);
    nicstride_acknowledged_locked(p, p->flow.reply_line_seen, 0);
}

void nicstride_peer_end_locked(nicstride_peer_t *p)
{
    __atomic_store_n(&p->failed, true, __ATOMIC_RELAXED);
    nicstride_drop_waiting_locked(p);
    nicstride_ops_fail_locked(p);
    nicstride_tx_forget(&p->flow.tx);
}
