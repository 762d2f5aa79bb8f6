/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "osc_nicstride/queue/operation.h"

#include <stdlib.h>
#include <string.h>

#include "osc_nicstride/queue/lazy_lock.h"
#include "osc_nicstride/queue/flow.h"
#include "osc_nicstride/queue/wait.h"

nicstride_op_t *nicstride_op_new_locked(nicstride_peer_t *p, nicstride_msg_type_t type,
                                        int64_t disp, uint64_t size)
{
    nicstride_op_t *op = malloc(sizeof(*op));

    if (op == NULL)
        return NULL;
    nicstride_counters.live_ops++;
    memset(op, 0, offsetof(nicstride_op_t, origin));
    op->origin.nruns = op->target.nruns = op->result.nruns = 0;
    op->peer = p;
    op->type = type;
    op->granule = 1;
    op->disp = disp;
    op->size = size;
    op->request = NULL;
    if (nicstride_op_wants_reply(op) && !nicstride_op_name_locked(op)) {
        nicstride_op_free_locked(op);
        return NULL;
    }
    return op;
}

nicstride_op_t *nicstride_op_of_locked(nicstride_transfer_t *t, bool queued)
{
    nicstride_op_t *op = nicstride_op_new_locked(t->peer, t->type, t->disp, t->target.size);

    if (op == NULL)
        return NULL;
    op->op = t->op;
    op->dtype = t->dtype;
    op->granule = t->granule;
    op->sends_data = t->has_origin && t->type != NICSTRIDE_MSG_GET;
    op->origin_base = t->origin_base;
    op->result_base = t->result_base;
    op->request = t->request;
    if (op->type == NICSTRIDE_MSG_GET) {
        onic_layout_move(&op->result, &t->origin);
        op->result_base = t->origin_base;
    } else if (nicstride_op_wants_reply(op)) {
        onic_layout_move(&op->result, &t->result);
    }
    if (!queued)
        return op;
    onic_layout_move(&op->target, &t->target);
    if (op->type == NICSTRIDE_MSG_CAS) {
        memcpy(op->cas, t->origin_base, op->size);
        memcpy(op->cas + op->size, t->swap, op->size);
    } else if (op->sends_data) {
        onic_layout_move(&op->origin, &t->origin);
    }
    return op;
}

void nicstride_op_enter_locked(const nicstride_transfer_t *t, nicstride_op_t *op)
{
    nicstride_enter_locked(t->peer, t->way, !nicstride_writes(t), t->from, t->to);
    if (op != NULL)
        nicstride_op_live_locked(op);
}

/* ---- at once --------------------------------------------------------------------------------- */

/** Over a network a message costs many times what the bytes of a short one do, and in active target
 *  nobody waits for the first before the epoch closes. */
static bool waits_for_others(const nicstride_transfer_t *t)
{
    return t->peer->local < 0 && nicstride_is_active(t->m);
}

/** May an operation be sent now, before anything else that is to be sent? */
static bool may_start(nicstride_peer_t *p, uint64_t kept, size_t len)
{
    /* What is too long for its target's memory is cut. */
    if (kept > p->quota->limit ||
        (p->lock.lazy != NULL && !nicstride_lazy_lock_allows_locked(p, len)))
        return false;
    if (!STAILQ_EMPTY(&p->queue.waiting) || p->queue.flushing || p->failed)
        return false;
    nicstride_look_locked(p);
    return nicstride_tx_can_send(&p->flow.tx, p->quota, kept);
}

/** Bytes of the data that the target is sent. */
static uint64_t sent_bytes(const nicstride_transfer_t *t)
{
    if (t->type == NICSTRIDE_MSG_GET || !t->has_origin)
        return 0;
    return t->type == NICSTRIDE_MSG_CAS ? 2 * t->target.size : t->target.size;
}

