/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Data that goes back to an origin: answering its gets, and taking the answers to our own.
 *
 * Runs with the wire lock held, in any thread; see handlers.c.
 */
#include <stddef.h>
#include <stdlib.h>

#include "osc_nicstride/component.h"
#include "osc_nicstride/handlers.h"
#include "osc_nicstride/module.h"
#include "osc_nicstride/small.h"
#include "osc_nicstride/stream.h"
#include "osc_nicstride/target.h"
#include "common/pack.h"

/* Replies of one get under way at a time: enough to keep the wire busy. */
#define REPLIES_IN_FLIGHT 16

/* ---- answering a get ----------------------------------------------------------------------------
 */

/** A get that is being answered, fragment by fragment. */
typedef struct answer {
    uint32_t win;
    uint32_t origin;
    onic_layout_t layout;
    char *base;
    uint64_t at;     /**< next packed byte of the layout */
    uint64_t offset; /**< the same as a position in the origin's operation */
    uint64_t left;
    uint64_t handle;
    bool rndv;
    bool running; /**< in the sending loop: completions need not continue it */
    unsigned in_flight;
} answer_t;

static void answer_more(answer_t *a);

static void answered_cb(void *arg, int status)
{
    answer_t *a = arg;

    (void)status; /* the origin misses the data and its request ends with the wire */
    a->in_flight--;
    if (!a->running)
        answer_more(a);
}

static int answer_fragment(nicstride_module_t *m, nicstride_peer_t *p, answer_t *a)
{
    nicstride_msg_t msg;
    onic_payload_t payload;
    uint64_t n = a->left;
    int rc;

    nicstride_msg_init(&msg, NICSTRIDE_MSG_GET_DATA, m->info[p->rank].win, (uint32_t)m->rank);
    if (!a->rndv && n > p->frag_max - sizeof(msg))
        n = nicstride_fragment(&a->layout, (uintptr_t)a->base, a->at, p->frag_max - sizeof(msg), 1);
    msg.flags = a->rndv ? NICSTRIDE_MSG_RNDV : 0;
    msg.handle = a->handle;
    msg.offset = a->offset;
    msg.len = n;
    payload.len = n;
    payload.base = a->base;
    if (onic_layout_is_contig(&a->layout)) {
        payload.base = a->base + a->layout.offset + (int64_t)a->at;
        payload.cursor.layout = NULL;
    } else {
        onic_cursor_init(&payload.cursor, &a->layout, a->at);
    }
    a->in_flight++;
    nicstride_outbox_send_locked(p);
    rc = onic_peer_send(p->wire, ONIC_AM_OSC, &msg, sizeof(msg), &payload,
                        a->rndv ? ONIC_SEND_RNDV : 0, answered_cb, a);
    if (rc != 0)
        a->in_flight--;
    if (rc < 0)
        return rc;
    a->at += n;
    a->offset += n;
    a->left -= n;
    return OMPI_SUCCESS;
}

/** Ends an answer that cannot be given in full: the origin must not wait for the rest. */
static void answer_failed(nicstride_module_t *m, nicstride_peer_t *p, answer_t *a)
{
    nicstride_msg_t msg;

    nicstride_msg_init(&msg, NICSTRIDE_MSG_GET_DATA, m->info[p->rank].win, (uint32_t)m->rank);
    msg.handle = a->handle;
    msg.offset = a->offset;
    msg.len = a->left;
    msg.status = MPI_ERR_OTHER;
    nicstride_send_locked(m, p, &msg);
    a->left = 0;
}

/** Sends on; ends the answer with the last fragment. The get counts as applied then, since the
 *  window's memory is not read any more. */
static void answer_more(answer_t *a)
{
    nicstride_module_t *m = nicstride_find_window(a->win);
    nicstride_peer_t *p = m != NULL ? m->peer[a->origin] : NULL;
    int rc = OMPI_SUCCESS;

    if (p == NULL)
        a->left = 0;
    a->running = true;
    while (a->left > 0 && a->in_flight < REPLIES_IN_FLIGHT && rc == OMPI_SUCCESS)
        rc = answer_fragment(m, p, a);
    a->running = false;
    if (rc != OMPI_SUCCESS)
        answer_failed(m, p, a);
    if (a->left > 0 || a->in_flight > 0)
        return;
    if (p != NULL)
        nicstride_applied_locked(m, p, 0);
    onic_layout_fini(&a->layout);
    free(a);
}

/** Few bytes of any layout: packed and sent at once. */
static void reply_shaped(const nicstride_incoming_t *in)
{
    unsigned char few[NICSTRIDE_SMALL_MAX];
    onic_layout_t l;
    onic_cursor_t c;
    char *base;
    uint64_t at;
    const int error = nicstride_open_target(in, &l, &base, &at);

    if (error != 0) {
        nicstride_refuse(in, NICSTRIDE_MSG_GET_DATA, in->msg->len, error);
        return;
    }
    onic_cursor_init(&c, &l, at);
    onic_pack(&c, base, few, in->msg->len);
    onic_layout_fini(&l);
    nicstride_reply_small(in, NICSTRIDE_MSG_GET_DATA, few, in->msg->len);
}

