/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Method pipeline: put, get and accumulate through receive buffers of the receiver
 *  (common/pipeline). The message says where the data belongs and in which buffers it comes. */
#include "common/pipeline/pipeline.h"
#include "common/transport/put.h"

#include "osc_nicstride/methods/methods.h"
#include "osc_nicstride/methods/plan.h"
#include "osc_nicstride/queue/wait.h"
#include "osc_nicstride/queue/operation.h"
#include "osc_nicstride/queue/flow.h"
#include "osc_nicstride/queue/send.h"
#include "osc_nicstride/window/state.h"

_Static_assert(sizeof(onic_ticket_t) == NICSTRIDE_TICKET_BYTES, "the ticket's room in messages");

/** 1, -1, or 0 while that of a process of another host has been asked for. A process may be a node
 *  of its own by parameter: the pipeline knows machines. */
static int look_for_area(nicstride_peer_t *p)
{
    const bool may = p->local >= 0 || nicstride_component.params.network_slots;
    int known = -1;

    onic_transport_lock();
    if (may && onic_pipeline_reaches_locked(p->wire))
        known = 1;
    else if (may && p->local < 0 && onic_peer_puts_by_rdma(p->wire))
        known = 0;
    onic_transport_unlock();
    return known;
}

/** Is there a receive pool to be reached? Found out the first time. */
static bool reach(const nicstride_transfer_t *t)
{
    nicstride_peer_t *p = t->peer;

    if (p->rank == t->m->rank || t->type == NICSTRIDE_MSG_GET_ACC || t->type == NICSTRIDE_MSG_CAS)
        return false;
    int *kept = nicstride_known(p, NICSTRIDE_METHOD_PIPELINE, t->type);
    int known = __atomic_load_n(kept, __ATOMIC_RELAXED);

    if (known == 0) {
        known = look_for_area(p);
        __atomic_store_n(kept, known, __ATOMIC_RELAXED);
    }
    return known > 0;
}

/** All is packed: the origin's memory may change. */
static void packed_cb(void *arg, int status)
{
    nicstride_op_t *op = arg;

    op->move = NULL;
    nicstride_op_sent_cb(op, status);
}

/** All has come. */
static void taken_cb(void *arg, int status)
{
    nicstride_op_t *op = arg;

    op->move = NULL;
    op->in_flight--;
    nicstride_op_received_locked(op, op->size - op->received,
                                 status == OMPI_SUCCESS ? 0 : MPI_ERR_OTHER);
}

/** The operation's data becomes an end of a transfer, whose ticket is filled in. False where no
 *  buffer can be had. A get's may come by message all the same, and it keeps its layout. */
static bool lease(nicstride_op_t *op, onic_ticket_t *ticket)
{
    const bool get = op->type == NICSTRIDE_MSG_GET;
    onic_layout_t *l = get ? &op->result : &op->origin;
    onic_pipeline_end_t end = {.layout = *l,
                               .len = op->size,
                               .base = get ? op->result_base : op->origin_base,
                               .granule = op->granule,
                               .done = get ? taken_cb : packed_cb,
                               .arg = op};

    if (get)
        onic_layout_dup(&end.layout, l);
    op->move = get ? onic_pipeline_expect_locked(op->peer->wire, &end, ticket)
                   : onic_pipeline_send_locked(op->peer->wire, &end, ticket);
    if (get && op->move == NULL)
        onic_layout_fini(&end.layout);
    else if (!get && op->move != NULL)
        l->nruns = 0;
    return op->move != NULL;
}

/** Gives what the operation took over back to the transfer, for another way. */
static void take_back(nicstride_transfer_t *t, nicstride_op_t *op)
{
    t->target = op->target;
    *(op->type == NICSTRIDE_MSG_GET ? &t->origin : &t->result) = op->result;
    if (op->type != NICSTRIDE_MSG_GET)
        t->origin = op->origin;
    op->target.nruns = op->origin.nruns = op->result.nruns = 0;
    op->request = NULL;
    nicstride_op_free_locked(op);
}

static nicstride_op_t *prepare(nicstride_transfer_t *t, uint64_t kept, onic_ticket_t *ticket)
{
    nicstride_peer_t *p = t->peer;
    nicstride_op_t *op;

    nicstride_look_locked(p);
    if (!STAILQ_EMPTY(&p->queue.waiting) || p->queue.flushing || p->failed ||
        kept > p->quota->limit || !nicstride_tx_can_send(&p->flow.tx, p->quota, kept))
        return NULL;
    op = nicstride_op_of_locked(t, true);
    if (op == NULL)
        return NULL;
    op->move = NULL;
    if (lease(op, ticket))
        return op;
    take_back(t, op);
    return NULL;
}

static void send_ticket(nicstride_transfer_t *t, nicstride_op_t *op, nicstride_framed_t *f,
                        const onic_ticket_t *ticket)
{
    const onic_payload_t data = {.base = ticket, .len = sizeof(*ticket)};
    nicstride_peer_t *p = t->peer;
    const uint64_t kept = nicstride_msg_kept(&f->msg);

    nicstride_op_enter_locked(t, op);
    op->in_flight++;
    op->sent = op->size;
    f->msg.handle = op->handle;
    if (nicstride_tx_may_ask(&p->flow.tx) && !nicstride_is_active(t->m))
        f->msg.count = p->flow.tx.asked = p->flow.tx.sent + 1;
    nicstride_send_inline_locked(p, &f->msg, &data);
    nicstride_count_sent_locked(p, kept);
    (void)nicstride_list_used_locked(p, &op->target);
}

/** Not where something stands before it, no buffer is free, or its layout is too irregular for one
 *  message. */
static int start(nicstride_transfer_t *t, bool *done_p)
{
    nicstride_peer_t *p = t->peer;
    onic_transfer_t *move = NULL;
    onic_ticket_t ticket;
    nicstride_framed_t f;
    nicstride_op_t *op = NULL;

    nicstride_msg_init(&f.msg, t->type, p->win, p->me);
    if (!nicstride_describe(&f, t))
        return OMPI_ERR_NOT_AVAILABLE;
    f.msg.op = t->op;
    f.msg.dtype = t->dtype;
    f.msg.len = t->target.size;
    f.msg.flags |= NICSTRIDE_MSG_RX_BUFFERS;
    (void)nicstride_await_lock(p); /* an error shows with the operation */
    onic_transport_lock();
    if (nicstride_list_is_known_locked(p, &f.msg, f.layout))
        op = prepare(t, nicstride_msg_kept(&f.msg), &ticket);
    if (op != NULL) {
        move = op->move;
        send_ticket(t, op, &f, &ticket);
    }
    onic_transport_unlock();
    if (op == NULL)
        return OMPI_ERR_NOT_AVAILABLE;
    onic_pipeline_run(move);
    *done_p = false;
    return OMPI_SUCCESS;
}

const nicstride_method_row_t nicstride_pipeline = {.name = "pipeline",
                                                   .needs_target = true,
                                                   .fits = nicstride_pipeline_fits,
                                                   .cost = nicstride_pipeline_cost,
                                                   .reach = reach,
                                                   .start = start};
