/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "osc_nicstride/queue/operation.h"

#include <stdlib.h>

#include "common/layout/copy.h"
#include "common/layout/pack.h"
#include "common/transport/transport.h"
#include "osc_nicstride/window/state.h"

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
    if (nicstride_op_wants_reply(op) &&
        (op->handle = onic_handle_new(&nicstride_component.ops, op)) == 0) {
        nicstride_op_free_locked(op);
        return NULL;
    }
    return op;
}

nicstride_op_t *nicstride_op_of_locked(nicstride_transfer_t *t)
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
    nicstride_op_live_locked(op);
}

void nicstride_op_free_locked(nicstride_op_t *op)
{
    if (op->handle != 0)
        onic_handle_free(&nicstride_component.ops, op->handle);
    onic_layout_fini(&op->origin);
    onic_layout_fini(&op->result);
    onic_layout_fini(&op->target);
    nicstride_counters.live_ops--;
    free(op->gets);
    free(op);
}

void nicstride_queue_drop_locked(nicstride_peer_t *p)
{
    if (p->queue.length > 0)
        LIST_REMOVE(p, queue.of_queueing);
    p->queue.length = 0;
    STAILQ_INIT(&p->queue.waiting);
}

/** Completes the request. If nobody waits for an error, because there is no request or it was
 *  freed, the next synchronisation returns it. */
static void end_request(nicstride_op_t *op)
{
    if (op->error != 0 && (op->request == NULL || op->request->freed) &&
        op->peer->flow.tx.error == 0)
        __atomic_store_n(&op->peer->flow.tx.error, op->error, __ATOMIC_RELAXED);
    if (op->request != NULL)
        nicstride_request_end_locked(op->request, op->error);
    op->request = NULL;
}

void nicstride_op_finish_locked(nicstride_op_t *op)
{
    if (op->in_flight > 0 || op->sent < op->size ||
        (nicstride_op_wants_reply(op) && op->received < op->size))
        return;
    TAILQ_REMOVE(&op->peer->queue.live, op, of_live);
    if (!op->failed)
        end_request(op);
    nicstride_op_free_locked(op);
}

void nicstride_op_received_locked(nicstride_op_t *op, uint64_t bytes, int error)
{
    op->received += bytes;
    if (op->error == 0)
        op->error = error;
    nicstride_op_finish_locked(op);
}

/* The request is completed at once, since UCX may never end a send whose other side is gone. */
void nicstride_op_fail(nicstride_op_t *op)
{
    if (op->error == 0)
        op->error = MPI_ERR_OTHER;
    op->sent = op->received = op->size;
    if (op->row != NULL && op->row->cancel != NULL)
        op->row->cancel(op);
    if (!op->failed)
        end_request(op);
    op->failed = true;
}

/** Fails an operation, which stays valid during the call: cancelling its transfer may end it, and
 *  others. */
static void fail_held(nicstride_op_t *op)
{
    op->in_flight++;
    nicstride_op_fail(op);
    op->in_flight--;
    nicstride_op_finish_locked(op);
}

void nicstride_ops_fail_locked(nicstride_peer_t *p)
{
    nicstride_op_t *op;

    nicstride_queue_drop_locked(p);
    /* Start again from the beginning each time, as the list may have changed. */
    do {
        TAILQ_FOREACH(op, &p->queue.live, of_live)
            if (!op->failed)
                break;
        if (op != NULL)
            fail_held(op);
    } while (op != NULL);
}

int nicstride_rows_progress_locked(bool *left_p)
{
    int events = 0;

    for (unsigned i = 0; i < NICSTRIDE_METHODS_MAX; i++) {
        const nicstride_method_row_t *row = nicstride_component.methods[i];
        const int n = row != NULL && row->progress != NULL ? row->progress() : 0;

        *left_p = *left_p || n < 0;
        events += n > 0 ? n : 0;
    }
    return events;
}