static bool is_short(const nicstride_transfer_t *t)
{
    const bool replies = t->type != NICSTRIDE_MSG_PUT && t->type != NICSTRIDE_MSG_ACC;
    const uint64_t bytes = sent_bytes(t) > t->target.size ? sent_bytes(t) : t->target.size;

    /* A fetch that changes only a part of what it fetches takes several messages. */
    if (t->type == NICSTRIDE_MSG_GET_ACC && t->has_origin && t->origin.size < t->target.size)
        return false;
    return bytes <= nicstride_inline_max(!replies && waits_for_others(t)) &&
           t->peer->rank != t->m->rank;
}

bool nicstride_describe(nicstride_framed_t *f, const nicstride_transfer_t *t)
{
    const onic_layout_t *l = &t->target;
    const bool nameable = nicstride_is_nameable(l);
    uint64_t described = 0;
    onic_cursor_t all;
    size_t used = 0;
    bool whole, due = false;

    f->msg.disp = t->disp;
    if (nameable) {
        onic_transport_lock();
        due = nicstride_list_is_due_locked(t->peer, l);
    }
    whole = !due && nicstride_describe_whole(t->peer, l, &f->msg, sizeof(f->layout), l->size);
    if (nameable)
        onic_transport_unlock();
    if (whole || due)
        return whole;
    onic_cursor_init(&all, l, 0);
    if (onic_layout_encode_slice(&all, l->size, t->granule, f->layout, sizeof(f->layout), &used,
                                 &described) != ONIC_LAYOUT_OK ||
        described != l->size)
        return false;
    f->msg.flags |= NICSTRIDE_MSG_SLICE;
    f->msg.layout_len = (uint32_t)used;
    return true;
}

/** What the message carries. `pair` has room for both values of a compare-and-swap. */
static void set_data(onic_payload_t *data, const nicstride_transfer_t *t, unsigned char *pair)
{
    data->base = pair;
    data->len = sent_bytes(t);
    data->cursor.layout = NULL;
    if (data->len > 0 && t->type != NICSTRIDE_MSG_CAS) {
        nicstride_set_payload(data, &t->origin, t->origin_base, 0, data->len);
    } else if (data->len > 0) {
        memcpy(pair, t->origin_base, t->target.size);
        memcpy(pair + t->target.size, t->swap, t->target.size);
    }
}

/** The first message goes at once, since it may be the only one, and asks for its acknowledgement
 *  where somebody waits for that: in active target only where that comes with a reply; for a
 *  request, whose answer must not lie where only a flush would look, only with a lock that is held
 *  back, which is had when that comes. */
static void send_now(nicstride_transfer_t *t, nicstride_msg_t *msg, const onic_payload_t *data,
                     nicstride_op_t *op, uint64_t kept)
{
    nicstride_peer_t *p = t->peer;
    const bool first = nicstride_tx_idle(&p->flow.tx) && !waits_for_others(t);
    unsigned char bytes[NICSTRIDE_PIECE_MAX];
    size_t len;

    nicstride_op_enter_locked(t, op);
    msg->handle = op != NULL ? op->handle : 0;
    if (first && (t->request == NULL || p->lock.lazy != NULL) &&
        (op != NULL || !nicstride_is_active(t->m)) && nicstride_tx_may_ask(&p->flow.tx))
        msg->count = p->flow.tx.asked = p->flow.tx.sent + 1;
    len = nicstride_compose(bytes, msg, data);
    if (p->lock.lazy != NULL)
        nicstride_lazy_lock_keep_locked(p, bytes, len);
    else
        nicstride_post_locked(p, bytes, len, !first);
    nicstride_count_sent_locked(p, kept);
    if (op != NULL)
        op->sent = op->size;
}

