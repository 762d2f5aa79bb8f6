/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Operations under way; see operation.h. */
#include "osc_nicstride/queue/operation.h"

#include <stdlib.h>

#include "common/mover/mover.h"
#include "osc_nicstride/queue/request.h"
#include "osc_nicstride/window/state.h"
#include "osc_nicstride/window/used.h"

/* Operation objects that are not in use; wire lock. */
static nicstride_op_t *spare_ops;
static unsigned spare_count;
#define SPARE_MAX 256

nicstride_op_t *nicstride_op_take_locked(void)
{
    nicstride_op_t *op = spare_ops;

    if (op == NULL) {
        op = malloc(sizeof(*op));
    } else {
        spare_ops = op->next;
        spare_count--;
    }
    if (op != NULL)
        nicstride_counters.ops_live++;
    return op;
}

/** Gives an object back that owns nothing any more and is in no list. */
static void give(nicstride_op_t *op)
{
    nicstride_counters.ops_live--;
    if (spare_count >= SPARE_MAX) {
        free(op);
        return;
    }
    op->next = spare_ops;
    spare_ops = op;
    spare_count++;
}

void nicstride_ops_fini(void)
{
    while (spare_ops != NULL) {
        nicstride_op_t *op = spare_ops;

        spare_ops = op->next;
        free(op);
    }
    spare_count = 0;
}

bool nicstride_op_wants_reply(const nicstride_op_t *op)
{
    return op->type == NICSTRIDE_MSG_GET || op->type == NICSTRIDE_MSG_GET_ACC ||
           op->type == NICSTRIDE_MSG_CAS;
}

bool nicstride_op_name_locked(nicstride_op_t *op)
{
    op->handle = onic_handle_new(&nicstride_component.ops, op);
    return op->handle != 0;
}

void nicstride_op_reserve_locked(nicstride_op_t *op, uint64_t bytes)
{
    nicstride_replies_t *r = &nicstride_component.replies;

    op->reserved += bytes;
    r->out += bytes;
    if (r->out > nicstride_counters.reply_bytes)
        __atomic_store_n(&nicstride_counters.reply_bytes, r->out, __ATOMIC_RELAXED);
}

/** Gives room for replies back; peers that wait for it are served behind this progress. */
static void give_back(nicstride_op_t *op, uint64_t bytes)
{
    nicstride_replies_t *r = &nicstride_component.replies;

    bytes = bytes < op->reserved ? bytes : op->reserved;
    op->reserved -= bytes;
    r->out -= bytes;
    if (nicstride_reply_next(r) != NULL)
        onic_wire_defer(ONIC_AM_OSC);
}

void nicstride_op_free_locked(nicstride_op_t *op)
{
    give_back(op, op->reserved);
    if (op->handle != 0)
        onic_handle_free(&nicstride_component.ops, op->handle);
    if (op->origin.nruns != 0)
        onic_layout_fini(&op->origin);
    if (op->result.nruns != 0)
        onic_layout_fini(&op->result);
    if (op->target.nruns != 0)
        onic_layout_fini(&op->target);
    give(op);
}

void nicstride_op_live_locked(nicstride_op_t *op)
{
    nicstride_peer_t *p = op->peer;

    op->live_next = NULL;
    op->live_prev = p->queue.live_tail;
    if (p->queue.live_tail != NULL)
        p->queue.live_tail->live_next = op;
    else
        p->queue.live = op;
    p->queue.live_tail = op;
}

static void live_remove(nicstride_op_t *op)
{
    nicstride_peer_t *p = op->peer;

    if (op->live_prev != NULL)
        op->live_prev->live_next = op->live_next;
    else
        p->queue.live = op->live_next;
    if (op->live_next != NULL)
        op->live_next->live_prev = op->live_prev;
    else
        p->queue.live_tail = op->live_prev;
}

void nicstride_ops_drop(nicstride_peer_t *p)
{
    while (p->queue.live != NULL) {
        nicstride_op_t *op = p->queue.live;

        live_remove(op);
        nicstride_op_free_locked(op);
    }
}

/** Completes the request. An error that nobody waits for, because there is no request or it was
 * freed, is returned by the next synchronisation. */
static void end_request(nicstride_op_t *op)
{
    if (op->reported)
        return;
    if (op->error != 0 && (op->request == NULL || op->request->freed) &&
        op->peer->flow.tx.error == 0) {
        __atomic_store_n(&op->peer->flow.tx.error, op->error, __ATOMIC_RELAXED);
        nicstride_use_locked(op->peer);
    }
    if (op->request != NULL)
        nicstride_request_done_locked(op->request, op->error);
    op->request = NULL;
}

void nicstride_op_finish_locked(nicstride_op_t *op)
{
    if (op->queued || op->in_flight > 0 || op->sent < op->size ||
        (nicstride_op_wants_reply(op) && op->received < op->size))
        return;
    live_remove(op);
    end_request(op);
    nicstride_op_free_locked(op);
}

void nicstride_op_received_locked(nicstride_op_t *op, uint64_t bytes, int error)
{
    op->received += bytes;
    give_back(op, bytes);
    if (op->error == 0)
        op->error = error;
    nicstride_op_finish_locked(op);
}

/* A request is completed at once, since UCX may never end
 *  a rendezvous whose other side is gone. */
void nicstride_op_fail(nicstride_op_t *op)
{
    if (op->error == 0)
        op->error = MPI_ERR_OTHER;
    op->sent = op->received = op->size;
    give_back(op, op->reserved);
    /* A thread that is inside a copy ends it, and the operation then. */
    if (op->move != NULL)
        (void)onic_mover_cancel_locked(op);
    if (op->request != NULL) {
        end_request(op);
        op->reported = true;
    }
}

/** Fails an operation, which stays until that is over: cancelling its transfer may end it, and
 *  others. */
static void fail_held(nicstride_op_t *op)
{
    op->failing = true;
    op->queued = false;
    op->in_flight++;
    nicstride_op_fail(op);
    op->in_flight--;
    nicstride_op_finish_locked(op);
}

void nicstride_ops_fail_locked(nicstride_peer_t *p)
{
    nicstride_op_t *op;

    p->queue.head = p->queue.tail = NULL;
    p->queue.length = 0;
    onic_watch_forget(&p->observed.watch);
    for (op = p->queue.live; op != NULL; op = op->live_next)
        op->failing = false;
    /* From the begin each time: the list may have changed. */
    do {
        for (op = p->queue.live; op != NULL && op->failing;)
            op = op->live_next;
        if (op != NULL)
            fail_held(op);
    } while (op != NULL);
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
    const nicstride_op_t *op = p->queue.live;

    while (op != NULL && op->in_flight == 0)
        op = op->live_next;
    return op != NULL || p->flow.posting > 0 || !nicstride_rows_landed_locked(p);
}

void nicstride_op_sent_cb(void *arg, int status)
{
    nicstride_op_t *op = arg;

    op->in_flight--;
    if (status != OMPI_SUCCESS && op->error == 0)
        op->error = MPI_ERR_OTHER;
    nicstride_op_finish_locked(op);
}
