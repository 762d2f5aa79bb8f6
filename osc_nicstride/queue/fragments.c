/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Cutting queued operations into fragments, and sending these as credit allows.
 */
#include <string.h>

#include "osc_nicstride/window/control.h"
#include "osc_nicstride/queue/lazy_lock.h"
#include "osc_nicstride/queue/naming.h"
#include "osc_nicstride/queue/operation.h"
#include "osc_nicstride/queue/reply.h"
#include "osc_nicstride/queue/send.h"
#include "osc_nicstride/queue/start.h"
#include "osc_nicstride/window/state.h"
#include "osc_nicstride/window/op.h"

/** A message under construction: header, then the encoded layout. */
typedef struct fragment {
    nicstride_msg_t msg;
    unsigned char layout[8192];
} fragment_t;

/* Room for what comes back; wire lock. */
static nicstride_replies_t *const replies = &nicstride_component.replies;

_Static_assert(offsetof(fragment_t, layout) == sizeof(nicstride_msg_t), "layout follows header");

/** Does the origin have data for the next fragment? Else it is only fetched: then no fragment has
 *  bytes of both kinds. */
static bool is_given(const nicstride_op_t *op)
{
    return op->sends_data && op->sent < op->origin.size;
}

static uint64_t fragment_bytes(const nicstride_op_t *op, uint64_t room)
{
    const uint64_t base = nicstride_base(op->module, op->peer->rank) + (uint64_t)op->disp;
    const uint64_t most = is_given(op) ? op->origin.size - op->sent : op->size;
    const uint64_t n = nicstride_fragment(&op->target, base, op->sent, room, op->granule);

    return n < most ? n : most;
}

static size_t lesser(size_t a, uint64_t b)
{
    return b < a ? (size_t)b : a;
}

/** Most bytes of a fragment. What the target may have to put aside is no longer than its memory for
 *  this process, nor what comes back than ours, so that the bounds of both hold. */
static size_t longest(const nicstride_op_t *op)
{
    size_t most = nicstride_frag_max_locked(op->peer);

    if (op->type != NICSTRIDE_MSG_PUT && op->type != NICSTRIDE_MSG_GET)
        most = lesser(most, op->peer->quota->limit - NICSTRIDE_KEPT_USE);
    return nicstride_op_wants_reply(op) ? lesser(most, nicstride_reply_piece(replies)) : most;
}

/** Room in such a fragment for a slice of an irregular layout. */
static size_t slice_room(const nicstride_op_t *op, size_t frag, size_t most)
{
    const uint64_t kept = (op->peer->quota->limit - NICSTRIDE_KEPT_USE) / NICSTRIDE_SLICE_GROWTH;

    most = lesser(most, frag / NICSTRIDE_SLICE_SHARE);
    most = lesser(most, onic_wire_header_max() - sizeof(nicstride_msg_t));
    return op->type == NICSTRIDE_MSG_GET ? lesser(most, kept) : most;
}

/** Puts the target layout into the fragment; `*data_p` is how many bytes of data go along, for
 *  which there is `room`, or 0: what is left of a fragment. */
