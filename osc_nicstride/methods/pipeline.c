/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Method pipeline: put, get and accumulate through the receiver's receive buffers
 *  (common/pipeline). A message says where in the window the data belongs; its ticket says in which
 *  buffers the data comes, or must come. */
#include <math.h>
#include <string.h>

#include "common/model/pipeline.h"
#include "common/pipeline/core/schedules.h"
#include "common/pipeline/pipeline.h"
#include "common/transport/put.h"
#include "osc_nicstride/methods/methods.h"
#include "osc_nicstride/methods/pack/parts.h"
#include "osc_nicstride/queue/describe.h"
#include "osc_nicstride/queue/flow.h"
#include "osc_nicstride/queue/operation.h"
#include "osc_nicstride/queue/send.h"
#include "osc_nicstride/target/target.h"
#include "osc_nicstride/window/hold.h"
#include "osc_nicstride/window/op.h"
#include "osc_nicstride/window/state.h"

_Static_assert(sizeof(onic_ticket_t) == NICSTRIDE_TICKET_BYTES, "the ticket's room in messages");

/* ---- cost ------------------------------------------------------------------------------------ */

/** True for irregular pieces on this node: they take longer to gather than to move, so there is
 *  nothing to overlap. Gets of 80 to 800 KB in pieces of 11 bytes, between two processes that do
 *  the same, take 15 to 35 % less time by messages; gets of 2.4 MB take as long. */
static bool is_slow_to_gather(const nicstride_case_t *c)
{
    return c->path != NULL && c->path->costs != NULL && c->dir == NICSTRIDE_GET &&
           c->target->nruns > 0;
}

/** True from one block on: shorter transfers have nothing to overlap. */
static bool fits(const nicstride_case_t *c)
{
    return c->target->size >= ONIC_PIPELINE_BLOCK &&
           (c->forced == NICSTRIDE_METHOD_PIPELINE || !is_slow_to_gather(c));
}

/** Both sides gather and scatter while chunks are moved, so the slower side determines the speed of
 *  copying. The buffers of a get are the origin's own. The data's way is counted once. */
double nicstride_pipeline_cost(const nicstride_case_t *c, double buffer,
                               onic_schedule_kind_t schedule)
{
    const double size = (double)c->target->size;
    onic_link_t link = c->path->link;
    const double block = fmin(onic_schedule_block(&link, c->target->size), buffer);
    const onic_chunks_t chunks =
        onic_schedule_chunks(onic_schedule_best(schedule, false), &link, buffer);
    /* Calls for each block but the first also take the processors' time. */
    const double blocks = fmax(onic_chunks_count(&chunks, size), size / block);
    const double calls = fmax(0, ceil(blocks) - 1) * link.gap;

    link.bcopy = size / (size / link.bcopy +
                         fmax(onic_link_gather(&c->path->link, c->origin),
                              onic_link_gather(&c->path->link, c->target)) +
                         calls);
    /* A put packs while it waits for its grant; a get packs after that. */
    const double unpacked = fmin(chunks.first / link.bcopy, 2 * link.latency);

    return link.message - link.latency +
           (c->dir == NICSTRIDE_GET ? fmin(unpacked, link.grant) : link.grant) +
           onic_superpipeline_time_blocks(&link, &chunks, size, block);
}

static double cost(const nicstride_case_t *c)
{
    if (c->path->costs != NULL)
        return nicstride_cost_on_node(c, ONIC_WAY_pipeline_put, ONIC_WAY_pipeline_get,
                                      (double)c->target->size);
    return nicstride_pipeline_cost(c, onic_pipeline_rx_buffer(),
                                   (onic_schedule_kind_t)nicstride_component.params.schedule);
}

/* ---- at the origin --------------------------------------------------------------------------- */

/** Looks for the peer's receive pool. 1: it can be reached; -1: it cannot; 0: a process of another
 *  host has been asked. A parameter may make a process a node of its own, but the pipeline goes by
 *  hosts. */
static int look_for_area(nicstride_peer_t *p)
{
    const bool may = p->local >= 0 || nicstride_component.params.network_slots;
    int known = -1;

    onic_transport_lock();
    if (may && onic_pipeline_reaches_locked(p->peer))
        known = 1;
    else if (may && p->local < 0 && onic_peer_puts_by_rdma(p->peer))
        known = 0;
    onic_transport_unlock();
    return known;
}

/** True if the receive pool can be reached. Found out once. */
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

/** Everything is packed, so the origin's memory may change. */
static void packed_cb(void *arg, int status)
{
    nicstride_op_t *op = arg;

    op->of_row = NULL;
    nicstride_op_sent_cb(op, status);
}

/** Everything has arrived. */
static void taken_cb(void *arg, int status)
{
    nicstride_op_t *op = arg;

    op->of_row = NULL;
    op->in_flight--;
    nicstride_op_received_locked(op, op->size - op->received,
                                 status == OMPI_SUCCESS ? 0 : MPI_ERR_OTHER);
}

