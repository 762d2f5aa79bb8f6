/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Method pack: messages, which work everywhere. A short operation with nothing before it
 *  goes at once, in one message with inline data. Everything else becomes an operation in the
 *  peer's queue, of which fragments are sent as credit allows. */
#include "osc_nicstride/methods/pack/parts.h"

#include <math.h>
#include <string.h>

#include "osc_nicstride/queue/describe.h"
#include "osc_nicstride/queue/ask_lock.h"
#include "osc_nicstride/queue/flow.h"
#include "osc_nicstride/queue/send.h"
#include "osc_nicstride/queue/wait.h"

/* ---- cost ------------------------------------------------------------------------------------ */

/** Equation (2) for the first message. For those that follow, the sender packs, the network moves
 *  data and the receiver unpacks at the same time: the slowest of the three counts. */
static double cost(const nicstride_case_t *c)
{
    const onic_link_t *link = &c->path->link;
    const double size = (double)c->target->size;

    if (c->path->costs != NULL)
        return nicstride_cost_on_node(c, ONIC_WAY_pack_put, ONIC_WAY_pack_get, size);
    const double here = onic_link_gather(link, c->origin),
                 there = onic_link_gather(link, c->target);
    const double first = fmin(1, link->fragment / size);
    const double copying = size / link->bcopy + size / link->fragment * link->gap;

    return onic_link_packed(link, first * size) + first * (here + there) +
           (1 - first) * fmax(size / link->bnet, copying + fmax(here, there));
}

static bool anywhere(const nicstride_transfer_t *t)
{
    (void)t;
    return true;
}

/* ---- sending at once ----------------------------------------------------------------------------
 *
 * A short transfer goes in one message, without an operation object unless something comes back. A
 * burst of such transfers takes 20 to 35 % longer through the queue. */

/** True if the message may wait for others. Over a network a message costs many times as much as a
 *  few bytes, and in active target nobody waits for the first message before the epoch closes. */
static bool waits_for_others(const nicstride_transfer_t *t)
{
    return t->peer->local < 0 && nicstride_is_active(t->m);
}

/** True if an operation may be sent now, with nothing to be sent before it. */
static bool may_start(nicstride_peer_t *p, uint64_t kept)
{
    if (!STAILQ_EMPTY(&p->queue.waiting) || p->queue.flushing || p->failed)
        return false;
    nicstride_look_locked(p);
    /* What needs more than the most credit is cut. */
    return nicstride_may_post_locked(p, kept);
}

/** Bytes of data that the target is sent. */
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

    /* A fetch that changes only part of what it fetches takes several messages. */
    if (t->type == NICSTRIDE_MSG_GET_ACC && t->has_origin && t->origin.size < t->target.size)
        return false;
    return bytes <= nicstride_inline_max(!replies && waits_for_others(t)) &&
           t->peer->rank != t->m->rank;
}

/** Sets the message's data. `pair` has room for both values of a compare-and-swap. */
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

/** Sends the first message at once, since it may be the only one. It asks for its acknowledgement
 *  if somebody will wait for that. In active target that is so only if the acknowledgement comes
 *  with a reply. A request never asks: its answer must not lie where only a flush looks. */
static void send_now(nicstride_transfer_t *t, nicstride_msg_t *msg, const onic_payload_t *data,
                     nicstride_op_t *op, uint64_t kept)
{
    nicstride_peer_t *p = t->peer;
    const bool first = nicstride_tx_idle(&p->flow.tx) && !waits_for_others(t);
    unsigned char bytes[NICSTRIDE_PIECE_MAX];
    size_t len;

    nicstride_op_enter_locked(t, op);
    msg->handle = op != NULL ? op->handle : 0;
    if (first && t->request == NULL && (op != NULL || !nicstride_is_active(t->m)) &&
        nicstride_tx_may_ask(&p->flow.tx))
        msg->count = p->flow.tx.asked = p->flow.tx.sent + 1;
    len = nicstride_compose(bytes, msg, data);
    nicstride_post_operation_locked(p, bytes, len, !first);
    nicstride_count_sent_locked(p, kept);
    if (op != NULL)
        op->sent = op->size;
}