bool nicstride_rows_landed_locked(nicstride_peer_t *p)
{
    for (unsigned i = 0; i < NICSTRIDE_METHODS_MAX; i++) {
        const nicstride_method_row_t *row = nicstride_component.methods[i];

        if (row != NULL && row->flush != NULL && !row->flush(p))
            return false;
    }
    return true;
}

bool nicstride_ops_in_flight_locked(nicstride_peer_t *p)
{
    const nicstride_op_t *op;

    TAILQ_FOREACH(op, &p->queue.live, of_live)
        if (op->in_flight > 0)
            break;
    return op != NULL || p->flow.posting > 0 || !nicstride_rows_landed_locked(p);
}

bool nicstride_needs_peer_locked(nicstride_peer_t *p)
{
    const nicstride_op_t *op;

    if (!nicstride_tx_idle(&p->flow.tx) || p->flow.posting > 0)
        return true;
    TAILQ_FOREACH(op, &p->queue.live, of_live)
        if (op->row == NULL || op->row->needs_target)
            return true;
    for (unsigned i = 0; i < NICSTRIDE_METHODS_MAX; i++) {
        const nicstride_method_row_t *row = nicstride_component.methods[i];

        if (row != NULL && row->needs_peer != NULL && row->needs_peer(p))
            return true;
    }
    return false;
}

void nicstride_op_sent_cb(void *arg, int status)
{
    nicstride_op_t *op = arg;

    op->in_flight--;
    if (status != OMPI_SUCCESS && op->error == 0)
        op->error = MPI_ERR_OTHER;
    nicstride_op_finish_locked(op);
}

/* ---- what comes back ------------------------------------------------------------------------- */

int nicstride_error_class(int status)
{
    return status >= 0 && status <= MPI_ERR_LASTCODE ? status : MPI_ERR_OTHER;
}

/** Stores `len` bytes at position `offset` of an operation's result. */
static void place(nicstride_op_t *op, uint64_t offset, const void *data, size_t len)
{
    onic_cursor_t c;

    if (op->gets != NULL) {
        const char *from = data;

        for (unsigned i = 0; i < op->ngets; from += op->gets[i++].len)
            onic_copy_bytes(op->gets[i].to, from, op->gets[i].len);
        return;
    }
    if (onic_layout_is_contig(&op->result)) {
        onic_copy_bytes(op->result_base + op->result.offset + (int64_t)offset, data, len);
        return;
    }
    onic_cursor_init(&c, &op->result, offset);
    onic_unpack(&c, op->result_base, data, len);
}

/** The operation that waits for `len` bytes at `offset`. NULL if it is over, as after a loss, or is
 *  not that long. The answer to several gets comes whole. */
static nicstride_op_t *awaiting(uint64_t handle, uint64_t offset, uint64_t len)
{
    nicstride_op_t *op = onic_handle_get(&nicstride_component.ops, handle);

    if (op == NULL || offset > op->size || len > op->size - offset ||
        (op->gets != NULL && len != op->size))
        return NULL;
    return op;
}

void nicstride_on_data(const nicstride_incoming_t *in)
{
    const nicstride_msg_t *msg = in->msg;
    nicstride_op_t *op = awaiting(msg->handle, msg->offset, msg->len);

    if (op == NULL || (op->row != NULL && op->row->answered != NULL && !op->row->answered(op, msg)))
        return;
    if (msg->status == 0)
        place(op, msg->offset, in->data, in->len);
    nicstride_op_received_locked(op, msg->len, nicstride_error_class(msg->status));
}

void nicstride_place_answer_locked(nicstride_peer_t *p)
{
    uint32_t word;
    size_t len;
    const void *data = nicstride_reply_line_data(p->flow.reply_line, &word, &len);
    nicstride_op_t *op = data != NULL ? awaiting(onic_handle_of_word(word), 0, len) : NULL;

    if (op != NULL) {
        place(op, 0, data, len);
        nicstride_op_received_locked(op, len, 0);
    }
}