/** Makes the operation's data one end of a transfer and fills in the ticket. False if no buffer is
 *  free. A get's data may still come by message, so the operation keeps its layout. */
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
    op->of_row = get ? onic_pipeline_expect_locked(op->peer->peer, &end, ticket)
                     : onic_pipeline_send_locked(op->peer->peer, &end, ticket);
    if (get && op->of_row == NULL)
        onic_layout_fini(&end.layout);
    else if (!get && op->of_row != NULL)
        l->nruns = 0;
    return op->of_row != NULL;
}

/** Returns to the transfer what the operation took over, so that it can take another way. */
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
        !nicstride_may_send_locked(p, kept))
        return NULL;
    op = nicstride_op_of_locked(t);
    if (op == NULL)
        return NULL;
    op->row = &nicstride_pipeline;
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
}

static void cancel(nicstride_op_t *op)
{
    if (op->of_row != NULL)
        onic_pipeline_cancel_locked(op);
}

/** Notes that the target answers a get by message. False if the buffers are already full: then the
 *  transfer's callback is about to be called. */
static bool answered(nicstride_op_t *op, const nicstride_msg_t *msg)
{
    if (op->of_row == NULL)
        return true;
    if (!onic_pipeline_withdraw_locked(op->of_row))
        return false;
    op->of_row = NULL;
    op->in_flight--;
    /* The target cannot reach this process's buffers, and sends the data by message. */
    if (msg->status == 0)
        __atomic_store_n(nicstride_known(op->peer, NICSTRIDE_METHOD_PIPELINE, op->type), -1,
                         __ATOMIC_RELAXED);
    return true;
}

static nicstride_msg_type_t kind_of(nicstride_msg_type_t type)
{
    return type == NICSTRIDE_MSG_PUT   ? NICSTRIDE_MSG_PIPE_PUT
           : type == NICSTRIDE_MSG_GET ? NICSTRIDE_MSG_PIPE_GET
                                       : NICSTRIDE_MSG_PIPE_ACC;
}

/** Starts a transfer, unless something must go before it, no buffer is free, or its layout is too
 *  irregular for one message. */
static int start(nicstride_transfer_t *t, bool *done_p)
{
    nicstride_peer_t *p = t->peer;
    onic_ticket_t ticket;
    nicstride_framed_t f;
    nicstride_op_t *op = NULL;

    nicstride_msg_init(&f.msg, kind_of(t->type), p->win, p->me);
    f.msg.op = t->op;
    f.msg.dtype = t->dtype;
    f.msg.len = t->target.size;

    onic_transport_lock();
    if (nicstride_describe_locked(&f, t))
        op = prepare(t, nicstride_msg_kept(&f.msg), &ticket);
    if (op != NULL) {
        send_ticket(t, op, &f, &ticket);
        onic_pipeline_run_locked(op->of_row);
    }
    onic_transport_unlock();
    if (op == NULL)
        return OMPI_ERR_NOT_AVAILABLE;
    *done_p = false;
    return OMPI_SUCCESS;
}

/* ---- at the target --------------------------------------------------------------------------- */

/** A transfer at the target. */
typedef struct nicstride_moving {
    nicstride_pending_access_t access;
    STAILQ_ENTRY(nicstride_moving) of_line;
    bool waits; /**< it is in the line */
    onic_ticket_t ticket;
    nicstride_accop_t op;  /**< for accumulates */
    nicstride_hold_t hold; /**< the locks of accumulates */
    onic_cursor_t cursor;
} moving_t;

_Static_assert(sizeof(moving_t) <= NICSTRIDE_KEPT_USE, "what is counted for it");
_Static_assert(sizeof(moving_t) >= sizeof(nicstride_answering_t), "it may be answered by message");

/* Transfers of all peers that wait for their turn. Transport lock. */
static STAILQ_HEAD(, nicstride_moving) line = STAILQ_HEAD_INITIALIZER(line);

static bool is_get(const moving_t *v)
{
    return v->access.msg.type == NICSTRIDE_MSG_PIPE_GET;
}

static void leave_line(moving_t *v)
{
    STAILQ_REMOVE(&line, v, nicstride_moving, of_line);
    v->waits = false;
}

static void moved_cb(void *arg, int status)
{
    moving_t *v = arg;

    if (v->access.m != NULL && !is_get(v)) {
        v->access.p->moving = false;
        /* Those that wait for it get their turn. */
        if (!STAILQ_EMPTY(&line))
            onic_transport_ask(ONIC_AM_OSC, ONIC_LOCKED);
    }
    nicstride_access_end(&v->access, status == OMPI_SUCCESS ? 0 : MPI_ERR_OTHER);
}

/** Applies whole elements that have arrived. */
static int64_t apply(void *arg, uint64_t pos, const void *data, uint64_t n)
{
    moving_t *v = arg;

    (void)pos;
    n -= n % v->op.apply.size;
    if (n == 0)
        return 0;
    if (nicstride_hold_take_layout(&v->hold, &v->access.layout, v->cursor.pos, n,
                                   v->access.msg.disp) != OMPI_SUCCESS)
        return -1;
    nicstride_apply(&v->op.apply, &v->cursor, v->access.base, data, NULL, n);
    nicstride_hold_give(&v->hold);
    return (int64_t)n;
}