/** Sends the whole transfer in one message. False if it is too long, or something must be sent
 *  before. */
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
    started = may_start(p, kept) && nicstride_list_is_known_locked(p, &f.msg, f.layout) &&
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

/** Puts an operation into its peer's queue, as the first or the last. */
static void enqueue(nicstride_peer_t *p, nicstride_op_t *op, bool first)
{
    if (op->target.nruns != 0)
        onic_cursor_init(&op->slice, &op->target, 0);
    op->queued = true;
    op->send = nicstride_send_fragment;
    if (first)
        STAILQ_INSERT_HEAD(&p->queue.waiting, op, of_queue);
    else
        STAILQ_INSERT_TAIL(&p->queue.waiting, op, of_queue);
    p->queue.length++;
    nicstride_queued_locked(p->process, 1);
}

void nicstride_op_by_message_locked(nicstride_op_t *op)
{
    op->sent = op->received = 0;
    op->row = NULL;
    /* The operation does not take the way for which it was noted, so it is noted again. */
    if (op->type != NICSTRIDE_MSG_GET)
        nicstride_order_note(&op->peer->order, NICSTRIDE_WAY_TURN, false,
                             (uint64_t)op->disp + (uint64_t)op->target.lb,
                             (uint64_t)op->disp + (uint64_t)op->target.ub);
    enqueue(op->peer, op, true);
    nicstride_pump_locked(op->peer);
}

/** Queues an operation as the last one. A list that gets an id is at offset 0. */
static void enqueue_last(nicstride_peer_t *p, nicstride_op_t *op)
{
    onic_layout_t *l = &op->target;

    op->list_id = nicstride_list_used_locked(p, l);
    if (op->list_id != 0) {
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

    onic_transport_lock();
    if (!has_room(p)) {
        onic_transport_unlock();
        nicstride_wait(p, NICSTRIDE_WAKE, has_room, p);
        onic_transport_lock();
    }
    op = nicstride_op_of_locked(t, true);
    if (op != NULL) {
        nicstride_op_enter_locked(t, op);
        enqueue_last(p, op);
        nicstride_ask_lock_locked(p);
        nicstride_pump_locked(p);
    }
    onic_transport_unlock();
    return op != NULL ? OMPI_SUCCESS : OMPI_ERR_OUT_OF_RESOURCE;
}

static int start(nicstride_transfer_t *t, bool *done_p)
{
    if (start_now(t, done_p))
        return OMPI_SUCCESS;
    *done_p = false;
    return start_queued(t);
}

/* ---- at the target --------------------------------------------------------------------------- */

enum {
    OPERATES = NICSTRIDE_OPERATES,
    IN_TURN = NICSTRIDE_OPERATES | NICSTRIDE_TAKES_TURN,
    LOCKS = NICSTRIDE_OPERATES | NICSTRIDE_TAKES_TURN | NICSTRIDE_TAKES_LOCK
};

/* Puts are not ordered here: nothing is kept for them, and their origin has waited where needed
 * (protocol/order.h). */
static const nicstride_handler_t handlers[] = {
    {NICSTRIDE_MSG_PUT, OPERATES, nicstride_on_put, nicstride_refuse_put, NULL},
    {NICSTRIDE_MSG_PUTV, OPERATES, nicstride_on_putv, nicstride_refuse_put, NULL},
    {NICSTRIDE_MSG_GET, IN_TURN, nicstride_on_get, nicstride_refuse_fetch, NULL},
    {NICSTRIDE_MSG_GETV, IN_TURN, nicstride_on_getv, nicstride_refuse_getv, NULL},
    {NICSTRIDE_MSG_ACC, LOCKS, nicstride_on_accumulate, nicstride_refuse_put, NULL},
    {NICSTRIDE_MSG_GET_ACC, LOCKS, nicstride_on_accumulate, nicstride_refuse_fetch, NULL},
    {NICSTRIDE_MSG_CAS, LOCKS, nicstride_on_swap, nicstride_refuse_swap, NULL},
};

const nicstride_method_row_t nicstride_pack = {
    .name = "pack",
    .needs_target = true,
    .cost = cost,
    .reach = anywhere,
    .start = start,
    .handlers = handlers,
    .nhandlers = sizeof(handlers) / sizeof(handlers[0]),
};