/** All of it in one message. False where it is too long for that, or something stands before it. */
static bool start_now(nicstride_transfer_t *t, bool *done_p)
{
    unsigned char pair[2 * NICSTRIDE_ELEMENT_MAX];
    nicstride_peer_t *p = t->peer;
    nicstride_op_t *op = NULL;
    onic_payload_t data;
    nicstride_framed_t f;
    uint64_t kept;
    bool started;

    if (!is_short(t))
        return false;
    nicstride_msg_init(&f.msg, t->type, nicstride_info(t->m, p->rank)->win, (uint32_t)t->m->rank);
    if (!nicstride_describe(&f, t) ||
        sizeof(f.msg) + f.msg.layout_len + sent_bytes(t) > onic_transport_header_max())
        return false;
    f.msg.op = t->op;
    f.msg.dtype = t->dtype;
    f.msg.len = t->type == NICSTRIDE_MSG_CAS ? 2 * t->target.size : t->target.size;
    set_data(&data, t, pair);
    kept = nicstride_msg_kept(&f.msg);
    *done_p = t->type == NICSTRIDE_MSG_PUT || t->type == NICSTRIDE_MSG_ACC;
    onic_transport_lock();
    started = may_start(p, kept, sizeof(f.msg) + f.msg.layout_len + data.len) &&
              nicstride_list_is_known_locked(p, &f.msg, f.layout) &&
              (*done_p || (op = nicstride_op_of_locked(t, false)) != NULL);
    if (started) {
        send_now(t, &f.msg, &data, op, kept);
        (void)nicstride_list_used_locked(p, &t->target);
    }
    onic_transport_unlock();
    return started;
}

/* ---- queued ---------------------------------------------------------------------------------- */

static bool has_room(void *arg)
{
    nicstride_peer_t *p = arg;

    nicstride_pump_locked(p);
    return p->queue.length < NICSTRIDE_QUEUE_MAX || nicstride_peer_failed_locked(p);
}

/** Puts an operation into its peer's queue: as the first or the last. */
static void enqueue(nicstride_peer_t *p, nicstride_op_t *op, bool first)
{
    if (op->target.nruns != 0)
        onic_cursor_init(&op->slice, &op->target, 0);
    op->queued = true;
    if (first)
        STAILQ_INSERT_HEAD(&p->queue.waiting, op, of_queue);
    else
        STAILQ_INSERT_TAIL(&p->queue.waiting, op, of_queue);
    p->queue.length++;
    p->process->queued++;
}

void nicstride_op_by_message_locked(nicstride_op_t *op)
{
    op->sent = op->received = 0;
    op->by_row = false;
    /* It has left the way that it was noted for. */
    if (op->type != NICSTRIDE_MSG_GET)
        nicstride_order_note(&op->peer->order, NICSTRIDE_WAY_TURN, false,
                             (uint64_t)op->disp + (uint64_t)op->target.lb,
                             (uint64_t)op->disp + (uint64_t)op->target.ub);
    enqueue(op->peer, op, true);
    nicstride_pump_locked(op->peer);
}

/** As the last one. A list that gets a name is at offset 0. */
static void enqueue_named(nicstride_peer_t *p, nicstride_op_t *op)
{
    onic_layout_t *l = &op->target;

    op->name = nicstride_list_used_locked(p, l);
    if (op->name != 0) {
        op->disp = (int64_t)((uint64_t)op->disp + (uint64_t)l->offset);
        l->lb -= l->offset;
        l->ub -= l->offset;
        l->offset = 0;
    }
    enqueue(p, op, false);
}

static int start_queued(nicstride_transfer_t *t)
{
    nicstride_peer_t *p = t->peer;
    nicstride_op_t *op;

    (void)nicstride_await_lock(p); /* an error shows with the operation */
    onic_transport_lock();
    if (!has_room(p)) {
        onic_transport_unlock();
        nicstride_wait(p, NICSTRIDE_WAKE, has_room, p);
        onic_transport_lock();
    }
    op = nicstride_op_of_locked(t, true);
    if (op != NULL) {
        nicstride_op_enter_locked(t, op);
        enqueue_named(p, op);
        nicstride_pump_locked(p);
    }
    onic_transport_unlock();
    return op != NULL ? OMPI_SUCCESS : OMPI_ERR_OUT_OF_RESOURCE;
}

int nicstride_message_start(nicstride_transfer_t *t, bool *done_p)
{
    if (start_now(t, done_p))
        return OMPI_SUCCESS;
    *done_p = false;
    return start_queued(t);
}