void nicstride_on_get(const nicstride_incoming_t *in)
{
    const char *few = in->msg->len <= nicstride_small_max() ? nicstride_plain_target(in) : NULL;
    answer_t *a;
    int error;

    if (few != NULL) {
        nicstride_reply_small(in, NICSTRIDE_MSG_GET_DATA, few, in->msg->len);
        return;
    }
    if (in->msg->len <= nicstride_small_max() && (in->msg->flags & NICSTRIDE_MSG_RNDV) == 0) {
        reply_shaped(in);
        return;
    }
    a = malloc(sizeof(*a));
    error = a != NULL ? nicstride_open_target(in, &a->layout, &a->base, &a->at) : MPI_ERR_NO_MEM;
    if (error != 0) {
        free(a);
        nicstride_refuse(in, NICSTRIDE_MSG_GET_DATA, in->msg->len, error);
        return;
    }
    nicstride_frag_max_locked(in->p);
    a->win = in->msg->win;
    a->origin = in->msg->origin;
    a->offset = in->msg->offset;
    a->left = in->msg->len;
    a->handle = in->msg->handle;
    a->rndv = (in->msg->flags & NICSTRIDE_MSG_RNDV) != 0 && onic_layout_is_contig(&a->layout);
    a->in_flight = 0;
    answer_more(a);
}

/* ---- replies that come to our own operations
 * ----------------------------------------------------- */

/** An error class as a peer reports it; what is none becomes MPI_ERR_OTHER. */
int nicstride_error_class(int status)
{
    return status >= 0 && status <= MPI_ERR_LASTCODE ? status : MPI_ERR_OTHER;
}

/** A reply by rendezvous that is being received. */
typedef struct reply {
    uint64_t handle;
    uint64_t len;
} reply_t;

static void reply_cb(void *arg, int status)
{
    reply_t *r = arg;
    nicstride_op_t *op = nicstride_handle_get(&mca_osc_nicstride_component.ops, r->handle);

    if (op != NULL) {
        op->in_flight--;
        nicstride_op_received_locked(op, r->len, status == OMPI_SUCCESS ? 0 : MPI_ERR_OTHER);
    }
    free(r);
}

static void data_rndv(const nicstride_incoming_t *in, nicstride_op_t *op)
{
    reply_t *r = !op->plain && onic_layout_is_contig(&op->result) ? malloc(sizeof(*r)) : NULL;
    int rc;

    if (r == NULL) {
        onic_rndv_drop(in->rndv);
        nicstride_op_received_locked(op, in->msg->len, MPI_ERR_OTHER);
        return;
    }
    r->handle = in->msg->handle;
    r->len = in->msg->len;
    op->in_flight++;
    rc = onic_rndv_recv(in->rndv, op->result_base + op->result.offset + (int64_t)in->msg->offset,
                        in->msg->len, reply_cb, r);
    if (rc != 0)
        reply_cb(r, rc < 0 ? rc : OMPI_SUCCESS);
}

/** Puts the data in its place, if there is an operation that waits for it. */
static void take_data(const nicstride_incoming_t *in)
{
    const nicstride_msg_t *msg = in->msg;
    nicstride_op_t *op = nicstride_handle_get(&mca_osc_nicstride_component.ops, msg->handle);
    onic_cursor_t c;

    if (op == NULL || op->module != in->m || op->peer != in->p || msg->offset > op->size ||
        msg->len > op->size - msg->offset || msg->len > op->size - op->received) {
        nicstride_add(&nicstride_counters.refused, 1);
        if (in->rndv != NULL)
            onic_rndv_drop(in->rndv);
        return;
    }
    if (in->rndv != NULL) {
        data_rndv(in, op);
        return;
    }
    if (msg->status == 0 && op->plain) {
        nicstride_copy_bytes(op->result_base + msg->offset, in->data, in->len);
    } else if (msg->status == 0) {
        onic_cursor_init(&c, &op->result, msg->offset);
        onic_unpack(&c, op->result_base, in->data, in->len);
    }
    nicstride_op_received_locked(op, msg->len, nicstride_error_class(msg->status));
}

void nicstride_on_data(const nicstride_incoming_t *in)
{
    const uint64_t applied = in->msg->count;

    if (applied != 0 && !nicstride_tx_ack(&in->p->tx, applied, 0))
        nicstride_add(&nicstride_counters.refused, 1);
    take_data(in);
    /* There may be no other acknowledgement, and nobody but requests that wait for it. */
    if (applied != 0)
        nicstride_pump_locked(in->m, in->p);
}