/** Refuses a message. The data of a put is discarded, so that the sender gives the buffers back. */
static void refuse(const nicstride_incoming_t *in, const onic_ticket_t *ticket, int error)
{
    if (in->msg->type == NICSTRIDE_MSG_PIPE_GET) {
        nicstride_reply_locked(in, NULL, in->msg->len, error);
        return;
    }
    (void)onic_pipeline_receive_locked(in->p->peer, ticket, NULL);
    nicstride_applied_locked(in->m, in->p, in->msg, error);
}

static void fail(moving_t *v, int error)
{
    const nicstride_incoming_t in = {.m = v->access.m, .p = v->access.p, .msg = &v->access.msg};

    refuse(&in, &v->ticket, error);
    nicstride_access_close(&v->access);
}

static void cancel_access(nicstride_pending_access_t *a)
{
    moving_t *v = (moving_t *)a;

    if (v->waits) {
        leave_line(v);
        fail(v, MPI_ERR_OTHER);
        return;
    }
    onic_pipeline_cancel_locked(a);
}

/** Lets the data come, or go. */
static void begin(moving_t *v)
{
    const nicstride_pending_access_t *a = &v->access;
    onic_peer_t *peer = a->p->peer;
    onic_pipeline_end_t end = {
        .at = a->at, .len = a->msg.len, .base = a->base, .granule = 1, .done = moved_cb, .arg = v};
    int rc;

    if (a->msg.type == NICSTRIDE_MSG_PIPE_ACC) {
        onic_layout_set(&end.layout, 0);
        end.take = apply;
    } else {
        onic_layout_dup(&end.layout, &a->layout);
    }
    if (is_get(v)) {
        rc = onic_pipeline_answer_locked(peer, &v->ticket, &end);
    } else {
        rc = onic_pipeline_receive_locked(peer, &v->ticket, &end);
        a->p->moving = rc == OMPI_SUCCESS;
    }
    if (rc == OMPI_SUCCESS)
        return;
    onic_layout_fini(&end.layout);
    /* The origin can offer its buffers, but this process cannot map them: the data goes by
     * message. */
    if (is_get(v) && rc == OMPI_ERR_UNREACH)
        nicstride_answer_opened(&v->access);
    else
        fail(v, MPI_ERR_OTHER);
}

/** Begins what has waited for its turn. */
static int progress(void)
{
    moving_t *v = STAILQ_FIRST(&line);
    int n = 0;

    while (v != NULL) {
        moving_t *next = STAILQ_NEXT(v, of_line);

        if (!v->access.p->moving) {
            leave_line(v);
            begin(v);
            n++;
        }
        v = next;
    }
    return n;
}

/** Makes the record of a message. */
static int open_moving(const nicstride_incoming_t *in, moving_t **v_p)
{
    void *record;
    int error = nicstride_access_open(in, sizeof(moving_t), &record);

    if (error != 0)
        return error;
    moving_t *v = *v_p = record;
    const nicstride_pending_access_t *a = &v->access;

    v->access.cancel = cancel_access;
    if (in->msg->type != NICSTRIDE_MSG_PIPE_ACC)
        return 0;
    if (!nicstride_accop_init(&v->op, in->msg->op, in->msg->dtype) ||
        in->msg->len % v->op.apply.size != 0 || a->at % v->op.apply.size != 0) {
        nicstride_access_close(&v->access);
        return MPI_ERR_TYPE;
    }
    nicstride_hold_init(&v->hold, in->m, in->m->node.me, &v->op.apply,
                        nicstride_hold_aligned(&a->layout, a->base, v->op.apply.size));
    onic_cursor_init(&v->cursor, &a->layout, a->at);
    return 0;
}

/** Handles a put, a get or an accumulate. */
static void on_move(const nicstride_incoming_t *in)
{
    onic_ticket_t ticket;
    moving_t *v;
    const int error = open_moving(in, &v);

    memcpy(&ticket, (const char *)in->layout + in->msg->layout_len, sizeof(ticket));
    if (error != 0) {
        refuse(in, &ticket, error);
        return;
    }
    v->ticket = ticket;
    v->waits = true;
    STAILQ_INSERT_TAIL(&line, v, of_line);
    (void)progress();
}

static const nicstride_handler_t handlers[] = {
    {NICSTRIDE_MSG_PIPE_PUT, on_move},
    {NICSTRIDE_MSG_PIPE_GET, on_move},
    {NICSTRIDE_MSG_PIPE_ACC, on_move},
};

const nicstride_method_row_t nicstride_pipeline = {
    .name = "pipeline",
    .needs_target = true,
    .fits = fits,
    .cost = cost,
    .reach = reach,
    .start = start,
    .handlers = handlers,
    .nhandlers = sizeof(handlers) / sizeof(handlers[0]),
    .cancel = cancel,
    .answered = answered,
    .progress = progress,
};