static int put_layout(nicstride_op_t *op, fragment_t *f, uint64_t room, uint64_t *data_p)
{
    const size_t frag = longest(op);
    size_t used = 0, cap;

    if (onic_layout_is_contig(&op->target)) {
        f->msg.disp = op->disp + op->target.offset;
        *data_p = fragment_bytes(op, room != 0 ? room : frag - sizeof(f->msg));
        return OMPI_SUCCESS;
    }
    if (op->target.nruns == 0) {
        if (op->encoded_len == 0 &&
            onic_layout_encode(&op->target, op->encoded, sizeof(op->encoded), &op->encoded_len) !=
                ONIC_LAYOUT_OK)
            return OMPI_ERROR;
        memcpy(f->layout, op->encoded, op->encoded_len);
        f->msg.layout_len = (uint32_t)op->encoded_len;
        *data_p = fragment_bytes(op, room != 0 ? room : frag - sizeof(f->msg) - op->encoded_len);
        return OMPI_SUCCESS;
    }
    used = nicstride_naming_describe_locked(op->peer, &op->target, f->layout);
    if (used > 0) {
        f->msg.layout_len = (uint32_t)used;
        f->msg.flags |= NICSTRIDE_MSG_NAMED;
        *data_p = fragment_bytes(op, room != 0 ? room : frag - sizeof(f->msg) - used);
        return OMPI_SUCCESS;
    }
    if (op->slice.pos != op->sent)
        onic_cursor_init(&op->slice, &op->target, op->sent);
    cap = slice_room(op, frag, sizeof(f->layout));
    room = fragment_bytes(op, room != 0 ? room : frag - sizeof(f->msg) - cap);
    if (onic_layout_encode_slice(&op->slice, room, op->granule, f->layout, cap, &used, data_p) !=
        ONIC_LAYOUT_OK)
        return OMPI_ERROR;
    f->msg.layout_len = (uint32_t)used;
    f->msg.flags |= NICSTRIDE_MSG_SLICE;
    return OMPI_SUCCESS;
}

/** How much may be asked for at once; 0: what fits in a fragment. */
static uint64_t piece_limit(const nicstride_op_t *op)
{
    if (op->rndv)
        return NICSTRIDE_RNDV_PIECE;
    return op->type == NICSTRIDE_MSG_GET ? nicstride_reply_piece(replies) : 0;
}

/** Describes the next fragment: which of the target's bytes, and what data goes with it. */
static int describe(nicstride_op_t *op, fragment_t *f, onic_payload_t *payload, uint64_t *n_p)
{
    nicstride_msg_init(&f->msg, op->type, op->peer->win, op->peer->me);
    f->msg.disp = op->disp;
    f->msg.dtype = op->dtype;
    f->msg.offset = op->sent;
    f->msg.handle = op->handle;
    f->msg.flags = op->rndv ? NICSTRIDE_MSG_RNDV : 0;
    payload->len = 0;
    if (op->type == NICSTRIDE_MSG_CAS) {
        *n_p = op->size;
        f->msg.len = payload->len = 2 * op->size;
        payload->base = op->cas;
        payload->cursor.layout = NULL;
        return OMPI_SUCCESS;
    }
    const int rc = put_layout(op, f, piece_limit(op), n_p);
    f->msg.len = *n_p;
    f->msg.op = op->op;
    if (op->sends_data && !is_given(op))
        f->msg.op = (uint16_t)nicstride_op_index(&ompi_mpi_op_no_op.op);
    if (rc == OMPI_SUCCESS && is_given(op))
        nicstride_set_payload(payload, &op->origin, op->origin_base, op->sent, *n_p);
    return rc;
}

int nicstride_send_fragment_locked(nicstride_op_t *op)
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
    const uint64_t reply = nicstride_op_wants_reply(op) && !op->rndv ? n : 0;
    p->flow.wants = kept;
    if (!nicstride_tx_can_send(&p->flow.tx, p->quota, kept) ||
        (reply > 0 && !nicstride_reply_may_ask(replies, &p->flow.asker, reply))) {
        op->slice = slice;
        return 0;
    }
    nicstride_op_reserve_locked(op, reply);
    /* A message by itself is likely to be flushed at once: it asks for its acknowledgement itself.
     * But a wait for a request does not look into the slot, which has data of whole operations. */
    if (op->sent + n == op->size && nicstride_tx_may_ask(&p->flow.tx) && op->request == NULL &&
        (op->sent == 0 || !nicstride_op_wants_reply(op)) && !nicstride_is_active(op->module))
        f.msg.count = p->flow.tx.asked = p->flow.tx.sent + 1;
    op->in_flight++;
    op->sent += n;
    rc = nicstride_send_locked(p, &f.msg, payload.len > 0 ? &payload : NULL,
                               op->rndv && op->type == NICSTRIDE_MSG_PUT ? NICSTRIDE_SEND_RNDV : 0,
                               nicstride_op_sent_cb, op);
    if (rc != 0)
        op->in_flight--;
    if (rc < 0)
        return rc;
    nicstride_count_sent_locked(p, kept);
    return 1;
}
