/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Method pack: messages, which work everywhere. What is not short and contiguous (short.h)
 *  becomes an operation in the peer's queue, of which fragments are sent as credit allows. */
#include "osc_nicstride/methods/pack/parts.h"

#include <math.h>

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

/* ---- the queue ------------------------------------------------------------------------------- */

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
    if (first)
        STAILQ_INSERT_HEAD(&p->queue.waiting, op, of_queue);
    else
        STAILQ_INSERT_TAIL(&p->queue.waiting, op, of_queue);
    if (p->queue.length++ == 0)
        LIST_INSERT_HEAD(&nicstride_queueing, p, queue.of_queueing);
}

void nicstride_op_by_message_locked(nicstride_op_t *op)
{
    op->sent = op->received = 0;
    op->row = NULL;
    /* The operation does not take the way for which it was noted, so it is noted again. */
    if (op->type != NICSTRIDE_MSG_GET)
        nicstride_order_note(&op->peer->order, NICSTRIDE_WAY_COMES, false,
                             (uint64_t)op->disp + (uint64_t)op->target.lb,
                             (uint64_t)op->disp + (uint64_t)op->target.ub);
    enqueue(op->peer, op, true);
    nicstride_pump_locked(op->peer);
}

static int start(nicstride_transfer_t *t, bool *done_p)
{
    nicstride_peer_t *p = t->peer;
    nicstride_op_t *op;

    onic_transport_lock();
    if (!has_room(p)) {
        onic_transport_unlock();
        nicstride_wait(p, NICSTRIDE_WAKE, has_room, p);
        onic_transport_lock();
    }
    op = nicstride_op_of_locked(t);
    if (op != NULL) {
        nicstride_op_enter_locked(t, op);
        nicstride_tell_list_locked(p, &op->target);
        enqueue(p, op, false);
        nicstride_ask_lock_locked(p);
        op->in_flight++; /* it stays valid */
        nicstride_pump_locked(p);
        op->in_flight--;
        *done_p = op->sent == op->size && op->in_flight == 0 && op->error == 0 &&
                  !nicstride_op_wants_reply(op);
        if (*done_p)
            op->request = NULL;
        nicstride_op_finish_locked(op);
    }
    onic_transport_unlock();
    return op != NULL ? OMPI_SUCCESS : OMPI_ERR_OUT_OF_RESOURCE;
}

/* ---- at the target --------------------------------------------------------------------------- */

static const nicstride_handler_t handlers[] = {
    {NICSTRIDE_MSG_PUT, nicstride_on_put},        {NICSTRIDE_MSG_PUTV, nicstride_on_putv},
    {NICSTRIDE_MSG_GET, nicstride_on_get},        {NICSTRIDE_MSG_GETV, nicstride_on_getv},
    {NICSTRIDE_MSG_ACC, nicstride_on_accumulate}, {NICSTRIDE_MSG_GET_ACC, nicstride_on_accumulate},
    {NICSTRIDE_MSG_CAS, nicstride_on_swap},
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
