/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What comes back to an origin; see reply.h. */
#include "osc_nicstride/queue/reply.h"

#include <stdlib.h>

#include "common/layout/pack.h"
#include "common/mover/mover.h"
#include "osc_nicstride/queue/operation.h"
#include "osc_nicstride/queue/start.h"
#include "osc_nicstride/window/state.h"
#include "osc_nicstride/window/used.h"
#include "common/support/handle.h"

int nicstride_error_class(int status)
{
    return status >= 0 && status <= MPI_ERR_LASTCODE ? status : MPI_ERR_OTHER;
}

/** Puts `len` bytes at position `offset` of an operation's result. */
static void place(nicstride_op_t *op, uint64_t offset, const void *data, size_t len)
{
    onic_cursor_t c;

    if (onic_layout_is_contig(&op->result)) {
        onic_copy_bytes(op->result_base + op->result.offset + (int64_t)offset, data, len);
        return;
    }
    onic_cursor_init(&c, &op->result, offset);
    onic_unpack(&c, op->result_base, data, len);
}

/** The operation of this peer that waits for `len` bytes at `offset`, or NULL. Peers are of one
 *  window each. */
static nicstride_op_t *awaiting(const nicstride_peer_t *p, uint64_t handle, uint64_t offset,
                                uint64_t len)
{
    nicstride_op_t *op = onic_handle_get(&nicstride_component.ops, handle);

    if (op == NULL || op->peer != p || offset > op->size || len > op->size - offset ||
        len > op->size - op->received) {
        nicstride_refuse();
        return NULL;
    }
    return op;
}

/** A reply by rendezvous that is being received. */
typedef struct reply {
    uint64_t handle;
    uint64_t len;
} reply_t;

static void received_cb(void *arg, int status)
{
    reply_t *r = arg;
    nicstride_op_t *op = onic_handle_get(&nicstride_component.ops, r->handle);

    if (op != NULL) {
        op->in_flight--;
        nicstride_op_received_locked(op, r->len, status == OMPI_SUCCESS ? 0 : MPI_ERR_OTHER);
    }
    free(r);
}

static void receive(const nicstride_incoming_t *in, nicstride_op_t *op)
{
    reply_t *r = onic_layout_is_contig(&op->result) ? malloc(sizeof(*r)) : NULL;
    int rc;

    if (r == NULL) {
        nicstride_op_received_locked(op, in->msg->len, MPI_ERR_OTHER);
        return;
    }
    r->handle = in->msg->handle;
    r->len = in->msg->len;
    op->in_flight++;
    rc = onic_rndv_recv(in->rndv, op->result_base + op->result.offset + (int64_t)in->msg->offset,
                        in->msg->len, received_cb, r);
    if (rc != 0)
        received_cb(r, rc < 0 ? rc : OMPI_SUCCESS);
}

/** The target will not fill the slots of a get. Data beside them was not asked for. */
static void slots_refused(nicstride_op_t *op, int status)
{
    if (status == 0) {
        nicstride_refuse();
        return;
    }
    /* Where it is over already its callback is about to come. */
    if (!onic_mover_withdraw_locked(op->move))
        return;
    op->move = NULL;
    op->in_flight--;
    nicstride_op_received_locked(op, op->size - op->received, nicstride_error_class(status));
}

void nicstride_on_data(const nicstride_incoming_t *in)
{
    const nicstride_msg_t *msg = in->msg;
    nicstride_op_t *op = awaiting(in->p, msg->handle, msg->offset, msg->len);

    if (op != NULL && op->move != NULL) {
        slots_refused(op, msg->status);
    } else if (op != NULL && in->rndv != NULL) {
        receive(in, op);
    } else if (op != NULL) {
        if (msg->status == 0)
            place(op, msg->offset, in->data, in->len);
        nicstride_op_received_locked(op, msg->len, nicstride_error_class(msg->status));
    }
}

void nicstride_place_answer_locked(nicstride_peer_t *p)
{
    uint32_t word;
    size_t len;
    const void *data = nicstride_slot_data(p->flow.slot, &word, &len);
    nicstride_op_t *op = data != NULL ? awaiting(p, onic_handle_of_word(word), 0, len) : NULL;

    nicstride_add(&nicstride_counters.slot_answers, 1);
    if (op != NULL) {
        place(op, 0, data, len);
        nicstride_op_received_locked(op, len, 0);
    } else if (word != 0 && data == NULL) {
        nicstride_refuse();
    }
}
